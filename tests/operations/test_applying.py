"""What an edited profile is told to have come to, by the placement that serves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from a40console.model.engine import EngineState
from a40console.model.profile import Profile
from a40console.operations.applying import Edits, apply_edited
from a40console.operations.ladder import placed
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus
from a40console.paths import Paths, locate

TEXT = """
kind = "sim"
model = "m"
max_model_len = 600000
[[placements]]
max_model_len = 900000
[[placements]]
max_model_len = 65536
max_running = 4
"""
RAN = Profile(name="mine", kind="sim", model="m", max_model_len=262_144)


def status(profile: Profile, rung: int = 0) -> EngineStatus:
    run = RunRecord(
        id="a-start",
        profile=placed(profile, rung),
        base_url="http://localhost",
        socket_path=None,
        plugin=False,
        argv=("sim",),
        argv_digest="0" * 12,
        started_at="2026-11-30T12:00:00.000+00:00",
        asked=profile if rung else None,
        rung=rung,
    )
    return EngineStatus(state=EngineState.SERVING, profile=profile, run=run, rung=rung)


@dataclass
class Applying:
    """An engine that comes to serve on a rung of the edited profile."""

    paths: Paths
    rung: int
    now: EngineStatus
    told: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def note(self, kind: str, text: str, severity: str, data: dict[str, str]) -> None:
        assert kind == "profile.applied"
        self.told.append((text, data))

    async def replace(self, profile: Profile, drain_s: float | None) -> dict[str, str]:
        self.now = status(profile, self.rung)
        return {"profile": profile.name}

    async def take_over(self, profile: Profile) -> None:
        self.now = replace(self.now, profile=profile)

    async def apply(self) -> str:
        edits = Edits(
            self.paths,
            self.note,  # type: ignore[arg-type]
            self.replace,
            self.take_over,
            lambda: self.now,
        )
        return (await apply_edited(edits, self.now, "", None))["report"]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    found = locate({"A40CONSOLE_HOME": str(tmp_path)})
    found.profiles.mkdir(parents=True)
    (found.profiles / "mine.toml").write_text(TEXT)
    return found


async def test_what_serves_is_told_and_not_what_was_asked(paths: Paths) -> None:
    applying = Applying(paths, 2, status(RAN))
    report = await applying.apply()
    assert "max_model_len: 262144 → 65536" in report
    assert "max_model_len: 262144 → 600000" not in report
    assert "placement 2 of 2: max_model_len 65536, max_running 4 serves" in report
    assert report.endswith("max_running 4 serves, in place of max_model_len = 600000")
    ((text, data),) = applying.told
    assert "max_model_len: 262144 → 65536" in text
    assert "max_model_len = 65536" in data["after"]
    assert data["result"] == "placement 2 of 2: max_model_len 65536, max_running 4 serves"


async def test_the_same_placement_as_before_changes_nothing_that_runs(paths: Paths) -> None:
    first = Applying(paths, 2, status(RAN))
    await first.apply()
    text = TEXT.replace("600000", "500000")
    (paths.profiles / "mine.toml").write_text(text)
    again = Applying(paths, 2, first.now)
    report = await again.apply()
    assert report.startswith(
        "In force by a restart: what runs is what ran before; placement 2 of 2"
    )
    assert report.endswith("in place of max_model_len = 500000")


async def test_as_it_is_written_it_is_told_as_it_is_written(paths: Paths) -> None:
    applying = Applying(paths, 0, status(RAN))
    report = await applying.apply()
    assert "max_model_len: 262144 → 600000" in report
    assert "serves" not in report
    ((_, data),) = applying.told
    assert data["result"] == "in force"
