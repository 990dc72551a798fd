"""The hooks: what they count, and that vLLM never notices them, whatever goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from types import MethodType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.vllm_plugin.watch import Watch
from tests.vllm_plugin.fake_vllm import (
    IterationStats,
    OutputProcessor,
    RequestState,
    output,
    report,
)


def attached(processor: Any, *, draft_tokens: int = 0) -> Watch:
    ticks: Iterator[int] = iter(range(1000, 10**9))
    watch = Watch(clock=lambda: float(next(ticks)), monotonic=lambda: 5.0)
    watch.reports_come(in_order=True, draft_tokens=draft_tokens)
    watch.attach(processor, api_servers=1)
    assert watch.disabled is None
    return watch


def rows(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in answer["running"] + answer["finished"]}


def test_a_request_is_followed_from_arrival_to_end() -> None:
    processor = OutputProcessor()
    watch = attached(processor)
    processor.add("chat-1", prompt_len=300, max_tokens=50)
    (waiting,) = watch.answer(0, paused=False)["running"]
    assert waiting["cached_tokens"] is None
    assert waiting["first_token_s"] is None
    assert waiting["last_token_unix_s"] is None

    processor.process_outputs([output("chat-1", 1, prompt=(300, 128))])
    processor.process_outputs([output("chat-1", 4)])
    (decoding,) = watch.answer(0, paused=False)["running"]
    assert decoding["phase"] == "decode"
    assert (decoding["generated_tokens"], decoding["passes"]) == (5, 2)
    assert decoding["cached_tokens"] == 128
    assert decoding["first_token_s"] == 6.5
    assert (decoding["queued_s"], decoding["prefill_s"]) == (2.0, 4.0)

    processor.process_outputs([output("chat-1", 2, finish_reason="length")])
    answer = watch.answer(0, paused=False)
    assert answer["running"] == []
    (ended,) = answer["finished"]
    assert ended["finish_reason"] == "length"
    assert ended["external_id"] == "chat"
    assert (ended["generated_tokens"], ended["passes"], ended["sequence"]) == (7, 3, 1)
    assert answer["totals"]["generated_tokens"] == 7
    assert answer["totals"]["prompt_tokens"] == 300
    assert answer["totals"]["computed_prompt_tokens"] == 172
    assert watch.answer(1, paused=False)["finished"] == []


def test_tokens_behind_a_stop_string_are_not_the_clients() -> None:
    processor = OutputProcessor()
    watch = attached(processor)
    processor.add("a-1")
    processor.process_outputs([output("a-1", 6, prompt=(10, 0), stop_after=2)])
    answer = watch.answer(0, paused=False)
    assert answer["finished"][0]["generated_tokens"] == 2
    assert answer["finished"][0]["finish_reason"] == "stop"
    assert answer["totals"]["generated_tokens"] == 2
    assert answer["totals"]["discarded_tokens"] == 4


def test_the_reason_the_client_was_told_wins_over_the_engines() -> None:
    processor = OutputProcessor()
    watch = attached(processor)
    processor.add("a-1")
    last = output("a-1", 3, prompt=(10, 0), finish_reason="length", stop_after=3)
    processor.process_outputs([last], None, IterationStats())
    assert watch.answer(0, paused=False)["finished"][0]["finish_reason"] == "stop"


def test_aborts_are_counted_with_their_tokens_children_included() -> None:
    processor = OutputProcessor()
    watch = attached(processor)
    for name in ("0_n-1", "1_n-1", "other-1"):
        processor.add(name)
    processor.children["n-1"] = ["0_n-1", "1_n-1"]
    processor.process_outputs([output("0_n-1", 3, prompt=(10, 0))])
    assert processor.abort_requests(["n-1"], internal=True) == ["0_n-1", "1_n-1"]
    answer = watch.answer(0, paused=False)
    assert [(row["id"], row["finish_reason"]) for row in answer["finished"]] == [
        ("0_n-1", "abort"),
        ("1_n-1", "abort"),
    ]
    assert [row["generated_tokens"] for row in answer["finished"]] == [3, 0]
    assert [row["id"] for row in answer["running"]] == ["other-1"]
    assert answer["totals"]["aborted"] == 2
    assert answer["totals"]["finished"] == 0
    assert answer["totals"]["started"] == 3


def test_a_request_fed_piece_by_piece_ends_when_its_input_does() -> None:
    processor = OutputProcessor()
    watch = attached(processor)
    processor.add("fed-1")
    processor.request_states["fed-1"].resumable = True
    processor.process_outputs([output("fed-1", 3, prompt=(10, 0), finish_reason="length")])
    assert watch.answer(0, paused=False)["finished"] == []
    del processor.request_states["fed-1"]
    (ended,) = watch.answer(0, paused=False)["finished"]
    assert (ended["finish_reason"], ended["generated_tokens"]) == ("length", 3)


def test_preemptions_are_counted_from_the_engines_events() -> None:
    processor = OutputProcessor()
    watch = attached(processor)
    processor.add("a-1")
    processor.process_outputs([output("a-1", 1, prompt=(10, 0))])
    processor.process_outputs([output("a-1", 1, preempted=True)])
    answer = watch.answer(0, paused=False)
    assert answer["running"][0]["preemptions"] == 1
    assert answer["totals"]["preemptions"] == 1


def test_steps_are_told_apart_by_whether_anyone_decoded() -> None:
    processor = OutputProcessor()
    watch = attached(processor)
    processor.add("a-1")
    processor.add("b-1")
    processor.process_outputs([output("a-1", 1, prompt=(10, 0))])
    watch.record(report(2, 0), IterationStats(), 0)
    processor.process_outputs([output("a-1", 1), output("b-1", 1, prompt=(10, 0))])
    watch.record(report(2, 0), IterationStats(), 0)
    watch.record(report(2, 0), None, 0)
    totals = watch.answer(0, paused=False)["totals"]
    assert (totals["steps"], totals["prefill_only_steps"]) == (2, 1)


def test_speculation_is_summed_by_position_and_missing_without_it() -> None:
    processor = OutputProcessor()
    step = SimpleNamespace(
        num_drafts=2,
        num_draft_tokens=5,
        num_accepted_tokens=3,
        num_accepted_tokens_per_pos=[2, 1, 0],
        num_draft_tokens_per_pos=[2, 2, 1],
    )
    watch = attached(processor, draft_tokens=3)
    for _ in range(2):
        watch.record(report(1, 0, speculation=step), IterationStats(), 0)
    totals = watch.answer(0, paused=False)["totals"]
    assert (totals["drafts"], totals["draft_tokens"], totals["accepted_tokens"]) == (4, 10, 6)
    assert totals["accepted_per_position"] == [4, 2, 0]
    assert totals["drafted_per_position"] == [4, 4, 2]
    assert attached(OutputProcessor()).answer(0, paused=False)["totals"]["drafts"] is None


def test_without_step_reports_steps_are_unknown_not_zero() -> None:
    watch = Watch()
    watch.attach(OutputProcessor(), api_servers=1)
    answer = watch.answer(0, paused=None)
    assert answer["totals"]["steps"] is None
    assert answer["scheduler"] is None


def test_new_loggers_do_not_start_the_counts_again() -> None:
    watch = attached(OutputProcessor())
    watch.record(report(1, 0), IterationStats(), 0)
    watch.reports_come(in_order=True, draft_tokens=0)
    assert watch.answer(0, paused=False)["totals"]["steps"] == 1


def test_several_engines_are_told_as_one() -> None:
    watch = attached(OutputProcessor())
    watch.record(report(2, 1), None, 0)
    watch.record(report(3, 0), None, 1)
    scheduler = watch.answer(0, paused=False)["scheduler"]
    assert (scheduler["running"], scheduler["waiting"]) == (5, 1)


def test_the_only_request_of_an_idle_engine_is_being_prefilled() -> None:
    processor = OutputProcessor()
    watch = attached(processor)
    processor.add("a-1")
    assert watch.answer(0, paused=False)["running"][0]["phase"] == "prefill"
    assert watch.answer(0, paused=None)["running"][0]["phase"] == "prefill"
    assert watch.answer(0, paused=True)["running"][0]["phase"] is None
    processor.add("b-1")
    assert {row["phase"] for row in watch.answer(0, paused=False)["running"]} == {None}
    watch.record(report(1, 1), None, 0)
    told = rows(watch.answer(0, paused=False))
    assert (told["a-1"]["phase"], told["b-1"]["phase"]) == ("prefill", "queued")


def test_an_abort_the_scheduler_may_not_know_of_makes_phases_unknown() -> None:
    processor = OutputProcessor()
    watch = attached(processor)
    for name in ("a-1", "b-1", "c-1"):
        processor.add(name)
    processor.abort_requests(["a-1"], internal=True)
    watch.record(report(2, 1), None, 0)
    told = [row["phase"] for row in watch.answer(0, paused=False)["running"]]
    assert told == ["prefill", None]


def test_rows_that_fell_out_of_the_ring_are_counted() -> None:
    processor = OutputProcessor()
    watch = attached(processor)
    for number in range(1030):
        processor.add(f"a-{number}")
        processor.abort_requests([f"a-{number}"], internal=True)
    answer = watch.answer(0, paused=False)
    assert (len(answer["finished"]), answer["lost"], answer["sequence"]) == (1024, 6, 1030)
    later = watch.answer(1020, paused=False)
    assert [row["sequence"] for row in later["finished"]] == list(range(1021, 1031))
    assert later["lost"] == 0


class Broken(RequestState):
    """A request whose structure is not what the probe promised."""

    @property
    def is_prefilling(self) -> bool:
        raise AttributeError("is_prefilling has moved")

    @is_prefilling.setter
    def is_prefilling(self, value: bool) -> None:
        pass


class Surprising(OutputProcessor):
    """Its work does not depend on the structure that the plugin trips over."""

    def process_outputs(self, engine_core_outputs: Any, *_: Any, **__: Any) -> str:
        return f"worked in {len(engine_core_outputs)}"


def test_errors_never_reach_the_engine_and_the_third_takes_the_hooks_off() -> None:
    processor = Surprising()
    watch = attached(processor)
    processor.request_states["x-1"] = Broken("x-1", 10, 10)
    for attempt in range(3):
        assert watch.disabled is None, attempt
        assert processor.process_outputs([output("x-1", 1)]) == "worked in 1"
    assert watch.disabled is not None
    assert "is_prefilling has moved" in watch.disabled
    assert processor.process_outputs == MethodType(Surprising.process_outputs, processor)
    assert processor.process_outputs([output("x-1", 1)]) == "worked in 1"
    answer = watch.answer(0, paused=False)
    assert answer["disabled"] == watch.disabled
    assert answer["errors"] == 3
    assert answer["running"] == []
    assert set(answer["totals"].values()) == {None}
    assert answer["scheduler"] is None


def test_an_answer_that_fails_counts_towards_the_three() -> None:
    processor = Surprising()
    watch = attached(processor)
    processor.request_states["x-1"] = SimpleNamespace(stats=None)
    for _ in range(3):
        with pytest.raises(AttributeError):
            watch.answer(0, paused=False)
    assert watch.answer(0, paused=False)["disabled"] == watch.disabled is not None


def test_a_wrap_put_over_ours_is_left_in_place() -> None:
    processor = Surprising()
    watch = attached(processor)
    ours = processor.process_outputs

    def theirs(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs)

    processor.process_outputs = theirs  # type: ignore[method-assign]
    processor.request_states["x-1"] = Broken("x-1", 10, 10)
    for _ in range(5):
        assert processor.process_outputs([output("x-1", 1)]) == "worked in 1"
    assert watch.disabled is not None
    assert processor.process_outputs is theirs


class Failing(OutputProcessor):
    def process_outputs(self, engine_core_outputs: Any, *_: Any, **__: Any) -> str:
        raise RuntimeError("vLLM's own failure")

    def abort_requests(self, request_ids: list[str], internal: bool) -> list[str]:
        self.request_states.pop(request_ids[0])
        raise RuntimeError("vLLM's own failure")


def test_vllms_own_errors_pass_through_unchanged() -> None:
    processor = Failing()
    watch = attached(processor)
    processor.add("a-1")
    with pytest.raises(RuntimeError, match="vLLM's own failure"):
        processor.process_outputs([output("a-1", 1)])
    with pytest.raises(RuntimeError, match="vLLM's own failure"):
        processor.abort_requests(["a-1"], internal=True)
    assert watch.answer(0, paused=False)["errors"] == 0
    assert watch.answer(0, paused=False)["finished"][0]["finish_reason"] == "abort"


@pytest.mark.parametrize("part", ["request_states", "process_outputs", "abort_requests"])
def test_a_vllm_without_a_part_is_left_alone(part: str) -> None:
    processor: Any = OutputProcessor()
    setattr(processor, part, None)
    watch = Watch()
    watch.attach(processor, api_servers=1)
    assert watch.disabled is not None
    assert part in watch.disabled
    assert watch.answer(0, paused=False)["running"] == []


def test_several_api_servers_are_refused_with_the_reason() -> None:
    processor = OutputProcessor()
    watch = Watch()
    watch.attach(processor, api_servers=4)
    assert watch.disabled is not None
    assert "4 API server processes" in watch.disabled
    assert "process_outputs" not in vars(processor)


_steps = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.integers(0, 6),
            st.sampled_from([None, None, None, "stop", "length", "abort", "cut"]),
        ),
        max_size=6,
        unique_by=lambda item: item[0],
    ),
    max_size=30,
)


@given(_steps)
def test_rows_always_sum_to_the_totals(steps: list[list[tuple[int, int, str | None]]]) -> None:
    processor = OutputProcessor()
    watch = attached(processor)
    started = 0
    for step in steps:
        outputs = []
        for slot, tokens, event in step:
            name = f"slot-{slot}"
            if name not in processor.request_states:
                processor.add(name)
                started += 1
                outputs.append(output(name, tokens, prompt=(10, 2)))
            elif event == "abort":
                processor.abort_requests([name], internal=True)
                outputs.append(output(name, tokens))
            else:
                cut = tokens // 2 if event == "cut" else None
                reason = None if event == "cut" else event
                outputs.append(output(name, tokens, finish_reason=reason, stop_after=cut))
        assert processor.process_outputs(outputs, None, IterationStats()) == "worked in"
    answer = watch.answer(0, paused=False)
    every = answer["running"] + answer["finished"]
    totals = answer["totals"]
    assert sum(row["generated_tokens"] for row in every) == totals["generated_tokens"]
    assert sum(row["cached_tokens"] or 0 for row in every) == totals["cached_tokens"]
    assert totals["started"] == started == len(every)
    assert totals["finished"] + totals["aborted"] == len(answer["finished"])
    assert answer["errors"] == 0
