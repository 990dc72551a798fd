"""A day with Claude Code, compressed: what two sessions send, turn by turn. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

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

    forgets: bool = False
    """Whether the client has compacted its history to a summary."""


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
        *(look, look, edit, look),
        Turn(adds=14_000, answer_tokens=300, tool="Read", then_s=2.0),
        *(edit, look, edit),
        Turn(adds=400, answer_tokens=520, regime="prose", forgets=True, then_s=5.0),
    )
    explore = tuple(
        Turn(adds=adds, answer_tokens=90, tool="Grep", then_s=0.4)
        for adds in (5200, 900, 1400, 600)
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
    """The body of each turn's request, with the history that the turns before it left."""

    def __init__(self, agent: Agent, model: str) -> None:
        self.agent = agent
        self._model = model
        self._system = _words(f"system {agent.name}", agent.system_words)
        self._messages: list[dict[str, Any]] = []

    def body(self, turn: Turn, number: int) -> dict[str, Any]:
        """The request of one turn."""
        if turn.forgets:
            self._messages = [_user(_words(f"{self.agent.session} {self.agent.day} summary", 700))]
        elif turn.prunes and len(self._messages) > 3:
            self._messages[2] = _user(f"[pruned before turn {number}]")
        of = f"{self.agent.session} {self.agent.name} {self.agent.day}"
        text = _words(f"{of} {number}", turn.adds)
        self._messages.append(_user(text))
        return {
            "model": self._model,
            "max_tokens": 8192,
            "stream": True,
            "system": [{"type": "text", "text": self._system}],
            "tools": [_tool(name) for name in TOOLS],
            "messages": list(self._messages),
            "vllm_xargs": {
                "answer_tokens": turn.answer_tokens,
                "regime": turn.regime,
                **({"tool": turn.tool} if turn.tool else {}),
            },
        }

    def answered(self, text: str) -> None:
        """What the model said becomes part of the history."""
        self._messages.append({"role": "assistant", "content": text})


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


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
