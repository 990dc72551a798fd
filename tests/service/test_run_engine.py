"""An experiment steers the engine by the service, and is told why where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from a40console.errors import NoServiceError, RefusedError, TimedOutError
from a40console.experiments.bench import RunStoppedError
from a40console.model.control import CommandResult, Trouble
from a40console.model.engine import Endpoint
from a40console.model.figures import Missing
from a40console.model.profile import Profile, Speculation
from a40console.model.turning import TurningWay
from a40console.operations.record import RunRecord
from a40console.service import run_engine
from a40console.service.run_engine import NOT_OURS, RunEngine
from a40console.service.run_place import Place
from a40console.service.run_stop import Limits, RunStop
from tests import make_snapshot as make
from tests.sim.engine_process import sim_process

NOWHERE = Endpoint("http://engine", socket_path="/nowhere")


def record(speculation: Speculation | None = None) -> RunRecord:
    profile = Profile(name="a", kind="sim", model="x/y", speculation=speculation)
    return RunRecord(
        id="20261130-1",
        profile=profile,
        base_url="http://engine",
        socket_path="/nowhere",
        plugin=True,
        argv=(),
        argv_digest="",
        started_at="",
    )


def place(engine: RunRecord | None, endpoint: Endpoint = NOWHERE) -> Place:
    return Place(endpoint=endpoint, counters=endpoint, model="m", kind="sim", engine=engine)


@dataclass
class Service:
    """A service that is gone for some calls, and then answers."""

    gone: int = 0
    slow: int = 0
    """So many calls it carries out and answers too late."""

    way: TurningWay | None = None
    trouble: Trouble | None = None
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def _come_back(self) -> None:
        if self.gone:
            self.gone -= 1
            raise NoServiceError("No service answers")

    def _tarry(self) -> None:
        if self.slow:
            self.slow -= 1
            raise TimedOutError("The service does not answer in time")

    async def start(self, command: str, **arguments: str) -> CommandResult:
        self._come_back()
        self.asked.append((command, arguments))
        self._tarry()
        return CommandResult(command=command, id="1", state="running")

    async def result(self, command_id: str) -> CommandResult:
        self._come_back()
        state: Any = "refused" if self.trouble else "done"
        command = self.asked[-1][0]
        return CommandResult(command=command, id="1", state=state, trouble=self.trouble)

    async def speculation_way(self, mode: str) -> TurningWay:
        if self.way is None:
            raise RefusedError("a has no speculation", evidence="its profile names none")
        return self.way

    async def snapshot(self) -> Any:
        self._come_back()
        self._tarry()
        return make.snapshot()


@dataclass
class Steered:
    engine: RunEngine
    service: Service
    stop: RunStop
    moved: list[str] = field(default_factory=list)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_engine, "RETRY_S", 0.01)
    monkeypatch.setattr(run_engine, "POLL_S", 0.01)


def steered(service: Service, reach: Callable[[], Place]) -> Steered:
    stop = RunStop(asked=lambda: None, limits=Limits())
    moved: list[str] = []

    async def move() -> None:
        moved.append("moved")

    client: Any = service
    engine = RunEngine(run_id="run-1", service=client, place=reach, moved=move, stop=stop)
    return Steered(engine, service, stop, moved)


def live(how: Any = "live", why: str = "") -> TurningWay:
    return TurningWay(how=how, tokens=5, why=why, last_start_s=Missing("none"), issues=())


async def test_it_is_told_what_was_done() -> None:
    at = steered(Service(way=live()), lambda: place(record()))
    assert await at.engine.reset_cache() is None
    assert await at.engine.speculation("5") is None
    assert at.moved == []
    assert await at.engine.restart("off") is None
    assert at.moved == ["moved"], "the engine is reached elsewhere now"
    assert at.service.asked == [
        ("cache.reset", {}),
        ("engine.speculation", {"mode": "5"}),
        ("run.restart", {"id": "run-1", "speculation": "off"}),
    ]


async def test_a_service_that_restarts_is_waited_for() -> None:
    at = steered(Service(gone=3), lambda: place(record()))
    assert await at.engine.reset_cache() is None
    at.service.gone = 2
    assert await at.engine.window_tokens() == 262_144


async def test_a_slow_service_is_asked_again_but_not_told_again() -> None:
    """It has taken the command: told once more, it would start the engine anew twice."""
    at = steered(Service(slow=1), lambda: place(record()))
    told = await at.engine.restart("off")
    assert isinstance(told, Missing)
    assert "in time" in told.reason
    assert [command for command, _ in at.service.asked] == ["run.restart"]
    at.service.slow = 2
    assert await at.engine.window_tokens() == 262_144


async def test_why_it_cannot_is_said_in_the_services_words() -> None:
    trouble = Trouble(message="The prefix cache is not reset", evidence="a request holds it")
    at = steered(Service(trouble=trouble), lambda: place(record()))
    refused = await at.engine.reset_cache()
    assert refused == Missing("The prefix cache is not reset: a request holds it")
    assert await at.engine.restart("off") == refused
    assert at.moved == []
    assert await at.engine.speculation("5") == Missing(
        "a has no speculation: its profile names none"
    )


async def test_speculation_that_takes_a_restart_is_not_turned_behind_the_plans_back() -> None:
    at = steered(Service(way=live("restart", "no plugin")), lambda: place(record()))
    assert await at.engine.speculation("off") == Missing(
        "it cannot be changed while the engine runs: no plugin"
    )
    assert at.service.asked == []


async def test_an_engine_at_a_url_is_not_ours() -> None:
    at = steered(Service(), lambda: place(None))
    answers = [
        await at.engine.reset_cache(),
        await at.engine.speculation("off"),
        await at.engine.restart("off"),
        await at.engine.speculation_depth(),
    ]
    assert answers == [NOT_OURS] * 4
    assert at.service.asked == []


@pytest.mark.parametrize(
    ("asked", "depth"),
    [
        (None, 0),
        (Speculation(tokens=24), 0),
        (Speculation(enabled=True, tokens=24), 24),
        (Speculation(start="off", tokens=24), 24),
    ],
)
async def test_the_depth_is_what_it_was_started_for(asked: Speculation | None, depth: int) -> None:
    at = steered(Service(), lambda: place(record(asked)))
    assert await at.engine.speculation_depth() == depth


async def test_a_run_that_is_to_end_waits_for_no_command() -> None:
    at = steered(Service(gone=1_000_000), lambda: place(record()))
    at.stop.end("cancelled by alice")
    with pytest.raises(RunStoppedError, match="cancelled by alice"):
        await at.engine.reset_cache()


async def test_tokens_are_the_engines_own_count() -> None:
    with sim_process() as sim:
        reach = replace(
            place(None), endpoint=Endpoint("http://engine", socket_path=str(sim.socket))
        )
        at = steered(Service(), lambda: replace(reach, counters=reach.endpoint))
        turn = {"role": "user", "content": "one two three four"}
        body: dict[str, Any] = {"model": "m", "messages": [turn]}
        chat = await at.engine.count_tokens("/v1/chat/completions", body)
        messages = await at.engine.count_tokens("/v1/messages", {**body, "max_tokens": 5})
        longer = await at.engine.count_tokens(
            "/v1/chat/completions", {**body, "messages": [turn] * 9}
        )
        assert isinstance(chat, int)
        assert isinstance(messages, int)
        assert isinstance(longer, int)
        assert longer > chat
        checks = await at.engine.canary()
        assert [passed for _, passed, _ in checks if passed is False] == []
    gone = await at.engine.count_tokens("/v1/chat/completions", body)
    assert isinstance(gone, Missing)
