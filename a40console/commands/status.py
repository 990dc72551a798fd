"""`a40console status`: what runs here, how fast, what limits it and what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from a40console.commands.bar import bar, without_service
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import (
    echo_text,
    print_json,
    print_rich,
    printable,
    terminal_width,
)
from a40console.commands.running import connect
from a40console.commands.runs_left import runs_left
from a40console.commands.table import bare_table
from a40console.commands.verdict import mood, one_line, verdict_lines
from a40console.errors import Exit, NoServiceError
from a40console.model.engine import EngineState
from a40console.model.figures import Missing, ratio
from a40console.model.snapshot import Slot, Snapshot
from a40console.paths import Paths
from a40console.tui.format import count, duration, known, latency, percent, rate, shown

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {"good": "green", "busy": "yellow", "bad": "bold red", "quiet": "dim"}
_SEVERITIES = {"info": ("·", "cyan"), "warn": ("▲", "yellow"), "error": ("✖", "bold red")}
_NARROW = 112
"""Below as many columns the table leaves out what the snapshot's JSON still has."""

_LEFT_OUT = frozenset({"slot", "client", "pass/s × tok/pass"})


@click.command()
@click.option("--line", "on_one_line", is_flag=True, help="One line, for a prompt or status bar.")
@click.option(
    "--width", type=click.IntRange(min=1), help="With --line: no wider, the last parts left out."
)
@click.option("--tmux", "for_tmux", is_flag=True, help="With --line: tmux's colour markup.")
@click.option("--check", is_flag=True, help="Exit with 4 unless the engine is serving.")
@json_option
@click.pass_obj
def command(
    invocation: Invocation,
    *,
    on_one_line: bool,
    width: int | None,
    for_tmux: bool,
    check: bool,
    as_json: bool,
) -> Exit:
    """What runs, how fast, what limits it, what it costs. Starts nothing."""
    if on_one_line and not as_json:
        return _line(invocation, width, for_tmux=for_tmux, check=check)
    if as_json:
        snapshot = asyncio.run(_snapshot(invocation.paths))
        print_json(snapshot)
    else:
        snapshot, left = asyncio.run(_with_runs_left(invocation.paths))
        print_rich(invocation, *status_text(snapshot), *_warnings(left))
    return _exit(snapshot, check=check)


def _exit(snapshot: Snapshot, *, check: bool) -> Exit:
    serving = snapshot.engine.state is EngineState.SERVING
    return Exit.NOT_SERVING if check and not serving else Exit.DONE


def _line(invocation: Invocation, width: int | None, *, for_tmux: bool, check: bool) -> Exit:
    """One line, whatever happens: a status bar shows what is on standard output, and only that."""
    code = Exit.DONE
    try:
        snapshot = asyncio.run(_snapshot(invocation.paths))
    except NoServiceError as error:
        text, code = without_service(width, markup=for_tmux), error.exit_code
    else:
        short = for_tmux or width is not None
        text = bar(snapshot, width, markup=for_tmux) if short else one_line(snapshot)
        code = _exit(snapshot, check=check)
    echo_text(invocation, text)
    return code


async def _snapshot(paths: Paths) -> Snapshot:
    async with await connect(paths) as client:
        return await client.snapshot()


async def _with_runs_left(paths: Paths) -> tuple[Snapshot, Sequence[str]]:
    async with await connect(paths) as client:
        return await client.snapshot(), await runs_left(client)


def _warnings(sentences: Sequence[str]) -> list[RenderableType]:
    """What is lost with a rented machine."""
    from rich.text import Text

    mark, style = _SEVERITIES["warn"]
    text = " ".join(sentences)
    return [Text(printable(f"{mark} {text}"), style=style)] if sentences else []


def status_text(snapshot: Snapshot) -> list[RenderableType]:
    """The verdict, the live requests and what was found wrong, for Rich."""
    from rich.text import Text

    serving, limit, cost = map(printable, verdict_lines(snapshot))
    verdict = Text(serving, no_wrap=True, overflow="ellipsis")
    verdict.stylize(_STYLES[mood(snapshot.engine.state)], 0, len(serving.split("   ")[0]))
    parts: list[RenderableType] = [verdict, Text(limit), Text(cost)]
    if snapshot.engine.state is EngineState.ASLEEP:
        parts.append(Text("Wake it: a40console engine wake"))
    if isinstance(snapshot.slots, Missing):
        parts.append(Text(printable(f"slots  –  {snapshot.slots.reason}")))
    elif snapshot.slots:
        parts.append(_slot_table(snapshot.slots))
    for finding in snapshot.findings:
        mark, style = _SEVERITIES[finding.severity]
        line = f"{mark} {finding.title}  {finding.evidence}  {finding.remedy}"
        parts.append(Text(printable(line), style=style))
    return parts


def _slot_table(slots: tuple[Slot, ...]) -> RenderableType:
    left_out = _LEFT_OUT if terminal_width() < _NARROW else frozenset()
    rows = [_slot_cells(slot) for slot in slots]
    names = [name for name in rows[0] if name not in left_out]
    table = bare_table()
    for name in names:
        words = name in ("session", "client", "phase")
        table.add_column(name, justify="left" if words else "right", no_wrap=True)
    for cells in rows:
        table.add_row(*(printable(cells[name]) for name in names))
    return table


def _slot_cells(slot: Slot) -> dict[str, str]:
    session = "direct" if slot.direct else known(slot.session)
    agent = "" if isinstance(slot.agent, Missing) else f" {slot.agent}"
    return {
        "slot": str(slot.slot),
        "session": f"{session}{agent}",
        "client": known(slot.client),
        "phase": slot.phase,
        "context": shown(slot.prompt_tokens, count),
        "reused": shown(ratio(slot.cached_tokens, slot.prompt_tokens), percent),
        "gen": shown(slot.generated_tokens, count),
        "tok/s": shown(slot.tokens_per_s, rate),
        "pass/s × tok/pass": " × ".join(
            shown(factor, rate) for factor in (slot.passes_per_s, slot.tokens_per_pass)
        ),
        "TTFT": shown(slot.ttft_s, latency),
        "age": shown(slot.age_s, duration),
    }
