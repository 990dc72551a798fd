"""A day played inside the engine by a clock that stands until it is told to go on. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from a40console.sim.asked import call_id, read
from a40console.sim.core import Core
from a40console.sim.day import Agent, Conversation
from a40console.sim.requests import Order, Output, Request
from a40console.sim.settings import Settings

BEGINS_S = 1000.0
"""Of the engine's clock."""

UNIX_S = 1_796_047_200.0
"""The wall clock at that moment: an evening in November 2026."""

TOLD = 64
"""Requests of the past that are told of."""

UNDER_WAY_AFTER_S = 0.001
"""From a client's request to the engine, through a gateway."""


@dataclass(slots=True)
class _Client:
    """One agent of the day, and how far it is."""

    agent: Agent
    conversation: Conversation
    due_s: float | None
    """When it sends its next request; None while it is answered, and after the last."""

    turn: int = 0
    order: Order | None = None
    text: str = ""

    @property
    def begun(self) -> bool:
        """Whether its day has begun."""
        return self.due_s is not None or self.order is not None


@dataclass(slots=True)
class _Sent:
    """One request as a gateway would have metered it."""

    agent: Agent
    received_s: float
    request: Request
    tool: str | None = None
    name: str = ""
    """As the gateway calls it."""

    marks: list[tuple[float, int]] = field(default_factory=list)


class ManualClock:
    """The engine's clock, and the clients that act by it."""

    def __init__(self, settings: Settings, core: Core, agents: Sequence[Agent]) -> None:
        self._settings = settings
        self._core = core
        self.now_s = BEGINS_S
        self._clients = [
            _Client(agent, Conversation(agent, settings.served_name), None) for agent in agents
        ]
        self._sent: dict[str, _Sent] = {}
        self._asked = 0
        self._bodies: deque[dict[str, Any]] = deque(maxlen=TOLD)
        for session in {agent.session for agent in agents}:
            self._begin_day(session, BEGINS_S)

    def __call__(self) -> float:
        """The time."""
        return self.now_s

    def unix_s(self, at_s: float) -> float:
        """An instant of the day on the wall."""
        return UNIX_S + at_s - BEGINS_S

    def advance(self, seconds: float) -> None:
        """Let so much time pass: clients send, passes end, each at its own instant."""
        until_s = self.now_s + seconds
        while (next_s := self._next_s()) is not None and next_s <= until_s:
            self.now_s = max(self.now_s, next_s)
            self._take(self._core.advance(self.now_s))
            for client in self._clients:
                if client.due_s is not None and client.due_s <= self.now_s:
                    self._send(client)
        self.now_s = until_s
        self._take(self._core.advance(until_s))

    def rows(self) -> list[dict[str, Any]]:
        """The requests under way and the last that ended, oldest first."""
        sent = list(self._sent.values())
        kept = [each for each in sent[:-TOLD] if each.request.ended_s is None]
        return [_row(each) for each in (*kept, *sent[-TOLD:])]

    def asked(self, after: int) -> list[dict[str, Any]]:
        """What clients sent after a number, as it came in at the gateway, oldest first."""
        return [each for each in self._bodies if each["number"] > after]

    def _next_s(self) -> float | None:
        due = [client.due_s for client in self._clients if client.due_s is not None]
        event_s = self._core.next_event_s()
        return min([*due, *([event_s] if event_s is not None else [])], default=None)

    def _send(self, client: _Client) -> None:
        turn = client.agent.turns[client.turn]
        body = client.conversation.body(turn, client.turn)
        self._asked += 1
        name = _request_id(
            f"{client.agent.session} {client.agent.name} {client.turn} {self._asked}"
        )
        asked = read(self._settings, "messages", body, name, depth=self._core.depth)
        client.order, client.due_s, client.text = asked.order, None, ""
        self._take(self._core.submit(asked.order, self.now_s))
        request = self._core.find(asked.order.request_id)
        if request is not None:
            sent = _Sent(client.agent, self.now_s - UNDER_WAY_AFTER_S, request, asked.tool)
            sent.name = name
            self._sent[asked.order.request_id] = sent
            self._bodies.append(
                {
                    "number": self._asked,
                    "request_id": name,
                    "received_s": sent.received_s,
                    "headers": client.conversation.headers(),
                    "body": body,
                }
            )

    def _take(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            sent = self._sent[output.request_id]
            sent.marks.append((output.at_s, sent.request.generated))
            client = next(
                each
                for each in self._clients
                if each.order is not None and each.order.request_id == output.request_id
            )
            client.text += "".join(output.tokens)
            if output.finish_reason is not None:
                self._answered(client, output.at_s)

    def _answered(self, client: _Client, at_s: float) -> None:
        turn, then_s = client.agent.turns[client.turn], client.agent.turns[client.turn].then_s
        order = client.order
        client.conversation.answered(turn, client.text, call_id(order) if order else None)
        client.turn += 1
        client.order = None
        client.due_s = at_s + then_s if client.turn < len(client.agent.turns) else None
        if client.due_s is None:
            self._begin_day(client.agent.session, at_s + then_s)

    def _begin_day(self, session: str, free_s: float) -> None:
        """Let a session's next day begin once the one before is over: an agent asks one at a time.

        Args:
            session: Whose.
            free_s: When the last answer of the day before has been dealt with.
        """
        left = [
            client
            for client in self._clients
            if client.agent.session == session and client.turn < len(client.agent.turns)
        ]
        if not left or any(client.begun for client in left):
            return
        number = min(client.agent.day for client in left)
        of_day = [client for client in left if client.agent.day == number]
        first_s = min(client.agent.begins_s for client in of_day)
        late_s = max(0.0, free_s - (BEGINS_S + first_s))
        for client in of_day:
            client.due_s = BEGINS_S + client.agent.begins_s + late_s


def _request_id(of: str) -> str:
    """An id as a console's gateway gives it, the same in each rehearsal."""
    return f"a40-{crc32(of.encode()):08x}{crc32(of[::-1].encode()):08x}"


def _row(sent: _Sent) -> dict[str, Any]:
    request = sent.request
    whole = request.ended_s is not None
    reason = request.finish_reason
    return {
        "request_id": sent.name,
        "session": sent.agent.session,
        "agent": sent.agent.name,
        "max_tokens": request.order.max_tokens,
        "received_s": sent.received_s,
        "first_token_s": request.first_token_s,
        "last_token_s": request.last_token_s,
        "ended_s": request.ended_s,
        "prompt_tokens": len(request.order.prompt) if request.first_token_s is not None else None,
        "cached_tokens": request.cached if whole else None,
        "generated_tokens": request.generated if whole else None,
        "finish_reason": "tool_use" if whole and reason == "stop" and sent.tool else reason,
        "tool": sent.tool,
        "call": call_id(request.order) if sent.tool else None,
    }
