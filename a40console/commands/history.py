"""`a40console history`: the speeds of the last hours as a table, JSON or CSV."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import note, print_json, print_rich, printable, terminal_width
from a40console.commands.running import connect
from a40console.commands.since import since_seconds
from a40console.errors import UsageError
from a40console.model.control import History, HistoryPoint
from a40console.model.figures import Missing, is_estimate, number
from a40console.model.instants import iso_utc
from a40console.paths import Paths
from a40console.tui.format import duration, gibibytes, latency, percent, rate, shown

if TYPE_CHECKING:
    from rich.console import RenderableType

TABLE_POINTS = 30
SCRIPT_POINTS = 900
_BY_WORTH = (
    *("at", "tok/s", "running", "TTFT", "waiting", "KV", "hit", "peak"),
    *("prefill", "GPU", "vCPU", "VRAM GiB", "W"),
)
"""The columns, those that a narrow terminal shows first."""

_GAP = 3
"""Cells between two columns."""

_ABOUT = ("at_s", "known_ratio", "simulated")
SERIES = tuple(field.name for field in fields(HistoryPoint) if field.name not in _ABOUT)


@click.command()
@click.option("--since", default="1h", show_default=True, metavar="2h", help="As far back, to 24h.")
@click.option("--points", type=click.IntRange(1, 5000), help="At most so many points.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV; what is not known is empty.")
@json_option
@click.pass_obj
def command(
    invocation: Invocation, *, since: str, points: int | None, as_csv: bool, as_json: bool
) -> None:
    """How fast it was, point by point; a gap stays a gap. Starts nothing."""
    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other")
    most = points or (SCRIPT_POINTS if as_csv or as_json else TABLE_POINTS)
    history = asyncio.run(_read(invocation.paths, since_seconds(since), most))
    if as_json:
        print_json(history)
    elif as_csv:
        click.echo(as_csv_text(history), nl=False)
    else:
        print_rich(invocation, _table(history, terminal_width()))
    if history.trouble is not None:
        note(f"The disk takes no history: {history.trouble}")


async def _read(paths: Paths, since_s: float, points: int) -> History:
    async with await connect(paths) as client:
        return await client.history(since_s, points=points)


def as_csv_text(history: History) -> str:
    """The points as CSV: begin, seconds, every series, which are estimates, what is SIMULATED."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["at", "seconds", "known_ratio", *SERIES, "estimated", "gap", "simulated"])
    for point in history.points:
        values = {name: getattr(point, name) for name in SERIES}
        numbers = [number(value) for value in values.values()]
        estimated = " ".join(name for name, value in values.items() if is_estimate(value))
        rate_now = point.generation_tokens_per_s
        table.writerow(
            [
                iso_utc(point.at_s),
                history.step_s,
                point.known_ratio,
                *("" if value is None else value for value in numbers),
                estimated,
                rate_now.reason if isinstance(rate_now, Missing) else "",
                "SIMULATED" if point.simulated else "",
            ]
        )
    return text.getvalue()


def _table(history: History, width: int) -> RenderableType:
    """As many columns as fit with whole figures, the most telling first."""
    from rich import box
    from rich.table import Table

    rows = [_cells(point) for point in history.points]
    simulated = any(point.simulated for point in history.points)
    names = _fitting(rows, width - (len("SIMULATED") + _GAP if simulated else 0))
    left_out = "" if len(names) == len(_cells(None)) else "; all columns with --csv or --json"
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        pad_edge=False,
        show_edge=False,
        caption=printable(f"a point is {duration(history.step_s)}{left_out}"),
        caption_justify="left",
    )
    for name in names:
        table.add_column(name, justify="left" if name == "at" else "right", no_wrap=True)
    if simulated:
        table.add_column("engine", no_wrap=True)
    for point, cells in zip(history.points, rows, strict=True):
        engine = ["SIMULATED" if point.simulated else ""] if simulated else []
        table.add_row(*(printable(cells[name]) for name in names), *engine)
    return table


def _fitting(rows: Sequence[Mapping[str, str]], width: int) -> list[str]:
    """The columns that fit beside each other, in their own order."""
    left, fitting = width + _GAP, []
    for name in _BY_WORTH:
        left -= max(map(len, (name, *(row[name] for row in rows)))) + _GAP
        if left < 0:
            break
        fitting.append(name)
    return [name for name in _cells(None) if name in fitting]


def _cells(point: HistoryPoint | None) -> dict[str, str]:
    """The row of a point; the columns' names where there is none."""
    names = ("at", "tok/s", "peak", "prefill", "running", "waiting", "hit", "KV", "TTFT", "vCPU")
    if point is None:
        return dict.fromkeys((*names, "GPU", "VRAM GiB", "W"), "")
    at = datetime.fromtimestamp(point.at_s).astimezone()
    return {
        "at": at.strftime("%m-%d %H:%M:%S"),
        "tok/s": shown(point.generation_tokens_per_s, rate),
        "peak": shown(point.generation_peak_tokens_per_s, rate),
        "prefill": shown(point.prefill_tokens_per_s, rate),
        "running": shown(point.running, rate),
        "waiting": shown(point.waiting, rate),
        "hit": shown(point.cache_hit_ratio, percent),
        "KV": shown(point.kv_held_ratio, percent),
        "TTFT": shown(point.ttft_s, latency),
        "vCPU": shown(point.cpu_used_vcpu, rate),
        "GPU": shown(point.gpu_utilization_ratio, percent),
        "VRAM GiB": shown(point.gpu_memory_used_bytes, gibibytes),
        "W": shown(point.gpu_power_w, rate),
    }
