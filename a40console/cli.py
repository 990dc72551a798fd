"""The command line's entry: finds the command, and turns every end of it into text and exit code.

Nothing heavy is imported here: `a40console --help` and scripts that ask for one line stay fast.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import click

from a40console import __version__, spared_imports
from a40console.commands import streams
from a40console.commands.filled import refuse_empty
from a40console.commands.invocation import ColorMode, Invocation
from a40console.commands.output import legible, note
from a40console.commands.read_only import guarded
from a40console.errors import ConsoleError, Exit, RefusedError, UsageError
from a40console.model.codec import encode
from a40console.paths import Paths, locate, make_private

INTERRUPTED = 130
"""As shells report a process that SIGINT ended."""

OUTPUT_CLOSED = 141
"""As shells report a process that SIGPIPE ended: the reader went away, `| head -1`."""

_MACHINE_ERRNOS = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.EPERM,
        errno.EROFS,
    }
)
"""What the machine refuses us: no bug of ours."""

_COMMANDS = {
    "serve": "Run the service in the foreground.",
    "stop": "Stop the service, and with --engine the engine too.",
    "status": "What runs, how fast, what limits it, what it costs.",
    "watch": "Status again and again, as it changes.",
    "why": "Why it is as fast as it is: causes, what is ruled out and how.",
    "wait": "Wait until the engine is ready, idle or stopped.",
    "ask": "Ask the model; starts service and engine if need be.",
    "events": "What happened: the journal, filtered or followed.",
    "note": "Record one line among the events.",
    "history": "How fast it was, point by point, up to 24 hours back.",
    "digest": "What happened since you last read the events.",
    "cost": "What it costs, hour by hour.",
    "run": "Run a controlled experiment: compaction, sweep, regimes, ...",
    "runs": "What was measured: show, compare, export, import, pull.",
    "sessions": "Clients' sessions: context, reuse, speed, cost, turn by turn.",
    "env": "The client's environment, ready to paste.",
    "profiles": "List, show, check, fit and mend engine profiles.",
    "models": "List, fetch and delete the models of the profiles.",
    "engine": "Install, start, stop and steer the engine.",
    "doctor": "What this machine lacks, and the line that mends it.",
    "attach": "Watch an engine that is not ours.",
    "demo": "The console on a SIMULATED A40, two sessions at work.",
    "links": "The links that --ssh opened: list them, close one.",
    "endpoint": "Where this machine's service is reached; --ssh asks it.",
}


WORDS = "a40console.words"
"""Where the command and its arguments are kept as they were written."""

READ_ONLY = "a40console.read_only"
"""Where it is kept whether one only looks."""


class LazyGroup(click.Group):
    """Commands that are imported when one is called; their list needs none of them."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of the module that bears its name."""
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"a40console.commands.{cmd_name}")
        return refuse_empty(cast("click.Command", module.command))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and keep all words for the other machine of `--ssh`."""
        ctx.meta[WORDS] = tuple(args)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from their one-line descriptions."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    # Placeholders: they give the names for suggestions and completion.
    commands={name: click.Command(name, short_help=text) for name, text in _COMMANDS.items()},
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.option(
    "--color",
    type=click.Choice(["auto", "truecolor", "256", "16", "mono"]),
    default="auto",
    help="Colours of the console and of status (SSH and tmux often hide what a terminal can do).",
)
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
@click.option(
    "--ascii/--unicode", "in_ascii", default=None, help="Characters to draw with, if not as found."
)
@click.option("--plain", is_flag=True, help="Sentences, line by line: screen readers and pipes.")
@click.option(
    "--read-only",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, _, flag: ctx.meta.update({READ_ONLY: flag}),
    help="Only look: whatever acts is refused.",
)
@click.option(
    "--ssh",
    "target",
    metavar="USER@HOST[:PORT]",
    help="The console here, service and engine there; commands run there.",
)
@click.option(
    "--there",
    metavar="COMMAND",
    help="The console's command on the other machine: as said last, else a40console.",
)
@click.pass_context
def console(
    ctx: click.Context,
    *,
    color: ColorMode,
    no_mouse: bool,
    in_ascii: bool | None,
    plain: bool,
    target: str | None,
    there: str | None,
) -> int | None:
    """Runs, watches and steers an LLM engine. Without a command: the console on this terminal."""
    paths = _paths()
    if target is None and there is not None:
        raise UsageError("--there goes with --ssh")
    paths = guarded(paths, ctx.meta.get(WORDS, ()), flag=ctx.meta[READ_ONLY])
    if target is not None:
        from a40console.commands.far import lead

        drawing = [] if color == "auto" else ["--color", color]
        drawing += [] if in_ascii is None else ["--ascii" if in_ascii else "--unicode"]
        drawing += ["--read-only"] if ctx.meta[READ_ONLY] else []
        words = ctx.meta.get(WORDS, ())
        far = lead(paths, target, there=there, words=words, options=drawing)
        if far.code is not None:
            ctx.exit(far.code)
        paths = far.paths
    ctx.obj = Invocation(paths=paths, color=color, mouse=not no_mouse, ascii=in_ascii, plain=plain)
    if ctx.invoked_subcommand is not None:
        return None
    from a40console.commands.console import open_console

    return open_console(ctx.obj)


def _paths() -> Paths:
    try:
        return locate()
    except RuntimeError as error:  # pathlib's, for a `~name` that is no user
        raise UsageError("A40CONSOLE_HOME names no folder", evidence=str(error)) from error


def main() -> int:
    """Run the command that the arguments name; the exit code."""
    os.umask(0o077)  # whatever is written here is this user's alone
    streams.prepare()
    spared_imports.spare_unused()
    code: int = Exit.DONE
    try:
        code = _run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        code = OUTPUT_CLOSED
    except streams.OutputError as error:
        if code == Exit.DONE:
            code = _report(streams.refusal(error), as_json=False)
    streams.drop_unwritten_output()
    return code


def _run(arguments: Sequence[str]) -> int:
    """Run a command to its exit code; only trouble with the output itself gets out."""
    as_json = _wants_json(arguments)
    try:
        _check_encoding(arguments)
        with console.make_context("a40console", list(arguments)) as context:
            return int(console.invoke(context) or Exit.DONE)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.ClickException as error:
        if not as_json:
            with suppress(OSError):  # as a note that is lost
                error.show()
            return Exit.USAGE
        return _report(UsageError(error.format_message()), as_json=True)
    except (BrokenPipeError, streams.OutputError):
        raise
    except ConsoleError as error:
        return _report(error, as_json=as_json)
    except Exception as error:  # noqa: BLE001 - no traceback reaches a user
        return _report(_explain(error), as_json=as_json)


def _check_encoding(arguments: Sequence[str]) -> None:
    """Refuse bytes that are no text: no profile, prompt or JSON answer could hold them."""
    for position, argument in enumerate(arguments, start=1):
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"Argument {position} is not valid UTF-8",
                evidence=repr(os.fsencode(argument))[1:],
                remedy="Pass text through standard input, or mend the terminal's locale.",
            ) from error


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors are JSON too; known before parsing, which may fail itself."""
    before_text = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in before_text


