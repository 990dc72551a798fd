"""What a rehearsed day's screens are drawn from: its history has each second's own speed."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from a40console.model.control import History
from a40console.model.figures import number
from a40console.paths import Paths, locate
from a40console.profiles.loader import load_profiles
from a40console.rehearsal.day import Rehearsal, rehearse
from a40console.rehearsal.exhibit import Exhibit

SECONDS = 40
PROFILE = "sim-a40-qwen3-coder-30b"


@pytest.fixture
def paths() -> Iterator[Paths]:
    home = tempfile.mkdtemp(prefix="a40x", dir="/tmp")
    yield locate({"A40CONSOLE_HOME": home})
    shutil.rmtree(home)


@pytest.fixture(scope="module")
def day() -> Rehearsal:
    profile = load_profiles(Path("/nonexistent")).find(PROFILE)
    return asyncio.run(rehearse(profile, seconds=SECONDS))


async def told(day: Rehearsal, paths: Paths) -> History:
    client = Exhibit(day, paths).client()
    try:
        return await client.history(-900.0)
    finally:
        await client.close()


async def test_its_seconds_add_up_to_what_the_engine_generated(
    day: Rehearsal, paths: Paths
) -> None:
    points = (await told(day, paths)).points
    assert len(points) == SECONDS
    speeds = [number(point.generation_tokens_per_s) or 0.0 for point in points]
    counted = [number(speed.generation_tokens_per_s) or 0.0 for speed in day.speeds]
    assert speeds == pytest.approx(counted)
    means = [number(one.throughput.generation_tokens_per_s) or 0.0 for one in day.snapshots]
    assert max(speeds) > max(means), "a second's own speed is no mean of five"


async def test_its_runs_are_those_that_others_wrote_down_and_marked(
    day: Rehearsal, paths: Paths
) -> None:
    client = Exhibit(day, paths).client()
    try:
        runs = await client.runs()
        assert runs
        assert all(run.reference for run in runs)
        assert (await client.run(runs[0].id)).id == runs[0].id
        assert await client.hypotheses()
        assert await client.run_records(runs[0].id) == (0, ())
    finally:
        await client.close()
