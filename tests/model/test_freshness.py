"""A speed beside nothing that decodes says over which seconds it is the mean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a40console.commands.bar import bar
from a40console.commands.verdict import verdict_lines
from a40console.model.figures import Figure, Missing
from a40console.model.freshness import speed_unit
from a40console.model.request import Phase
from a40console.model.snapshot import Snapshot
from tests import make_snapshot as make

UNTOLD = Missing("the engine does not tell its requests")


def snapshot_of(phases: tuple[Phase, ...] | None, speed: Figure, running: Figure) -> Snapshot:
    base = make.snapshot()
    slots = None if phases is None else tuple(make.slot(phase=phase) for phase in phases)
    return replace(
        base,
        slots=UNTOLD if slots is None else slots,
        requests=replace(base.requests, running=running),
        throughput=replace(base.throughput, window_s=5.0, generation_tokens_per_s=speed),
    )


@pytest.mark.parametrize(("window_s", "unit"), [(0.4, "tok/s (0.4 s)"), (1.0, "tok/s (1 s)")])
def test_a_window_that_just_began_is_not_called_none(window_s: float, unit: str) -> None:
    snapshot = snapshot_of((), 400.0, 0)
    begun = replace(snapshot, throughput=replace(snapshot.throughput, window_s=window_s))
    assert speed_unit(begun) == unit


@pytest.mark.parametrize(
    ("phases", "speed", "running", "unit"),
    [
        (("decode", "prefill"), 400.0, 2, "tok/s"),
        ((), 400.0, 0, "tok/s (5 s)"),
        (("prefill", "queued"), 400.0, 1, "tok/s (5 s)"),
        ((), 0.0, 0, "tok/s"),
        ((), Missing("one reading so far"), 0, "tok/s"),
        (None, 400.0, 1, "tok/s"),
        (None, 400.0, 0, "tok/s (5 s)"),
        (None, 400.0, Missing("not exposed"), "tok/s"),
    ],
)
def test_the_window_is_named_where_nothing_decodes_any_more(
    phases: tuple[Phase, ...] | None, speed: Figure, running: Figure, unit: str
) -> None:
    snapshot = snapshot_of(phases, speed, running)
    assert speed_unit(snapshot) == unit
    if isinstance(speed, float):
        told = f"{speed:.0f} {unit}"
        assert f"{told}   " in verdict_lines(snapshot)[0]
        assert told in bar(snapshot, 200)
