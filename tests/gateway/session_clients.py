"""A client of the session book in tests: its prompts by their pieces, on a clock that is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count

from a40console.gateway.meter import Meter, Outcome, Passage
from a40console.gateway.session_store import file_text, frozen, in_order
from a40console.gateway.sessions import SessionBook
from a40console.model.session import Block, BlockKind, Identity, Outline, Purpose

UNIX_S = 1_796_000_000.0


class Clock:
    """Stands until it is told to go on."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s

    def wall(self) -> float:
        return UNIX_S + self.now_s - 1000.0


@dataclass(frozen=True)
class Answer:
    tool_use_id: str
    is_error: bool = False


@dataclass(frozen=True)
class Ask:
    """What the request side hands to the book."""

    identity: Identity
    outline: Outline = ()
    model: str | None = "local-qwen"
    stream: bool = True
    max_tokens: int | None = 8192
    tool_answers: tuple[Answer, ...] = ()
    tool_durations: tuple[tuple[str, float], ...] = ()
    removed: Mapping[str, int] = field(default_factory=dict)
    safeguards: bool = False
    purpose: Purpose = "turn"


def who(session: str = "7f3a", agent: str = "main") -> Identity:
    return Identity(session, "header", agent, agent != "main", None)


def block(kind: BlockKind, text: str, message: int | None = None, characters: int = 400) -> Block:
    return Block(kind, message, blake2b(text.encode(), digest_size=8).digest(), characters)


HEAD: Outline = (
    block("tool", "Bash", characters=2000),
    block("tool", "Edit", characters=2000),
    block("system", "identity", characters=400),
    block("system", "prompt", characters=8000),
)
"""12,400 characters."""


def talk(turns: int, *, results: int = 4000) -> Outline:
    """A conversation of so many turns: question, then call and result each."""
    pieces = [block("user text", "do it", 0)]
    for turn in range(turns):
        pieces.append(block("tool_use", f"call {turn}", 1 + 2 * turn))
        pieces.append(block("tool_result", f"result {turn}", 2 + 2 * turn, results))
    return tuple(pieces)


def written(book: SessionBook) -> str:
    """What the file of a book's sessions holds."""
    pairs = in_order(book.records())
    return file_text(frozen(record, whole=whole).text() for record, whole in pairs)


class Gateway:
    """Meter and book together, driven by hand."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.run_id: str | None = "run-1"
        self.meter = Meter(clock=self.clock)
        self.book = SessionBook(self.clock, self.clock.wall, lambda: self.run_id)
        self._ids = count()

    def pass_s(self, seconds: float) -> None:
        self.clock.now_s += seconds

    def ask(self, asked: Ask, *, client: str = "claude-code") -> Passage:
        passage = self.meter.accept("messages", f"a40-{next(self._ids):08x}")
        passage.client = client
        self.book.arrived(passage, asked)
        passage.sent_at_s = self.clock()
        return passage

    def answer(
        self,
        passage: Passage,
        *,
        prompt: int | None = 1000,
        cached: int | None = 0,
        generated: int | None = 50,
        calls: tuple[tuple[str, str], ...] = (),
        prefill_s: float = 1.0,
        decode_s: float = 2.0,
        outcome: Outcome = "completed",
        streamed: bool = True,
    ) -> None:
        """The engine reads for `prefill_s`, writes for `decode_s`, and it ends."""
        self.pass_s(prefill_s)
        if streamed and generated:
            passage.streamed(self.clock(), 10)
        self.pass_s(decode_s)
        if streamed and generated:
            passage.streamed(self.clock(), 10)
        if not streamed:
            passage.characters = 20
        for name, identity in calls:
            self.book.called(passage, name, identity)
        passage.prompt_tokens, passage.cached_tokens = prompt, cached
        if generated is not None:
            passage.totalled(generated)
        if outcome == "completed":
            passage.finish_reason = "tool_use" if calls else "stop"
            passage.status = 200
        self.meter.end(passage, outcome)
        self.book.ended(passage)

    def turn(self, asked: Ask, **told: object) -> Passage:
        passage = self.ask(asked)
        self.answer(passage, **told)  # type: ignore[arg-type]
        return passage
