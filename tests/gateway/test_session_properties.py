"""Whatever passes in whatever order: the book's sums are its requests', bounded, never negative."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from a40console.gateway import session_entries, session_records, session_view, sessions
from a40console.gateway.meter import Passage
from a40console.gateway.prefix import characters, compare
from a40console.gateway.session_phase import standing
from a40console.gateway.session_store import KeptSessions, records
from a40console.model.codec import decode
from a40console.model.figures import Missing, number
from a40console.model.request import EngineRow
from a40console.model.session import Outline
from tests.gateway.session_clients import Answer, Ask, Gateway, block, who, written

NAMES = st.sampled_from(["a", "b", "c"])
AGENTS = st.sampled_from(["main", "Explore 1", "subagent"])
PIECES = st.lists(
    st.builds(
        lambda kind, text, size: block(kind, text, 0, size),
        st.sampled_from(
            ["tool", "system", "user text", "assistant text", "tool_use", "tool_result", "thinking"]
        ),
        st.sampled_from("abcd"),
        st.integers(0, 3000),
    ),
    max_size=8,
).map(tuple)
TOKENS = st.none() | st.integers(0, 9000)


class Book(RuleBasedStateMachine):
    """Requests come, call tools, end or break off; engines tell more; services restart."""

    def __init__(self) -> None:
        super().__init__()
        self.gateway = Gateway()
        self.live: list[Passage] = []
        self.ended: list[Passage] = []
        self.arrived: dict[str, int] = {}
        self.calls: list[str] = []
        self.began_s = self.gateway.clock()

    @rule(
        name=NAMES,
        agent=AGENTS,
        outline=PIECES,
        purpose=st.sampled_from(["turn", "turn", "compaction", "other"]),
        stream=st.booleans(),
        answered=st.integers(0, 2),
        sent=st.booleans(),
    )
    def arrive(
        self,
        name: str,
        agent: str,
        outline: Outline,
        purpose: str,
        stream: bool,
        answered: int,
        sent: bool,
    ) -> None:
        answers = tuple(Answer(call) for call in self.calls[-answered:]) if answered else ()
        asked = Ask(
            who(name, agent),
            outline,
            stream=stream,
            tool_answers=answers,
            tool_durations=(("Bash", 0.5),) if answered else (),
            purpose=purpose,  # type: ignore[arg-type]
        )
        passage = self.gateway.ask(asked)
        if not sent:
            passage.sent_at_s = None
        self.live.append(passage)
        self.arrived[name] = self.arrived.get(name, 0) + 1

    @rule(seconds=st.floats(0, 500))
    def wait(self, seconds: float) -> None:
        self.gateway.pass_s(seconds)

    @rule(run=st.sampled_from(["run-1", "run-2", None]))
    def restart_engine(self, run: str | None) -> None:
        self.gateway.run_id = run

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def call(self, data: st.DataObject) -> None:
        passage = data.draw(st.sampled_from(self.live))
        self.calls.append(f"t{len(self.calls)}")
        self.gateway.book.called(
            passage, data.draw(st.sampled_from(["Bash", "Edit"])), self.calls[-1]
        )

    @precondition(lambda self: self.live)
    @rule(
        data=st.data(),
        prompt=TOKENS,
        cached=TOKENS,
        generated=TOKENS,
        outcome=st.sampled_from(["completed", "completed", "aborted", "failed"]),
        twice=st.booleans(),
    )
    def end(
        self,
        data: st.DataObject,
        prompt: int | None,
        cached: int | None,
        generated: int | None,
        outcome: str,
        twice: bool,
    ) -> None:
        passage = data.draw(st.sampled_from(self.live))
        self.live.remove(passage)
        self.gateway.answer(
            passage,
            prompt=prompt,
            cached=cached,
            generated=generated,
            outcome=outcome,  # type: ignore[arg-type]
        )
        if twice:
            self.gateway.book.ended(passage)
        self.ended.append(passage)

    @precondition(lambda self: self.ended)
    @rule(data=st.data(), prompt=TOKENS, cached=TOKENS, generated=st.integers(0, 900))
    def tell(
        self, data: st.DataObject, prompt: int | None, cached: int | None, generated: int
    ) -> None:
        passage = data.draw(st.sampled_from(self.ended))
        row = replace(ROW, prompt_tokens=prompt, cached_tokens=cached, generated_tokens=generated)
        self.gateway.book.told({passage.request_id: row})

    @rule()
    def restart_service(self) -> None:
        """What is under way is lost with the service; what ended is known afterwards."""
        before = self.gateway
        for passage in self.live:
            self.arrived[passage.session or ""] -= 1
        self.live, self.ended = [], []
        file = decode(KeptSessions, json.loads(written(before.book)))
        self.gateway = Gateway()
        self.gateway.clock.now_s = before.clock.now_s
        self.gateway.book.restore(records(file))

    @invariant()
    def sums_are_the_requests(self) -> None:
        for record in self.gateway.book.records():
            sums = record.sums()
            assert sums.requests + len(record.live) == self.arrived[record.session]
            assert record.turns <= self.arrived[record.session]
            assert record.failed + record.aborted <= sums.requests
            ended = [entry for entry in record.entries if not entry.live and entry.counted]
            assert sums.requests == len(ended)
            for name in ("prompt", "reused", "generated"):
                told = sum(getattr(entry.counted, name) for entry in ended if entry.counted)
                assert getattr(sums, name) == told

    @invariant()
    def nothing_is_negative(self) -> None:
        book = self.gateway.book
        book.account()
        now_s = self.gateway.clock.wall()
        passed_s = self.gateway.clock() - self.began_s
        assert sum(record.share_s for record in book.records()) <= passed_s + 1e-6
        for record in book.records():
            assert 0 <= record.share_s <= record.busy_s + 1e-9
            sums = record.sums()
            assert all(getattr(sums, name) >= -1e-6 for name in sums.__slots__)
            assert now_s - standing(record, {}, now_s).since_s >= -1e-6
            for loss in record.losses:
                assert (number(loss.tokens) or 0) >= 0
            for entry in record.entries:
                row = session_view.request_row(entry)
                for figure in (row.ttft_s, row.prefill_s, row.decode_s, row.client_s, row.queue_s):
                    assert isinstance(figure, Missing) or (number(figure) or 0) >= 0
                again = number(row.reread_tokens)
                assert again is None or again >= 0
                if again and entry.cached_tokens is not None and entry.prompt_tokens is not None:
                    assert again <= max(0, entry.prompt_tokens - entry.cached_tokens) + 1

    @invariant()
    def a_view_of_everything_can_be_made(self) -> None:
        for record in self.gateway.book.records():
            session_view.tool_sums(record)
            ratio = number(session_view.hit_ratio(record.sums()))
            assert ratio is None or ratio >= 0
            for agent in record.agents.values():
                session_view.agent_row(agent, "idle")


ROW = EngineRow(
    engine_id="x",
    external_id=None,
    slot=None,
    phase="decode",
    prompt_tokens=None,
    cached_tokens=None,
    generated_tokens=0,
    passes=None,
    max_tokens=None,
    ttft_s=None,
    arrived_at_s=None,
    first_token_at_s=None,
    last_token_at_s=None,
    queued_s=0.5,
    ended_at="2026-11-30T00:53:20.000Z",
)

TestBook = Book.TestCase
TestBook.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_a_comparison_shares_no_more_than_either_has() -> None:
    dice = random.Random(7)
    kinds = ("tool", "system", "user text", "tool_use", "tool_result")
    for _ in range(500):
        prompts = [
            tuple(
                block(dice.choice(kinds), dice.choice("abc"), 0, dice.randrange(900))  # type: ignore[arg-type]
                for _ in range(dice.randrange(12))
            )
            for _ in range(2)
        ]
        found = compare(*prompts)
        assert 0 <= found.prefix_characters <= found.shared_characters
        assert found.shared_characters <= characters(prompts[0]) == found.before_characters
        assert found.same == (found.parting is None and len(prompts[0]) == len(prompts[1]))


def test_bounds_are_bounds() -> None:
    assert (sessions.KEPT_SESSIONS, session_records.KEPT_TURNS) == (64, 500)
    assert session_entries.EVICTED_TOKENS > session_entries.CHANGED_TOKENS
