"""What each arm of a run has done so far, as its records tell it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from a40console.tui import format as fmt
from a40console.tui.format import shown
from a40console.tui.ink import Line, Role, Span, clean, fit, line, wrap
from a40console.tui.run_watch import ArmWatch

_EDGE = "  "
_ARM_HEADS = ("requests", "errors", "mean s", "TTFT s", "tok/s", "wall", "cost", "repeats")
_ARM_CELL = 9
_LONGEST_ARM = 22


def arms(
    watched: Sequence[ArmWatch], letters: Mapping[str, tuple[str, Role]], width: int
) -> list[Line]:
    """What each arm has done so far, with the letter of its curve."""
    if not watched:
        return []
    longest = min(_LONGEST_ARM, max(len(arm.name) for arm in watched))
    count = max(2, (width - longest - 4) // _ARM_CELL)
    head = f"    {'arm':<{longest}}{_in_cells(_ARM_HEADS[:count])}"
    lines = [line(Span(head, Role.MUTED))]
    for arm in watched:
        letter, role = letters.get(arm.name, (" ", Role.TEXT))
        requests, errors, *others = _arm_cells(arm)[:count]
        lines.append(
            line(
                Span(f"  {letter} ", role),
                f"{clean(arm.name)[:longest]:<{longest}}{_in_cells([requests])}",
                Span(_in_cells([errors]), Role.BAD if arm.errors else Role.TEXT),
                _in_cells(others),
            )
        )
    return [fit(entry, width) for entry in (*lines, *troubles(watched, width))]


def troubles(watched: Sequence[ArmWatch], width: int) -> list[Line]:
    """What went wrong last in each arm where anything did."""
    lines: list[Line] = []
    for arm in watched:
        if arm.last_error:
            said = wrap(clean(f"✖ {arm.name}: {arm.last_error}"), width - 2, Role.BAD, indent=2)
            lines += [line(_EDGE, row) for row in said]
    return lines


def _in_cells(texts: Sequence[str]) -> str:
    return "".join(f"{text:>{_ARM_CELL}}" for text in texts)


def _arm_cells(arm: ArmWatch) -> list[str]:
    """As `_ARM_HEADS` names them; the last ones are of the repeats that have ended."""
    ended = arm.repeats_ended > 0
    counts = [fmt.count(arm.requests), fmt.count(arm.errors)]
    if not arm.drawn and not ended:
        return [*counts, *[""] * (len(_ARM_HEADS) - len(counts))]
    return [
        *counts,
        *(shown(arm.mean(measure), fmt.rate) for measure in range(3)),
        fmt.duration(arm.wall_s) if ended else fmt.DASH,
        shown(arm.usd, fmt.dollars) if ended else fmt.DASH,
        fmt.count(arm.repeats_ended),
    ]
