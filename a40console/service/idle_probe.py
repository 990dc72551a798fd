"""`engine.probe`: the idle-silicon probe on the engine that serves, told with its figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from a40console.errors import RefusedError
from a40console.model.figures import Missing, number
from a40console.model.snapshot import Snapshot
from a40console.operations.idle_silicon import SECONDS, Probe, measure
from a40console.operations.probe_streams import ProbeStreams
from a40console.operations.record import RunRecord


async def probe_idle_silicon(
    run: RunRecord,
    runs: Path,
    read_snapshot: Callable[[], Snapshot | None],
    under_way: Callable[[], int],
    seconds: float | None,
) -> dict[str, str]:
    """Measure, and answer with speed, window and verdict.

    Raises:
        RefusedError: If the engine is not idle, or somebody's request comes meanwhile.
        NotServingError: If the engine does not answer as it should.
    """
    if busy := _busy(read_snapshot(), under_way(), 0):
        raise RefusedError(
            f"The probe needs the engine for itself: {busy}",
            remedy="Ask again when nothing runs, or drain it first: a40console engine drain",
        )
    streams = ProbeStreams(run.endpoint(runs), run.profile)
    try:
        probe = await measure(
            streams.stream,
            disturbed=lambda ours: _busy(read_snapshot(), under_way(), ours),
            seconds=SECONDS if seconds is None else seconds,
        )
    finally:
        await streams.close()
    return told(probe, simulated=run.profile.kind == "sim")


def told(probe: Probe, *, simulated: bool) -> dict[str, str]:
    """The probe in words."""
    mark = "SIMULATED: " if simulated else ""
    speeds = {f"tokens_per_s_at_{s.streams}": f"{s.tokens_per_s:.1f}" for s in probe.steps}
    windows = " + ".join(f"{step.window_s:.1f}" for step in probe.steps)
    idles = {True: "idle silicon", False: "no idle silicon", None: "not known"}[probe.idles]
    figures = ", ".join(f"{s.tokens_per_s:.1f} tok/s at {s.streams}" for s in probe.steps)
    return {
        "report": f"{mark}{probe.verdict()} ({figures}; windows {windows} s)",
        "verdict": f"{mark}{idles}",
        **speeds,
        "window_s": windows,
    }


def _busy(snapshot: Snapshot | None, clients: int, allowed: int) -> str:
    """Whose requests run beside so many of ours; empty for nobody's.

    What cannot be read is not nobody: then nothing is to be measured.
    """
    if clients:
        return f"{clients} of the gateway's requests run"
    if snapshot is None:
        return "how many requests run is not known: no snapshot was made yet"
    requests = snapshot.requests
    read = {"running": requests.running, "queued": requests.waiting}
    for name, figure in read.items():
        if isinstance(figure, Missing):
            return f"how many requests are {name} is not known: {figure.reason}"
    counts = {name: number(figure) or 0 for name, figure in read.items()}
    if sum(counts.values()) <= allowed:
        return ""
    told = ", ".join(f"{count:.0f} {name}" for name, count in counts.items() if count)
    return f"{told} in the engine, {allowed} of them ours" if allowed else f"{told} in the engine"
