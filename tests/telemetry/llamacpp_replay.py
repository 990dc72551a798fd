"""A recording of a real llama.cpp server, replayed to the console's sources."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx

from a40console.model.engine import Endpoint
from a40console.model.figures import Missing
from a40console.model.request import GatewayRow
from a40console.model.snapshot import Slot
from a40console.telemetry.sampler import EngineSampler
from a40console.telemetry.view import EngineView
from tests.telemetry.engines import Events, poll
from tests.telemetry.makers import DATA, Clock, json_answer, metrics_answer

RECORDING = [
    json.loads(line)
    for line in (DATA / "llamacpp-recording.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Polls of a real server: one chat of 100 tokens; then a chat of 150 with a prompt of 1,124, a
/v1/messages of 120 and a chat that leaves at 61; then six chats on four slots."""


def metrics_text(figures: dict[str, float]) -> str:
    return "".join(f"llamacpp:{name} {value}\n" for name, value in figures.items())


@dataclass
class Server:
    """A llama.cpp server that stands at one recorded poll."""

    poll: dict[str, Any]
    asleep: bool = False
    props: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.seen: list[str] = []

    def transport(self) -> httpx.MockTransport:
        def answer(request: httpx.Request) -> httpx.Response:
            self.seen.append(request.url.path)
            match request.url.path:
                case "/props":
                    told = self.props or {"total_slots": 4, "build_info": "b1-test"}
                    return json_answer({**told, "is_sleeping": self.asleep})
                case "/metrics":
                    return metrics_answer(metrics_text(self.poll["metrics"]))
                case "/slots":
                    return json_answer(self.poll["slots"])
                case "/health":
                    return json_answer({"status": "ok"})
            return httpx.Response(404)

        return httpx.MockTransport(answer)


class Replay:
    """The recording, played through a sampler on a clock of its own."""

    def __init__(self, **others: Any) -> None:
        self.clock, self.server = Clock(0.0), Server(RECORDING[0])
        self.events = Events()
        self.sampler = EngineSampler(
            kind="llamacpp",
            endpoint=Endpoint("http://engine"),
            on_event=self.events,
            clock=self.clock,
            transport=self.server.transport(),
            **others,
        )

    async def to(self, index: int, **figures: float) -> None:
        entry = RECORDING[index]
        self.server.poll = {**entry, "metrics": entry["metrics"] | figures}
        self.clock.now_s = RECORDING[index]["at_s"]
        await poll(self.sampler)

    def view(self, *live: GatewayRow, finished: tuple[GatewayRow, ...] = ()) -> EngineView:
        return self.sampler.view(live, finished)


def slots_of(view: EngineView) -> tuple[Slot, ...]:
    assert not isinstance(view.slots, Missing)
    return view.slots


def counter(index: int) -> float:
    """The server's counter plus what its running slots have decoded."""
    entry = RECORDING[index]
    running = [slot for slot in entry["slots"] if slot["is_processing"]]
    decoded = sum(slot["next_token"][0]["n_decoded"] for slot in running)
    return float(entry["metrics"]["tokens_predicted_total"] + decoded)


def at(seconds: float) -> int:
    return min(
        range(len(RECORDING)), key=lambda index: abs(float(RECORDING[index]["at_s"]) - seconds)
    )
