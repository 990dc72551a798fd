"""`a40console runs`: what was measured, kept: lists, reports, comparisons, notes, exports."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import note, print_json, print_lines, text_width
from a40console.commands.run_text import full, listing
from a40console.commands.running import ensure_service
from a40console.commands.runs_compare import compare_runs
from a40console.commands.runs_export import export_runs
from a40console.commands.runs_hypotheses import hypotheses
from a40console.commands.runs_import import import_runs
from a40console.commands.runs_left import runs_left
from a40console.commands.runs_named import MOST, run_id
from a40console.commands.runs_notes import invalidate_run, note_run
from a40console.commands.runs_pull import command as pull_runs
from a40console.errors import ConsoleError, Exit
from a40console.model.codec import encode
from a40console.model.run import Run
from a40console.model.run_record import ArmEnd, Record, Sample
from a40console.model.run_result import RunResult
from a40console.model.run_words import headline, is_simulated
from a40console.service.client import ServiceClient
from a40console.tui.ink import line

DAY_S = 86_400.0
STATES = ("queued", "running", "done", "partial", "failed", "invalid")


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, *, as_json: bool) -> None:
    """Controlled experiments that were run: list, show, compare, note, export, bring here.

    A run is named by its id, the beginning or the end of it, or `last`.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_runs, as_json=as_json)


@command.command("list")
@click.option("--experiment", metavar="NAME", help="Of this experiment alone.")
@click.option("--state", type=click.Choice(STATES), help="In this state alone.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    default=100,
    show_default=True,
    help="How many, the newest.",
)
@json_option
@click.pass_obj
def list_runs(
    invocation: Invocation,
    *,
    experiment: str | None,
    state: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Every run, the newest first: those that wait and the one that runs too."""
    most = limit if not (experiment or state) else MOST
    runs, told, trouble = asyncio.run(_list(invocation, most))
    chosen = [
        run
        for run in runs
        if experiment in (None, run.spec.experiment) and state in (None, run.state)
    ][:limit]
    if as_json:
        print_json({"runs": [_row(run) for run in chosen]})
    elif chosen:
        print_lines(invocation, listing(chosen, text_width()))
    elif trouble is None:
        print_lines(
            invocation,
            [line("No run is known." if not runs else "No run is like that.")]
            + ([] if runs else [line("Make one with: a40console run EXPERIMENT")]),
        )
    if trouble is not None:
        raise trouble
    if not as_json:
        for sentence in told:
            note(sentence)


async def _list(
    invocation: Invocation, limit: int
) -> tuple[tuple[Run, ...], Sequence[str], ConsoleError | None]:
    """The newest runs, and what would be lost with this machine, or was with the ledger.

    Where the ledger cannot be asked, they are those that wait or run, and its trouble is last.
    """
    async with await ensure_service(invocation.paths, engine=False) as client:
        try:
            runs = await client.runs(limit)
        except ConsoleError as trouble:
            if trouble.exit_code is not Exit.REFUSED:
                raise
            return await client.runs(limit, only_live=True), (), trouble
        return runs, [*await _damage(client), *await runs_left(client)], None


async def _damage(client: ServiceClient) -> Sequence[str]:
    """What was last lost of the ledger within a day; nothing where nobody knows."""
    try:
        found = await client.events(limit=1, kind="ledger.damaged", since_s=-DAY_S)
    except ConsoleError:
        return ()
    return [f"{event.text}: {event.data.get('evidence', '')}".rstrip(": ") for event in found]


def _row(run: Run) -> dict[str, Any]:
    """What a script wants to know of a run without its tables."""
    verdict = run.result.verdict if isinstance(run.result, RunResult) else None
    stands = verdict is not None and run.state != "invalid"
    return {
        "id": run.id,
        "experiment": run.spec.experiment,
        "preset": run.spec.preset,
        "target": run.spec.target.kind,
        "state": run.state,
        "reason": run.reason,
        "simulated": is_simulated(run),
        "reference": run.reference,
        "asked_at": run.asked_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "headline": headline(run),
        "verdict": {"kind": verdict.kind, "text": verdict.text} if verdict and stands else None,
        "notes": run.notes,
        "origin": run.origin,
        "copied_to": run.copied_to,
    }


@command.command("show")
@click.argument("run", metavar="RUN")
@json_option
@click.pass_obj
def show_run(invocation: Invocation, *, run: str, as_json: bool) -> None:
    """One run in full: what it found, what speaks against it, how and where it was made."""
    if as_json:
        told = asyncio.run(_find(invocation, run))
        print_json({"experiment": told.spec.experiment, **encode(told)})
        return
    found, arm_ends, samples = asyncio.run(_show(invocation, run))
    print_lines(invocation, full(found, text_width(), arm_ends=arm_ends, samples=samples))


async def _find(invocation: Invocation, name: str) -> Run:
    async with await ensure_service(invocation.paths, engine=False) as client:
        return await client.run(await run_id(client, name))


async def _show(
    invocation: Invocation, name: str
) -> tuple[Run, tuple[ArmEnd, ...], tuple[Sample, ...]]:
    async with await ensure_service(invocation.paths, engine=False) as client:
        run = await client.run(await run_id(client, name))
        records = await _records(client, run.id)
        arm_ends = tuple(record for record in records if isinstance(record, ArmEnd))
        return run, arm_ends, tuple(record for record in records if isinstance(record, Sample))


async def _records(client: ServiceClient, name: str) -> list[Record]:
    """What a run has recorded; the ledger need not have it yet."""
    found: list[Record] = []
    after = 0
    while True:
        after, more = await client.run_records(name, after)
        if not more:
            return found
        found += more


for each in (
    compare_runs,
    note_run,
    invalidate_run,
    hypotheses,
    export_runs,
    import_runs,
    pull_runs,
):
    command.add_command(each)
