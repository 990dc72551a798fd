"""The book of sessions: turns, agents, tools, and what is read again, told from what passes."""

from __future__ import annotations

import pytest

from a40console.gateway import session_view
from a40console.gateway.session_phase import standing
from a40console.gateway.sessions import KEPT_SESSIONS, SessionBook
from a40console.model.figures import Estimated, Missing
from a40console.model.request import EngineRow
from a40console.model.session import SessionRequest, ToolSum
from tests.gateway.session_clients import HEAD, Answer, Ask, Gateway, block, talk, who


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


def rows(book: SessionBook, session: str = "7f3a") -> list[SessionRequest]:
    record = book.find(session)
    assert record is not None
    return [session_view.request_row(entry) for entry in record.entries]


def test_turns_are_requests_of_the_main_agent_and_the_rest_are_requests(gateway: Gateway) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)))
    gateway.turn(Ask(who(agent="Explore a1b2c3d"), HEAD[:2] + talk(1)))
    gateway.turn(Ask(who(), HEAD + talk(1)))
    gateway.turn(Ask(who(), HEAD + talk(2), purpose="compaction"))
    gateway.turn(Ask(who(), (block("user text", "name this talk", 0),), purpose="other"))

    record = gateway.book.find("7f3a")

    assert record is not None
    assert record.turns == 2
    assert record.sums().requests == 5
    assert [row.turn for row in rows(gateway.book)] == [1, 1, 2, 2, 2]
    assert list(record.agents) == ["Explore a1b2c3d", "main"]


def test_a_turn_has_its_times_and_its_tokens(gateway: Gateway) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), prompt=3000, cached=2000, generated=81, decode_s=4.0)
    gateway.pass_s(7)
    gateway.turn(Ask(who(), HEAD + talk(1)), prompt=4000, cached=3072)

    first, second = rows(gateway.book)

    assert (first.ttft_s, first.prefill_s, first.decode_s) == (1.0, 1.0, 4.0)
    assert first.queue_s == Missing("the engine did not tell")
    assert first.client_s == Missing("no answer of its agent before it")
    assert second.client_s == 7.0
    assert (first.prompt_tokens, first.reused_tokens, first.generated_tokens) == (3000, 2000, 81)
    assert first.tokens_per_s == 20.0
    assert (first.at, first.finish_reason) == ("2026-11-30T00:53:20.000Z", "stop")


def test_a_tool_runs_from_its_call_to_its_result_unless_the_client_says_how_long(
    gateway: Gateway,
) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), calls=(("Bash", "t1"), ("Read", "t2")))
    gateway.pass_s(190)
    record = gateway.book.find("7f3a")
    assert record is not None
    at_client = standing(record, {}, gateway.clock.wall())

    gateway.turn(
        Ask(
            who(),
            HEAD + talk(1),
            tool_answers=(Answer("t1", is_error=True), Answer("t2")),
            tool_durations=(("Bash", 0.567),),
        )
    )

    assert (at_client.phase, at_client.tool) == ("client", "Bash +1")
    assert gateway.clock.wall() - at_client.since_s == pytest.approx(193)
    bash, read = rows(gateway.book)[0].tools
    assert (bash.duration_s, bash.origin, bash.failed) == (0.567, "client", True)
    assert (read.duration_s, read.origin, read.failed) == (190.0, "seen", False)
    assert standing(record, {}, gateway.clock.wall()).phase == "idle"
    sums = {each.name: (each.calls, each.failed, each.longest_s) for each in _tools(gateway)}
    assert sums == {"Bash": (1, 1, 0.567), "Read": (1, 0, 190.0)}


def _tools(gateway: Gateway) -> tuple[ToolSum, ...]:
    record = gateway.book.find("7f3a")
    assert record is not None
    return session_view.tool_sums(record)


def test_tools_of_an_answer_that_broke_off_do_not_run(gateway: Gateway) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), calls=(("Bash", "t1"),), outcome="aborted")

    record = gateway.book.find("7f3a")

    assert record is not None
    assert standing(record, {}, gateway.clock.wall()).phase == "idle"
    assert rows(gateway.book)[0].tools[0].duration_s == Missing("no answer came")
    assert (record.aborted, record.failed) == (1, 0)


