"""What is seen to before anything stops: on models and disks that a test lays down."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from a40console.engines import weights
from a40console.engines.fit_result import unknown
from a40console.errors import RefusedError
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.model.profile import ModelFile, Placement, Profile
from a40console.operations.models import ModelStore
from a40console.operations.preflight import Preflight
from a40console.operations.room import hopeless
from a40console.operations.status import EngineStatus
from a40console.paths import Paths, locate
from tests.operations.test_operator import SleepStarter

SERVING = EngineStatus(
    state=EngineState.SERVING, profile=Profile(name="old", kind="sim", model="m")
)
CONTENT = b"weights"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return locate({"A40CONSOLE_HOME": str(tmp_path)})


def pinned(sha256: str = hashlib.sha256(CONTENT).hexdigest()) -> Profile:
    file = ModelFile(repo="o/r", file="m.gguf", sha256=sha256, size_bytes=len(CONTENT))
    return Profile(name="new", kind="llamacpp", model="m.gguf", file=file)


class Seen:
    """What the preflight said and wrote."""

    def __init__(self, paths: Paths) -> None:
        self.told: list[str] = []
        self.events: dict[str, dict[str, str]] = {}
        self.preflight = Preflight(paths, SleepStarter(paths), self.record)

    def record(
        self, kind: str, text: str, severity: str = "info", data: dict[str, str] | None = None
    ) -> None:
        self.events[kind] = {"text": text, **(data or {})}

    async def demand(self, profile: Profile) -> None:
        await self.preflight.demand(profile, SERVING, self.told.append)


async def test_what_was_seen_is_written_down(paths: Paths) -> None:
    seen = Seen(paths)
    await seen.demand(Profile(name="new", kind="sim", model="m"))
    found = seen.events["engine.preflight"]
    assert found["command line"] == "passed: 1 to try"
    assert found["model"] == "skipped: a simulated engine has none"
    assert found["shared memory"].startswith("skipped: one worker needs none")


async def test_a_machine_that_cannot_run_it_is_refused(paths: Paths) -> None:
    seen = Seen(paths)
    with pytest.raises(RefusedError, match="cannot run here"):
        await seen.demand(Profile(name="impossible", kind="sim", model="m"))
    assert seen.events == {}


async def test_every_rung_needs_a_command_line(paths: Paths) -> None:
    ladder = (Placement(max_model_len=1), Placement(arguments=("--port", "1")))
    profile = Profile(name="new", kind="sim", model="m", placements=ladder)
    with pytest.raises(RefusedError, match=r"sets the engine's address itself \(placement 2\)"):
        await Seen(paths).demand(profile)


async def test_a_model_that_is_on_no_hub_and_not_here_is_refused(paths: Paths) -> None:
    profile = Profile(name="new", kind="vllm", model="/nowhere/model", executable="/bin/true")
    with pytest.raises(RefusedError, match="The model of new is not here") as refused:
        await Seen(paths).demand(profile)
    assert "/nowhere/model" in refused.value.evidence


async def test_a_model_that_is_missing_is_fetched_while_the_old_one_serves(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fetch(file: ModelFile, folder: Path, progress: weights.Progress) -> Path:
        progress(3, len(CONTENT))
        target = folder / file.file
        target.write_bytes(CONTENT)
        return target

    monkeypatch.setattr(weights, "ensure_file", fetch)
    seen = Seen(paths)
    await seen.demand(pinned())
    assert seen.told[0] == "looking ahead"
    assert any(text.startswith("fetching 0 of 0 MB") for text in seen.told)
    assert "old serves meanwhile" in seen.events["model.fetching"]["text"]
    assert seen.events["engine.preflight"]["model"].startswith("passed: m.gguf is here")


async def test_a_model_that_does_not_come_is_refused(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fetch(*anything: Any) -> Path:
        raise RefusedError("the hub does not answer")

    monkeypatch.setattr(weights, "ensure_file", fetch)
    with pytest.raises(RefusedError, match="the hub does not answer"):
        await Seen(paths).demand(pinned())


async def test_a_damaged_model_is_refused(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    find = ModelStore.find
    monkeypatch.setattr(
        ModelStore, "find", lambda store, name: replace(find(store, name), state="damaged")
    )
    with pytest.raises(RefusedError, match="The model of new is damaged") as refused:
        await Seen(paths).demand(pinned())
    assert refused.value.remedy == "Fetch it anew: a40console models fetch new"


@pytest.mark.parametrize(
    ("needed", "room", "without_hope"),
    [(100, 50, True), (100, 95, False), (100, Missing("not read"), False)],
)
def test_only_what_misses_by_more_than_a_prediction_may_be_wrong_is_refused(
    needed: float, room: Any, without_hope: bool
) -> None:
    fit = unknown(
        Profile(name="new", kind="vllm", model="m"),
        "",
        verdict="too_large",
        needed_bytes=needed,
        room_bytes=room,
    )
    assert hopeless(fit) is without_hope


async def test_what_can_be_told_at_once_is_told_without_a_trace(paths: Paths) -> None:
    seen = Seen(paths)
    await seen.preflight.foresee(Profile(name="new", kind="sim", model="m"))
    await seen.preflight.foresee(pinned())  # it would be fetched by the switch
    with pytest.raises(RefusedError, match="cannot run here"):
        await seen.preflight.foresee(Profile(name="impossible", kind="sim", model="m"))
    with pytest.raises(RefusedError, match="is not here"):
        await seen.preflight.foresee(Profile(name="new", kind="vllm", model="/nowhere/m"))
    assert (seen.events, seen.told) == ({}, [])
    assert not paths.models.exists()
