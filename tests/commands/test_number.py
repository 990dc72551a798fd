"""Every option that takes a number takes numbers alone."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from a40console.cli import console


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """All commands beneath a group, each with the words that call it."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        words = f"{path} {name}".strip()
        if isinstance(command, click.Group):
            yield from commands(command, words)
        yield words, command


OPTIONS = {
    f"{words} {option.opts[0]}": option
    for words, command in commands(console, "")
    for option in command.params
    if isinstance(option.type, (click.types.FloatParamType, click.FloatRange))
}


def test_the_options_are_found() -> None:
    assert {"wait --timeout", "stop --timeout", "ask --timeout", "ask --temperature"} <= set(
        OPTIONS
    )


@pytest.mark.parametrize("name", sorted(OPTIONS))
@pytest.mark.parametrize("word", ["nan", "-nan", "NaN", "-1", "x"])
def test_what_is_no_number_is_a_usage_error(name: str, word: str) -> None:
    option = OPTIONS[name]
    with pytest.raises(click.BadParameter) as raised:
        option.type.convert(word, option, None)
    assert raised.value.exit_code == 2