def test_a_tool_that_was_never_answered_ends_with_the_next_question(gateway: Gateway) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), calls=(("Bash", "t1"),))
    gateway.pass_s(5)
    gateway.turn(Ask(who(), HEAD + talk(1)))

    record = gateway.book.find("7f3a")

    assert record is not None
    assert not record.open_tools


def test_a_tool_that_runs_for_a_quarter_of_an_hour_is_believed_gone(gateway: Gateway) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), calls=(("Bash", "t1"),))
    record = gateway.book.find("7f3a")
    assert record is not None
    gateway.pass_s(899)
    still = standing(record, {}, gateway.clock.wall()).phase
    gateway.pass_s(2)

    assert (still, standing(record, {}, gateway.clock.wall()).phase) == ("client", "idle")


def test_a_prompt_that_only_grows_re_reads_what_the_engine_did_not_find(gateway: Gateway) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), prompt=3000, cached=0, generated=100)
    gateway.turn(Ask(who(), HEAD + talk(1)), prompt=4200, cached=3088, generated=100)
    gateway.turn(Ask(who(), HEAD + talk(2)), prompt=5400, cached=0, generated=100)

    first, second, third = rows(gateway.book)

    assert (first.reread_tokens, second.reread_tokens, third.reread_tokens) == (0, 12, 4300)
    assert second.loss == Missing("nothing was lost")
    assert not isinstance(third.loss, Missing)
    assert (third.loss.kind, third.loss.tokens, third.loss.block) == ("evicted", 4300, None)


def test_a_changed_tool_result_is_named_with_its_message_and_what_it_costs(
    gateway: Gateway,
) -> None:
    before = HEAD + talk(3)
    pruned = list(HEAD + talk(4))
    pruned[len(HEAD) + 2] = block("tool_result", "[old result cleared]", 2, 20)
    gateway.turn(Ask(who(), before), prompt=7000, cached=0, generated=60)
    gateway.turn(Ask(who(), tuple(pruned)), prompt=7200, cached=3200, generated=60)

    loss = rows(gateway.book)[1].loss

    assert not isinstance(loss, Missing)
    assert (loss.kind, loss.block, loss.block_kind, loss.message) == (
        "changed",
        7,
        "tool_result",
        3,
    )
    assert loss.cause == "tool_result of message 3 was pruned"
    assert "compact in blocks" in loss.remedy
    # 22,000 of 26,000 characters are still the same: of 7,000 tokens, less what was in the cache.
    assert loss.tokens == Estimated(2723)
    assert loss.prefill_s == Estimated(0.681)
    assert loss.turn == 2


def test_where_the_engine_does_not_tell_the_loss_is_what_stands_beyond_the_change(
    gateway: Gateway,
) -> None:
    changed = (*HEAD[:3], block("system", "prompt of today", characters=8000))
    gateway.turn(Ask(who(), HEAD + talk(1)), prompt=5000, cached=None)
    live = gateway.ask(Ask(who(), changed + talk(2)))

    assert live.shared is not None
    assert live.shared.lost == pytest.approx(5000 * 12800 / 17200)
    gateway.answer(live, prompt=6000, cached=None)
    loss = rows(gateway.book)[1].loss
    assert not isinstance(loss, Missing)
    assert loss.tokens == Estimated(3721)
    assert loss.cause == ("system changed, at the same length: a date, a counter or an id in it")
    assert (loss.block, loss.message) == (4, None)


def test_a_sub_agents_first_prompt_is_new_and_no_loss(gateway: Gateway) -> None:
    gateway.turn(Ask(who(), HEAD + talk(3)), prompt=7000, cached=0)
    gateway.turn(Ask(who(agent="Explore a1b2c3d"), HEAD + talk(0)), prompt=3000, cached=0)

    row = rows(gateway.book)[1]

    assert row.reread_tokens == 0
    assert row.loss == Missing("nothing was lost")


