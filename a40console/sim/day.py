"""A day with Claude Code, compressed: what two sessions send, turn by turn. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from zlib import crc32

from a40console.sim.sheets import Regime

USER_AGENT = "claude-cli/2.1.332 (external, cli)"
SESSION_HEADER = "x-claude-code-session-id"

DAY_S = 80.0
"""How long a day lasts at the most, from its first request to its last answer."""

TOOLS = ("Bash", "Read", "Edit", "Grep", "Glob", "Write", "TodoWrite", "WebFetch", "Task")
_NOUNS = ("window", "ledger", "socket", "gauge", "profile", "keeper", "slot", "draft", "block")
_VERBS = ("reads", "joins", "drops", "counts", "keeps", "closes", "opens", "marks", "folds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One request of a client."""

    adds: int
    """Words that the client adds: a question, or what a tool has found."""

    answer_tokens: int
    regime: Regime = "session"
    tool: str | None = None
    """The tool that the answer calls; the client runs it before the next turn."""

    then_s: float = 2.0
    """Seconds of the client's turn afterwards."""

    prunes: bool = False
    """Whether the client has rewritten its third message: the prefix is lost from there on."""

    sums_up: bool = False
    """Whether the client asks for a summary of its history."""

    forgets: bool = False
    """Whether that summary is all that is left of the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One conversation: the main agent of a session, or a sub-agent of it."""

    session: str
    name: str = "main"
    day: int = 0
    """Its questions and its findings are its own."""

    begins_s: float = 0.0
    system_words: int = 9000
    turns: tuple[Turn, ...] = ()


FIRST, SECOND = "7f3a9c52-5d1e-4b8a-9f60-2f8a1c7e4b10", "a91c04e7-83b2-4c6d-b1f5-60d2e9a7c358"


def day(number: int = 0) -> tuple[Agent, ...]:
    """Two sessions: one edits code, one looks around with a sub-agent; then a burst of six."""
    edit = Turn(adds=350, answer_tokens=620, regime="code_edit", tool="Edit", then_s=1.5)
    look = Turn(adds=900, answer_tokens=140, tool="Bash", then_s=2.5)
    first = (
        Turn(adds=120, answer_tokens=260, tool="Read", then_s=1.2),
        *(look, edit, edit, look, edit),
        Turn(adds=200, answer_tokens=480, regime="code_edit", tool="Edit", prunes=True, then_s=2.0),
        *(edit, look, edit, edit),
        Turn(adds=150, answer_tokens=420, regime="prose", then_s=6.0),
    )
    second = (
        Turn(adds=80, answer_tokens=220, regime="prose", tool="Grep", then_s=2.0),
        *(look, replace(look, tool="Task", then_s=4.0), edit, look),
        Turn(adds=14_000, answer_tokens=300, tool="Read", then_s=2.0),
        *(edit, look, replace(edit, tool=None, then_s=3.0)),
        Turn(adds=60, answer_tokens=380, regime="prose", sums_up=True, then_s=1.0),
        Turn(adds=400, answer_tokens=520, regime="prose", forgets=True, then_s=5.0),
    )
    explore = tuple(
        Turn(adds=adds, answer_tokens=90, tool=tool, then_s=0.4)
        for adds, tool in ((5200, "Grep"), (900, "Grep"), (1400, "Grep"), (600, None))
    )
    burst = tuple(
        Agent(
            session=SECOND,
            name=f"review-{number}",
            begins_s=38.0 + 0.15 * number,
            system_words=2500,
            turns=(Turn(adds=900, answer_tokens=260), Turn(adds=300, answer_tokens=180)),
        )
        for number in range(1, 7)
    )
    agents = (
        Agent(session=FIRST, turns=first),
        Agent(session=SECOND, begins_s=4.0, turns=second),
        Agent(session=SECOND, name="Explore", begins_s=11.0, system_words=3200, turns=explore),
        *burst,
    )
    return tuple(replace(agent, day=number) for agent in agents)


def days(count: int, every_s: float = DAY_S) -> tuple[Agent, ...]:
    """So many days, one after the other."""
    return tuple(
        replace(agent, begins_s=agent.begins_s + number * every_s)
        for number in range(count)
        for agent in day(number)
    )