def _report(error: ConsoleError, *, as_json: bool) -> int:
    """Tell what happened, the evidence and what to do; the exit code."""
    if as_json:
        click.echo(json.dumps({"error": encode(error.trouble)}))
    else:
        for part in (error.message, error.evidence, error.remedy):
            if part:
                note(legible(part))
    return int(error.exit_code)


def _explain(error: Exception) -> ConsoleError:
    """What the operator reads about an exception that no command expected."""
    if isinstance(error, OSError) and error.errno in _MACHINE_ERRNOS:
        return RefusedError(
            f"{error.filename or 'Something cannot be written'}: {error.strerror}",
            remedy="Free space or permission there, or set A40CONSOLE_HOME to a writable folder.",
        )
    frames = traceback.extract_tb(error.__traceback__)
    last = next((frame for frame in reversed(frames) if "a40console" in frame.filename), frames[-1])
    return ConsoleError(
        f"a40console {__version__} met a bug of its own: {type(error).__name__}: {error}",
        evidence=f"at {last.filename}:{last.lineno} in {last.name}",
        remedy=_keep_trace(error),
    )


def _keep_trace(error: Exception) -> str:
    """Write the trace to a file of its own; says where it is, or why there is none."""
    trace = "".join(traceback.format_exception(error))
    name = f"crash-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
    reason = ""
    for folder in (_state_folder, lambda: Path(tempfile.gettempdir())):
        try:
            path = folder() / name
            path.touch(mode=0o600)
            path.write_text(trace, encoding="utf-8", errors="backslashreplace")
        except (OSError, ConsoleError) as failure:
            reason = str(failure)
        else:
            return f"The trace is in {path}"
    return f"The trace could not be kept: {reason}"


def _state_folder() -> Path:
    return make_private(_paths().state)