def test_sub_agents_that_share_a_name_are_told_apart_by_their_talks(gateway: Gateway) -> None:
    def asked(task: str, turns: int) -> Ask:
        return Ask(
            who(agent="subagent"),
            (
                *HEAD,
                block("user text", "reminder", 0),
                block("user text", task, 0),
                *talk(turns)[1:],
            ),
        )

    gateway.turn(asked("look here", 0), prompt=3000, cached=0)
    gateway.turn(asked("look there", 0), prompt=3000, cached=0)
    gateway.turn(
        Ask(who(agent="subagent"), (*asked("look here", 0).outline, block("tool_use", "a", 1))),
        prompt=3100,
        cached=3040,
    )

    assert [row.reread_tokens for row in rows(gateway.book)] == [0, 0, 10]


def test_compaction_is_a_reason_and_no_fault(gateway: Gateway) -> None:
    gateway.turn(Ask(who(), HEAD + talk(5)), prompt=9000, cached=0)
    gateway.turn(
        Ask(who(), (*HEAD, *talk(5), block("user text", "sum it up", 12)), purpose="compaction"),
        prompt=9100,
        cached=9040,
    )
    gateway.turn(Ask(who(), (*HEAD, block("user text", "summary", 0))), prompt=3400, cached=3000)

    record = gateway.book.find("7f3a")
    assert record is not None
    loss = rows(gateway.book)[2].loss

    assert not isinstance(loss, Missing)
    assert (loss.kind, loss.cause) == ("compacted", "the client summed its history up")
    assert (record.compactions, record.compacted_at_tokens) == (1, 9100)
    assert rows(gateway.book)[2].reread_tokens == 0


def test_after_another_start_of_the_engine_the_loss_has_its_reason(gateway: Gateway) -> None:
    gateway.turn(Ask(who(), HEAD + talk(1)), prompt=5000, cached=0)
    gateway.run_id = "run-2"
    gateway.turn(Ask(who(), HEAD + talk(2)), prompt=6000, cached=0)

    loss = rows(gateway.book)[1].loss

    assert not isinstance(loss, Missing)
    assert (loss.kind, loss.tokens) == ("restarted", 5050)


def test_a_retry_is_no_turn_and_a_whole_answer_after_half_a_stream_is_counted(
    gateway: Gateway,
) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), outcome="failed", prompt=None, generated=7)
    gateway.turn(Ask(who(), HEAD + talk(0), stream=False), streamed=False)

    record = gateway.book.find("7f3a")

    assert record is not None
    assert (record.turns, record.sums().requests, record.fallbacks) == (1, 2, 1)
    assert [row.repeats for row in rows(gateway.book)] == [False, True]
    assert rows(gateway.book)[1].ttft_s == Missing("not streamed")


def test_a_retry_of_a_refused_request_is_no_fallback(gateway: Gateway) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), outcome="failed", prompt=None, generated=None)
    gateway.turn(Ask(who(), HEAD + talk(0), stream=False), streamed=False)

    record = gateway.book.find("7f3a")

    assert record is not None
    assert (record.turns, record.fallbacks) == (1, 0)


def test_an_edited_last_message_is_no_loss(gateway: Gateway) -> None:
    asked = (*HEAD, *talk(2), block("user text", "no, like this", 5))
    edited = (*HEAD, *talk(2), block("user text", "no, like that", 5))
    gateway.turn(Ask(who(), asked), prompt=6000, cached=5000)
    gateway.turn(Ask(who(), edited), prompt=6000, cached=5900)

    assert rows(gateway.book)[1].loss == Missing("nothing was lost")


def test_busy_seconds_count_once_and_are_shared_between_sessions(gateway: Gateway) -> None:
    one = gateway.ask(Ask(who("one"), HEAD))
    also_one = gateway.ask(Ask(who("one", "Explore"), HEAD))
    gateway.pass_s(10)
    two = gateway.ask(Ask(who("two"), HEAD))
    gateway.pass_s(4)
    gateway.answer(one, prefill_s=0, decode_s=0)
    gateway.answer(also_one, prefill_s=0, decode_s=0)
    gateway.pass_s(6)
    gateway.answer(two, prefill_s=0, decode_s=0)
    gateway.pass_s(100)
    gateway.book.account()

    first, second = gateway.book.find("one"), gateway.book.find("two")

    assert first is not None
    assert second is not None
    assert (first.busy_s, first.share_s) == (14.0, 12.0)
    assert (second.busy_s, second.share_s) == (10.0, 8.0)


