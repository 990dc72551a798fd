"""`a40console runs compare`: two runs side by side, and what may be said of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import floor, log10

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json, print_lines, text_width
from a40console.commands.run_text import fact_lines
from a40console.commands.running import ensure_service
from a40console.commands.runs_named import run_id
from a40console.model.figures import Missing, number
from a40console.model.run import ArmRatio, Comparison, Difference, Run
from a40console.model.run_facts import title
from a40console.model.run_result import Cell, Column, Table
from a40console.model.run_words import figure_name, interval_text, marks
from a40console.tui.ink import Line, Role, wrap
from a40console.tui.panels.result_table import table_lines

_MOST_DIGITS = 4
_WEIGHTS = {
    "variable": "What differs, and an effect could be its",
    "environment": "What differs of where they were made",
    "note": "What differs, and no effect can be its",
}


@click.command("compare")
@click.argument("left", metavar="RUN")
@click.argument("right", metavar="RUN")
@json_option
@click.pass_obj
def compare_runs(invocation: Invocation, *, left: str, right: str, as_json: bool) -> None:
    """Two runs side by side, the second over the first; every setting that differs is named.

    Where more than one variable differs, no effect is told.
    """
    comparison, sides = asyncio.run(_read(invocation, left, right))
    if as_json:
        print_json(comparison)
        return
    print_lines(invocation, lines(comparison, sides, text_width()))


async def _read(
    invocation: Invocation, left: str, right: str
) -> tuple[Comparison, tuple[Run, Run]]:
    async with await ensure_service(invocation.paths, engine=False) as client:
        names = await run_id(client, left), await run_id(client, right)
        sides = await client.run(names[0]), await client.run(names[1])
        return await client.compare_runs(*names), sides


def lines(comparison: Comparison, sides: tuple[Run, Run], width: int) -> list[Line]:
    """The comparison: both runs, what differs, the ratios, and what may be said."""
    facts = [
        (name, ", ".join((run.id, *marks(run), title(run))))
        for name, run in zip(("left", "right"), sides, strict=True)
    ]
    told = fact_lines(facts, width)
    role = Role.GOOD if comparison.attributable else Role.WARN
    told += [(), *wrap(comparison.verdict, width, role)]
    for weight, name in _WEIGHTS.items():
        differing = [each for each in comparison.differences if each.weight == weight]
        if differing:
            told += [(), *table_lines(_differences(name, differing), width)]
    return [*told, *_ratio_lines(comparison.ratios, width)]


def _ratio_lines(ratios: Sequence[ArmRatio], width: int) -> list[Line]:
    """A table for each figure, arm by arm; why ratios are missing is said once."""
    told: list[Line] = []
    for figure in dict.fromkeys(each.figure for each in ratios):
        table = _ratios(figure, [each for each in ratios if each.figure == figure])
        told += [(), *table_lines(table, width, reasons=False)]
    missing = {each.ratio.reason: None for each in ratios if isinstance(each.ratio, Missing)}
    for reason in missing:
        told += wrap(f"– {reason}", width, Role.MUTED, indent=2)
    return told


def _differences(name: str, differing: list[Difference]) -> Table:
    return Table(
        title=name,
        columns=(Column(title="setting"), Column(title="left"), Column(title="right")),
        rows=tuple((each.name, each.left or "–", each.right or "–") for each in differing),
    )


def _ratios(figure: str, ratios: Sequence[ArmRatio]) -> Table:
    digits = _digits(ratios)
    return Table(
        title=f"{figure_name(figure)}, right over left",
        columns=(
            Column(title="arm"),
            Column(title="left", digits=digits),
            Column(title="right", digits=digits),
            Column(title="ratio"),
        ),
        rows=tuple((each.arm, each.left, each.right, _ratio(each)) for each in ratios),
    )


def _digits(ratios: Sequence[ArmRatio]) -> int:
    """Decimals with which the least of the figures still has three digits."""
    known = [number(side) for each in ratios for side in (each.left, each.right)]
    least = min((abs(value) for value in known if value), default=1.0)
    return max(0, min(_MOST_DIGITS, 2 - floor(log10(least))))


def _ratio(of: ArmRatio) -> Cell:
    return of.ratio if isinstance(of.ratio, Missing) else interval_text(of.ratio)
