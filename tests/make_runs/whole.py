"""Runs, each in another state or of another experiment."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from a40console.model.figures import Estimated, Missing
from a40console.model.run import Note, Run, RunProgress, RunSpec, RunTarget
from a40console.model.run_result import Column, Doubt, RunResult, Table, Verdict
from tests.make_runs.results import compaction_result, regimes_result, sweep_result
from tests.make_runs.settings import environment, plan


def run(**changes: Any) -> Run:
    """A finished compaction on a real engine."""
    values: dict[str, Any] = {
        "id": "20261130-094501-compaction-1f3a",
        "spec": RunSpec(experiment="compaction", seed=7, max_usd=Decimal("2.50")),
        "state": "done",
        "asked_at": "2026-11-30T09:45:01Z",
        "started_at": "2026-11-30T09:45:02Z",
        "ended_at": "2026-11-30T11:27:41Z",
        "settled": {"turns": "120", "repeats": "3", "thresholds": "48000,96000"},
        "environment": environment(),
        "plan": plan(),
        "result": compaction_result(),
    }
    return Run(**(values | changes))


compaction = run


def sweep(**changes: Any) -> Run:
    """1 to 32 streams; the knee is named."""
    values: dict[str, Any] = {
        "id": "20261130-081200-sweep-77b0",
        "spec": RunSpec(experiment="sweep"),
        "asked_at": "2026-11-30T08:12:00Z",
        "started_at": "2026-11-30T08:12:00Z",
        "ended_at": "2026-11-30T08:16:31Z",
        "settled": {"streams": "1,2,4,8,16,32", "output_tokens": "512"},
        "result": sweep_result(),
        "copied_to": ("laptop",),
    }
    return run(**(values | changes))


def regimes(**changes: Any) -> Run:
    """Prose and code edit against speculation settings."""
    values: dict[str, Any] = {
        "id": "20261129-201500-regimes-0c4e",
        "spec": RunSpec(experiment="regimes", accept_intrusion=True, note="after the driver"),
        "asked_at": "2026-11-29T20:15:00Z",
        "started_at": "2026-11-29T20:15:01Z",
        "ended_at": "2026-11-29T20:41:12Z",
        "settled": {"regimes": "prose,code edit", "depths": "5", "streams": "1"},
        "result": regimes_result(),
        "notes": (Note(at="2026-11-29T21:00:00Z", text="Same as by hand in November."),),
    }
    return run(**(values | changes))


def lossless(**changes: Any) -> Run:
    """A check that failed, with the fragment that shows it."""
    result = RunResult(
        headline="2 of 24 probes are corrupt with speculation",
        verdict=Verdict(
            kind="failed", text="Greedy output with speculation is not what it is without."
        ),
        tables=(
            Table(
                title="Probes",
                columns=(Column(title="outcome"), Column(title="probes", digits=0)),
                rows=(("exact", 20), ("near-tie", 2), ("corrupt", 2)),
            ),
        ),
        excerpts=("return a -b):\n    return a -",),
    )
    values: dict[str, Any] = {
        "id": "20261129-190000-lossless-d1e2",
        "spec": RunSpec(experiment="lossless"),
        "asked_at": "2026-11-29T19:00:00Z",
        "started_at": "2026-11-29T19:00:00Z",
        "ended_at": "2026-11-29T19:04:00Z",
        "settled": {"probes": "24"},
        "result": result,
    }
    return run(**(values | changes))


def partial(**changes: Any) -> Run:
    """Cancelled in its third arm."""
    whole = compaction_result()
    result = replace(
        whole,
        headline="cancelled in per-turn, turn 34: 3 of 5 arms",
        verdict=Verdict(kind="none", text="No verdict: only one repeat of every arm was measured."),
        tables=(replace(whole.tables[0], rows=whole.tables[0].rows[:3]),),
        doubts=(),
    )
    values: dict[str, Any] = {
        "id": "20261130-120000-compaction-2b2b",
        "state": "partial",
        "reason": "cancelled by the operator",
        "asked_at": "2026-11-30T12:00:00Z",
        "started_at": "2026-11-30T12:00:00Z",
        "ended_at": "2026-11-30T12:31:12Z",
        "result": result,
    }
    return run(**(values | changes))


def invalid(**changes: Any) -> Run:
    """A sweep whose client was saturated: nothing of it may be believed."""
    found = sweep_result()
    doubt = Doubt(
        code="client-saturated",
        text="The client used 0.93 of a core; its loop lagged 41 ms at the 99th percentile.",
        invalidates=True,
        arm="32",
    )
    values: dict[str, Any] = {
        "id": "20261130-083000-sweep-9e90",
        "state": "invalid",
        "reason": "the client was saturated",
        "asked_at": "2026-11-30T08:30:00Z",
        "started_at": "2026-11-30T08:30:00Z",
        "ended_at": "2026-11-30T08:34:00Z",
        "result": replace(found, doubts=(doubt,)),
    }
    return sweep(**(values | changes))


def simulated(**changes: Any) -> Run:
    """The compaction on the simulated A40."""
    values: dict[str, Any] = {
        "id": "20261130-140000-compaction-51a0",
        "asked_at": "2026-11-30T14:00:00Z",
        "started_at": "2026-11-30T14:00:00Z",
        "ended_at": "2026-11-30T14:20:00Z",
        "environment": environment(
            simulated=True,
            engine_kind="sim",
            engine_version="0.1.0",
            gpu="SIMULATED A40",
            model="sim-coder",
        ),
    }
    return run(**(values | changes))


def reference(**changes: Any) -> Run:
    """A table of the seeds, imported."""
    found = sweep_result()
    table = replace(found.tables[0], rows=(found.tables[0].rows[0], *found.tables[0].rows[2:]))
    unknown = Missing("not written down")
    values: dict[str, Any] = {
        "id": "20261115-000000-sweep-seed3",
        "asked_at": "2026-11-15T00:00:00Z",
        "started_at": unknown,
        "ended_at": unknown,
        "settled": {"streams": "1,4,8,16,32"},
        "environment": environment(
            console="none", engine_version="0.27.1", driver=unknown, host=unknown, argv=()
        ),
        "plan": Missing("not planned"),
        "result": replace(found, tables=(table,)),
        "reference": True,
        "origin": "the seeds' session 3",
        "copied_to": (),
    }
    return sweep(**(values | changes))


def running(**changes: Any) -> Run:
    """Under way, without a result."""
    values: dict[str, Any] = {
        "id": "20261130-150000-compaction-aa01",
        "state": "running",
        "asked_at": "2026-11-30T15:00:00Z",
        "started_at": "2026-11-30T15:00:01Z",
        "ended_at": Missing("it has not ended"),
        "progress": RunProgress(
            arm="per-turn",
            done=634,
            total=1860,
            text="turn 34 of 120",
            elapsed_s=2010.0,
            eta_s=Estimated(3890.0),
            usd=Estimated(0.246),
        ),
        "result": Missing("it has not ended"),
    }
    return run(**(values | changes))


def queued(**changes: Any) -> Run:
    """Waits for the one that runs; against a URL."""
    target = RunTarget(kind="url", url="http://127.0.0.1:8000", model="smollm2")
    values: dict[str, Any] = {
        "id": "20261130-150200-protocol-00f1",
        "spec": RunSpec(experiment="protocol", preset="quick", target=target, when="idle"),
        "state": "queued",
        "asked_at": "2026-11-30T15:02:00Z",
        "started_at": Missing("it has not started"),
        "ended_at": Missing("it has not ended"),
        "settled": {},
        "environment": Missing("it has not started"),
        "result": Missing("it has not ended"),
    }
    return run(**(values | changes))


def failed(**changes: Any) -> Run:
    """The engine died in the first arm."""
    values: dict[str, Any] = {
        "id": "20261130-070000-sweep-dead",
        "state": "failed",
        "reason": "the engine ended in arm 1: CUDA out of memory",
        "asked_at": "2026-11-30T07:00:00Z",
        "started_at": "2026-11-30T07:00:00Z",
        "ended_at": "2026-11-30T07:00:41Z",
        "result": Missing("it measured nothing usable"),
        "copied_to": (),
    }
    return sweep(**(values | changes))


def several() -> tuple[Run, ...]:
    """A ledger with one of each, the newest first."""
    made = (
        run(),
        sweep(),
        regimes(),
        lossless(),
        partial(),
        invalid(),
        simulated(),
        reference(),
        running(),
        queued(),
        failed(),
    )
    return tuple(sorted(made, key=lambda each: each.id, reverse=True))
