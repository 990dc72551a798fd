"""Telemetry follows the engine; what was measured of a start outlives its sleep, and no more."""

from __future__ import annotations

from pathlib import Path

from a40console.model.engine import EngineState
from a40console.model.profile import Profile
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus
from a40console.service.follower import EngineFollower


def serving(start: str, state: EngineState = EngineState.SERVING) -> EngineStatus:
    profile = Profile(name="mine", kind="sim", model="simulated/qwen3-coder-30b")
    run = RunRecord(
        id=start,
        profile=profile,
        base_url="http://127.0.0.1:9",
        socket_path=None,
        plugin=False,
        argv=("sim",),
        argv_digest="0" * 12,
        started_at="2026-11-30T12:00:00.000+00:00",
    )
    return EngineStatus(state=state, profile=profile, run=run)


async def test_speeds_outlive_a_sleep_and_not_a_start(tmp_path: Path) -> None:
    follower = EngineFollower(runs=tmp_path, period_s=60.0, on_event=lambda *_: None)
    follower.follow(serving("one"))
    assert follower.sampler is not None
    first = follower.sampler.speeds
    follower.follow(serving("one", EngineState.ASLEEP))
    assert follower.sampler is None
    follower.follow(serving("one"))
    assert follower.sampler is not None
    assert follower.sampler.speeds is first
    follower.follow(serving("two"))
    assert follower.sampler.speeds is not first
    await follower.close()
