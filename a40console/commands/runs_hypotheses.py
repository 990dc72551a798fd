"""`a40console runs hypotheses`: claims, and what runs said of them."""

from __future__ import annotations

import asyncio

import click

from a40console.commands.acting import act, print_result
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json, print_lines, text_width
from a40console.commands.progress import Progress
from a40console.commands.running import ensure_service
from a40console.commands.runs_named import run_id
from a40console.model.control import CommandResult
from a40console.model.run import Hypothesis, HypothesisState
from a40console.model.run_facts import moment
from a40console.tui.ink import Line, Role, Span, line, wrap

_STATE = 9
_NUMBER = 4
_ROLES: dict[HypothesisState, Role] = {
    "open": Role.KEY,
    "confirmed": Role.GOOD,
    "refuted": Role.BAD,
    "retracted": Role.MUTED,
}


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def hypotheses(ctx: click.Context, *, as_json: bool) -> None:
    """Claims: open, confirmed, refuted or retracted, with the runs that did it."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_hypotheses, as_json=as_json)


@hypotheses.command("list")
@click.option(
    "--state",
    type=click.Choice(list(_ROLES)),
    help="In this state alone.",
)
@json_option
@click.pass_obj
def list_hypotheses(invocation: Invocation, *, state: str | None, as_json: bool) -> None:
    """Every claim, the one that was last spoken on first."""
    told = [each for each in asyncio.run(_read(invocation)) if state in (None, each.state)]
    if as_json:
        print_json({"hypotheses": told})
        return
    print_lines(invocation, lines(told, text_width()))


@hypotheses.command("add")
@click.argument("text", nargs=-1, required=True)
@json_option
@click.pass_obj
def add_hypothesis(invocation: Invocation, *, text: tuple[str, ...], as_json: bool) -> None:
    """Write a claim down before it is measured."""
    said = {"text": " ".join(text)}
    print_result(
        asyncio.run(_act(invocation, "hypotheses.add", said)), "Written down.", as_json=as_json
    )


@hypotheses.command("conclude")
@click.argument("number", type=click.IntRange(min=1))
@click.argument("state", type=click.Choice(list(_ROLES)))
@click.option("--run", "runs", multiple=True, metavar="RUN", help="A run that did it; repeatable.")
@click.option("--why", default="", help="What in it, in a sentence.")
@json_option
@click.pass_obj
def conclude_hypothesis(
    invocation: Invocation,
    *,
    number: int,
    state: str,
    runs: tuple[str, ...],
    why: str,
    as_json: bool,
) -> None:
    """Confirm, refute, retract or reopen the claim of this number."""
    said = {"id": str(number), "state": state, "why": why}
    result = asyncio.run(_act(invocation, "hypotheses.conclude", said, runs))
    print_result(result, f"Hypothesis {number} is {state}.", as_json=as_json)


def lines(told: list[Hypothesis], width: int) -> list[Line]:
    """The claims, each with what was said of it last."""
    if not told:
        return [
            line("No hypothesis is written down."),
            line("Write one with: a40console runs hypotheses add TEXT"),
        ]
    written: list[Line] = []
    indent = " " * (_NUMBER + _STATE + 2)
    for each in told:
        head = line(
            Span(f"{each.id:>{_NUMBER}} "), Span(f"{each.state:<{_STATE}} ", _ROLES[each.state])
        )
        first, *rest = wrap(each.text, width - len(indent)) or [()]
        written.append(line(head, first))
        written += [line(indent, row) for row in rest]
        since = f"{moment(each.at)}{': ' if each.why else ''}{each.why}"
        for said in (since, *(f"by {run}" for run in each.runs)):
            written += [line(indent, row) for row in wrap(said, width - len(indent), Role.MUTED)]
    return written


async def _read(invocation: Invocation) -> tuple[Hypothesis, ...]:
    async with await ensure_service(invocation.paths, engine=False) as client:
        return await client.hypotheses()


async def _act(
    invocation: Invocation, command: str, said: dict[str, str], runs: tuple[str, ...] = ()
) -> CommandResult:
    async with await ensure_service(invocation.paths, engine=False) as client:
        if runs:
            said = {**said, "runs": ",".join([await run_id(client, name) for name in runs])}
        return await act(client, command, timeout_s=None, progress=Progress(quiet=True), **said)
