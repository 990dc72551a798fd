"""Options and arguments that take text take some: an empty one is a variable that was not set."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem


class Filled(click.ParamType[Any]):
    """A text or a path, as the type it stands before converts it, but never an empty one."""

    def __init__(self, inner: click.ParamType[Any]) -> None:
        self._inner = inner
        self.name = inner.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value converted; an empty one that was typed fails, and the usage is shown."""
        if isinstance(value, str) and not value.strip() and _is_typed(param, ctx):
            self.fail("it is empty", param, ctx)
        return self._inner.convert(value, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """What the shell offers: files and folders for a path."""
        return self._inner.shell_complete(ctx, param, incomplete)


def _is_typed(param: click.Parameter | None, ctx: click.Context | None) -> bool:
    """Whether a value comes from the command line; defaults may be empty."""
    if ctx is None or param is None or param.name is None:
        return False
    return ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE


def refuse_empty(command: click.Command) -> click.Command:
    """The command, its own commands too, refusing texts and paths that are empty."""
    for param in command.params:
        takes_text = isinstance(param.type, (click.types.StringParamType, click.Path))
        if takes_text and not (isinstance(param, click.Option) and param.is_flag):
            param.type = Filled(param.type)
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            refuse_empty(inner)
    return command
