"""Which way a change of speculation goes, and that one whose answers are not well is taken back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from a40console.engines.plugin_folder import WORKER_EXTENSION
from a40console.errors import CheckFailedError, RefusedError, UsageError
from a40console.model.engine import EngineState
from a40console.model.profile import Profile, Speculation
from a40console.operations import desire
from a40console.operations.canary import CanaryCheck, CanaryReport
from a40console.operations.live_speculation import LiveSpeculation, NotWellError
from a40console.operations.record import TOKEN_FILE, RunRecord
from a40console.operations.status import EngineStatus
from tests.sim.engine_process import TOKEN, SimProcess, sim_process

ASKED = Speculation(tokens=5, start="off")
PROFILE = Profile(name="p", kind="sim", model="x/qwen3-coder-30b", speculation=ASKED)
SPECULATIVE = '{"method":"ngram","num_speculative_tokens":5}'


@pytest.fixture(scope="module")
def engine() -> Iterator[SimProcess]:
    words = ("--speculative-config", SPECULATIVE, "--worker-extension-cls", WORKER_EXTENSION)
    with sim_process(*words, "--speed", "20") as made:
        yield made


@dataclass
class Bench:
    runs: Path
    socket: str
    well: bool = True
    asked: int = 0
    events: list[tuple[str, str, str, dict[str, str]]] = field(default_factory=list)

    def status(self, profile: Profile = PROFILE, started: Profile | None = None) -> EngineStatus:
        run = RunRecord(
            id="run",
            profile=started or profile,
            base_url="http://localhost",
            socket_path=self.socket,
            plugin=True,
            argv=(),
            argv_digest="",
            started_at="2026-11-30T00:00:00.000Z",
        )
        folder = run.folder(self.runs)
        folder.mkdir(exist_ok=True)
        (folder / TOKEN_FILE).write_text(TOKEN)
        return EngineStatus(state=EngineState.SERVING, profile=profile, run=run)

    async def canary(self, status: EngineStatus) -> CanaryReport:
        self.asked += 1
        check = CanaryCheck("completion", self.well, "fragments come out again")
        return CanaryReport(passed=self.well, checks=(check,), seconds=0.1)

    def record(self, kind: str, text: str, severity: str = "info", data: Any = None) -> None:
        self.events.append((kind, text, severity, data))

    @property
    def speculation(self) -> LiveSpeculation:
        return LiveSpeculation(
            runs=self.runs, canary=self.canary, recorder=self.record, clock=time.monotonic
        )

    async def turn(self, mode: str) -> dict[str, str]:
        way = await self.speculation.way(self.status(), mode)
        assert way.how == "live"
        return await self.speculation.turn(self.status(), way)


@pytest.fixture
def bench(engine: SimProcess, tmp_path: Path) -> Bench:
    return Bench(tmp_path, str(engine.socket))


async def test_on_off_and_a_depth_are_live(bench: Bench) -> None:
    await bench.turn("off")
    for mode, after in (("on", "5"), ("2", "2"), ("off", "off")):
        result = await bench.turn(mode)
        assert (result["how"], result["after"]) == ("live", after)
        assert float(result["took_s"]) < 1.0
    kinds = {event[0] for event in bench.events}
    assert kinds == {"speculation.changed"}
    _, text, severity, data = bench.events[-1]
    assert text == "speculation off, was 2 (live)"
    assert severity == "info"
    assert (data["before"], data["after"], data["result"]) == ("2", "off", "from the next pass on")
    assert data["canary"].startswith("completion passed")


async def test_what_is_so_already_is_no_event_and_asks_no_canary(bench: Bench) -> None:
    await bench.turn("off")
    bench.events.clear()
    asked = bench.asked
    assert (await bench.turn("off"))["report"] == "Speculation was off already."
    assert bench.events == []
    assert bench.asked == asked


async def test_a_depth_whose_answers_are_not_well_is_taken_back(bench: Bench) -> None:
    await bench.turn("2")
    bench.well = False
    with pytest.raises(CheckFailedError) as failed:
        await bench.turn("on")
    assert failed.value.message.endswith("with speculation 5; it is back at 2")
    assert failed.value.evidence == "completion: fragments come out again"
    assert isinstance(failed.value, NotWellError)
    assert not failed.value.stays
    assert bench.events[-1][2] == "error"
    bench.well = True
    assert (await bench.turn("off"))["before"] == "2"


async def test_off_stays_off_even_where_the_canary_fails(bench: Bench) -> None:
    await bench.turn("on")
    bench.well = False
    with pytest.raises(NotWellError, match=r"not well with speculation off$") as failed:
        await bench.turn("off")
    assert failed.value.stays
    bench.well = True
    assert (await bench.turn("on"))["before"] == "off"


async def test_the_profile_begins_where_it_was_turned_to(bench: Bench) -> None:
    way = await bench.speculation.way(bench.status(), "3")
    assert way.profile.speculation == replace(ASKED, enabled=True, start=3)


COLD = replace(PROFILE, speculation=Speculation(tokens=5))


@pytest.mark.parametrize(
    ("started", "mode", "why"),
    [
        (PROFILE, "6", "6 is deeper than the 5 that it was started with"),
        (COLD, "on", "it was started without speculation"),
        (
            replace(PROFILE, plugin=False, speculation=Speculation(tokens=5, enabled=True)),
            "off",
            "live changes need vLLM with our plugin, and n-gram drafts",
        ),
        (
            replace(PROFILE, speculation=Speculation(tokens=5, enabled=True, method="eagle3")),
            "off",
            "live changes need vLLM with our plugin, and n-gram drafts",
        ),
    ],
)
async def test_what_cannot_be_live_says_why(
    bench: Bench, started: Profile, mode: str, why: str
) -> None:
    way = await bench.speculation.way(bench.status(started), mode)
    assert (way.how, way.why) == ("restart", why)


async def test_an_engine_that_does_not_answer_is_restarted(bench: Bench) -> None:
    bench.socket = "/nonexistent/engine.sock"
    way = await bench.speculation.way(bench.status(), "on")
    assert way.how == "restart"
    assert way.why


async def test_off_for_an_engine_without_it_is_refused(bench: Bench) -> None:
    with pytest.raises(RefusedError, match="off already"):
        await bench.speculation.way(bench.status(COLD), "off")


async def test_a_locked_profile_and_a_mode_that_means_nothing(bench: Bench) -> None:
    locked = replace(PROFILE, speculation=replace(ASKED, locked="it corrupts code"))
    with pytest.raises(RefusedError) as refused:
        await bench.speculation.way(bench.status(locked), "off")
    assert refused.value.evidence == "it corrupts code"
    with pytest.raises(UsageError):
        await bench.speculation.way(bench.status(), "maybe")


async def test_a_restart_is_told_like_a_live_change(bench: Bench) -> None:
    way = await bench.speculation.way(bench.status(), "9")
    result = bench.speculation.restarted(way, "off")
    assert result == {"how": "restart", "before": "off", "after": "9", "why": way.why}
    assert bench.events[-1][1] == "speculation 9, was off (by restart)"


def test_what_was_turned_is_kept_for_a_service_that_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "desired.json"
    turned = replace(PROFILE, speculation=replace(ASKED, enabled=True, start=3))
    desire.remember(file, turned)
    assert desire.turned_since(PROFILE, file) == turned
    other = replace(PROFILE, name="q")
    assert desire.turned_since(other, file) == other
    assert desire.turned_since(None, file) is None
