"""An arm that began with one engine and ended with another is not believed."""

from __future__ import annotations

import pytest

from a40console.model.figures import Figure, Missing
from a40console.model.run import RunTarget, TargetKind
from a40console.service.run_bench import _of_another_engine

BEFORE: dict[str, Figure] = {"requests": 10, "generated_tokens": 500.0, "drafts": Missing("off")}
GONE = dict.fromkeys(BEFORE, Missing("connection refused"))


@pytest.mark.parametrize("kind", ["engine", "gateway", "url"])
def test_counters_that_fell_are_those_of_another_start(kind: TargetKind) -> None:
    after: dict[str, Figure] = {"requests": 2, "generated_tokens": 700.0, "drafts": Missing("off")}
    doubt = _of_another_engine("a", RunTarget(kind=kind), BEFORE, after)
    assert doubt is not None
    assert doubt.invalidates
    assert (doubt.code, doubt.arm) == ("engine-restarted", "a")


@pytest.mark.parametrize(("kind", "fatal"), [("engine", True), ("gateway", True), ("url", False)])
def test_counters_that_are_gone_are_told(kind: TargetKind, fatal: bool) -> None:
    doubt = _of_another_engine("a", RunTarget(kind=kind), BEFORE, GONE)
    assert doubt is not None
    assert doubt.invalidates is fatal


@pytest.mark.parametrize("before", [BEFORE, GONE, {}])
def test_counters_that_rose_or_never_were_there_are_no_doubt(before: dict[str, Figure]) -> None:
    after: dict[str, Figure] = {**BEFORE, "requests": 12} if before is BEFORE else dict(before)
    assert _of_another_engine("a", RunTarget(), before, after) is None