class Conversation:
    """The requests of each turn, with the history that the turns before it left."""

    def __init__(self, agent: Agent, model: str) -> None:
        self.agent = agent
        self._model = model
        self._system = _words(f"system {agent.name}", agent.system_words)
        self._messages: list[dict[str, Any]] = []
        self._called: str | None = None
        """The call whose result the client has next."""

        self._last: Turn | None = None

    def headers(self) -> dict[str, str]:
        """What Claude Code says of itself beside a body; of the newest turn."""
        agent, last = self.agent, self._last
        headers = {
            "user-agent": USER_AGENT,
            "x-app": "cli",
            "anthropic-version": "2023-06-01",
            SESSION_HEADER: agent.session,
            "x-claude-code-request-class": "main" if agent.name == "main" else "subagent",
        }
        if agent.name != "main":
            identity = f"{crc32(f'{agent.name} {agent.day}'.encode()):08x}"
            headers["x-claude-code-agent-id"] = f"a{identity}"
            headers["x-claude-code-agent-type"] = agent.name.partition("-")[0]
        if last is not None and last.tool is not None:
            said = f"{last.tool}={round(1000 * last.then_s)}"
            headers["x-claude-code-prev-tool-durations"] = said
        return headers

    def body(self, turn: Turn, number: int) -> dict[str, Any]:
        """The request of one turn."""
        of = f"{self.agent.session} {self.agent.name} {self.agent.day}"
        text = _words(f"{of} {number}", turn.adds)
        if turn.forgets:
            summary = _words(f"{self.agent.session} {self.agent.day} summary", 700)
            self._messages, self._called = [_user(summary, None)], None
        elif turn.prunes and len(self._messages) > 3:
            self._prune(number)
        if turn.sums_up:
            text = f"{_SUM_UP} {text}"
        self._messages.append(_user(text, self._called))
        user = {"device_id": "0" * 64, "account_uuid": "", "session_id": self.agent.session}
        return {
            "model": self._model,
            "max_tokens": 8192,
            "stream": True,
            "system": [
                {"type": "text", "text": _IDENTITY},
                {"type": "text", "text": self._system, "cache_control": {"type": "ephemeral"}},
            ],
            "tools": [_tool(name) for name in TOOLS],
            "metadata": {"user_id": json.dumps(user)},
            "messages": list(self._messages),
            "vllm_xargs": {
                "answer_tokens": turn.answer_tokens,
                "regime": turn.regime,
                **({"tool": turn.tool} if turn.tool else {}),
            },
        }

    def answered(self, turn: Turn, text: str, call: str | None) -> None:
        """What the model said becomes part of the history.

        Args:
            turn: Which turn it was.
            text: The words, or the command that it gave its tool.
            call: The tool's call, where it called one.
        """
        content: Any = text
        if turn.tool is not None and call is not None:
            given = {"command": text}
            content = [{"type": "tool_use", "id": call, "name": turn.tool, "input": given}]
        self._called = call if turn.tool is not None else None
        self._last = turn
        self._messages.append({"role": "assistant", "content": content})

    def _prune(self, number: int) -> None:
        """The client has cleared what its first tool found."""
        content = self._messages[2]["content"]
        if isinstance(content, list):
            content = [{**content[0], "content": f"[pruned before turn {number}]"}]
        self._messages[2] = {"role": "user", "content": content}


_IDENTITY = "You are a coding agent."
_SUM_UP = "CRITICAL: Respond with TEXT ONLY."


def _user(text: str, called: str | None) -> dict[str, Any]:
    """What the user wrote, or what a tool found."""
    content: Any = text
    if called is not None:
        content = [{"type": "tool_result", "tool_use_id": called, "content": text}]
    return {"role": "user", "content": content}


def _tool(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    return {"name": name, "description": _words(f"tool {name}", 60), "input_schema": schema}


def _words(seed: str, count: int) -> str:
    """So many words, the same for the same seed."""
    dice = Random(seed)  # noqa: S311 - to be repeated
    return " ".join(_sentence(dice, count))


def _sentence(dice: Random, count: int) -> Sequence[str]:
    pairs = (_NOUNS, _VERBS)
    return [dice.choice(pairs[index % 2]) for index in range(count)]