def test_what_the_engine_tells_after_the_end_completes_the_row(gateway: Gateway) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), prompt=3000, cached=0)
    passage = gateway.turn(Ask(who(), HEAD + talk(1)), prompt=4000, cached=None)
    before = rows(gateway.book)[1]
    row = EngineRow(
        engine_id="x",
        external_id=passage.request_id,
        slot=None,
        phase="decode",
        prompt_tokens=4000,
        cached_tokens=1008,
        generated_tokens=50,
        passes=50,
        max_tokens=None,
        ttft_s=1.0,
        arrived_at_s=0.0,
        first_token_at_s=None,
        last_token_at_s=None,
        queued_s=0.25,
        ended_at="2026-11-29T22:53:20.000Z",
    )

    gateway.book.told({passage.request_id: row})
    gateway.book.told({passage.request_id: row})
    after = rows(gateway.book)[1]
    record = gateway.book.find("7f3a")

    assert before.reread_tokens == Missing("the engine did not tell")
    assert (after.reused_tokens, after.reread_tokens) == (1008, 2042)
    assert (after.queue_s, after.prefill_s) == (0.25, 0.75)
    assert not isinstance(after.loss, Missing)
    assert record is not None
    assert len(record.losses) == 1
    assert (record.sums().reused, record.sums().reread) == (1008, 2042)


def test_the_oldest_idle_session_goes_and_one_under_way_stays(gateway: Gateway) -> None:
    under_way = gateway.ask(Ask(who("busy"), HEAD))
    for number in range(KEPT_SESSIONS + 3):
        gateway.turn(Ask(who(f"s{number}"), HEAD))

    names = [record.session for record in gateway.book.records()]

    assert len(names) == KEPT_SESSIONS
    assert names[0] == "busy"
    assert names[1] == "s4"
    assert gateway.book.forgotten == 4
    gateway.answer(under_way)


def test_a_count_is_held_against_what_the_engine_says(gateway: Gateway) -> None:
    gateway.book.counted(HEAD + talk(0), 48)
    gateway.turn(Ask(who(), HEAD + talk(0)), prompt=728)
    wrong = gateway.book.counts.error
    gateway.book.counted(HEAD + talk(1), 1702)
    gateway.turn(Ask(who(), HEAD + talk(1)), prompt=1700)

    assert wrong is not None
    assert (wrong.counted_tokens, wrong.served_tokens) == (48, 728)
    assert gateway.book.counts.error is None
    assert gateway.book.counts.agreed == 1


def test_what_the_main_agent_asks_last_counts_for_its_window_and_its_mode(
    gateway: Gateway,
) -> None:
    gateway.turn(Ask(who(), HEAD, safeguards=True, max_tokens=32000, removed={"billing header": 1}))
    record = gateway.book.find("7f3a")
    assert record is not None
    first = (record.safeguards, record.billed, record.max_tokens)
    gateway.turn(Ask(who(agent="Explore"), HEAD, max_tokens=4096, safeguards=True))
    gateway.turn(Ask(who(), HEAD, purpose="other", max_tokens=64, model="haiku"))
    gateway.turn(Ask(who(), HEAD + talk(1), max_tokens=8192))

    assert first == (True, True, 32000)
    assert (record.safeguards, record.billed, record.max_tokens) == (False, False, 8192)
    assert record.model == "local-qwen"


def test_a_refused_prompt_is_over_once_the_client_has_summed_up(gateway: Gateway) -> None:
    passage = gateway.ask(Ask(who(), HEAD + talk(9)))
    gateway.book.overflowed(passage)
    gateway.answer(passage, prompt=None, generated=None, outcome="failed")
    record = gateway.book.find("7f3a")
    assert record is not None
    refused = (record.overflows, record.overfull)
    gateway.turn(Ask(who(), HEAD + talk(8), purpose="compaction"), prompt=30_000)

    assert (refused, record.overflows, record.overfull) == ((1, True), 1, False)
