"""The core of the simulated engine: what must hold whatever is asked of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a40console.sim.core import Core, Options
from a40console.sim.requests import Order, Output
from a40console.sim.sheets import SHEETS, Regime
from a40console.sim.text import answer, token_ids, tokenize

SHEET = SHEETS["qwen3-coder-30b"]
BLOCK = SHEET.block_tokens


def order(
    name: str,
    prompt: tuple[int, ...],
    tokens: int,
    *,
    regime: Regime = "session",
    seed: int = 1,
) -> Order:
    return Order(
        request_id=name,
        external_id=name,
        prompt=prompt,
        max_tokens=tokens,
        answer_tokens=tokens,
        regime=regime,
        seed=seed,
    )


def core(**changes: object) -> Core:
    known: dict[str, object] = {"max_model_len": 4096, "max_running": 8, "kv_blocks": 256}
    return Core(SHEET, Options(**{**known, **changes}))  # type: ignore[arg-type]


def run(engine: Core, from_s: float = 0.0, *, step_s: float = 0.01) -> list[Output]:
    """Everything until it is idle."""
    outputs, now_s = [], from_s
    while engine.live():
        now_s += step_s
        outputs += engine.advance(now_s)
        assert engine.pool.held <= engine.pool.size
        assert now_s < from_s + 10_000
    return outputs


ORDERS = st.lists(
    st.tuples(
        st.integers(1, 900),  # prompt tokens
        st.integers(1, 120),  # answer tokens
        st.integers(0, 3),  # whose beginning it shares
        st.floats(0, 2, allow_nan=False),  # when it comes
        st.sampled_from(["prose", "session", "code_edit"]),
    ),
    min_size=1,
    max_size=12,
)


def play(engine: Core, plan: list[tuple[int, int, int, float, Regime]]) -> list[Output]:
    outputs: list[Output] = []
    now_s = 0.0
    for number, (prompt, tokens, family, at_s, regime) in enumerate(
        sorted(plan, key=lambda each: each[3])
    ):
        now_s = at_s
        ids = tuple(family * 10_000 + index for index in range(prompt))
        wanted = order(f"r{number}", ids, tokens, regime=regime, seed=number)
        outputs += engine.submit(wanted, at_s)
    return outputs + run(engine, now_s)


@settings(max_examples=60, deadline=None)
@given(plan=ORDERS, depth=st.sampled_from([0, 5]), blocks=st.sampled_from([80, 256]))
def test_every_token_comes_out_once_and_the_cache_holds(
    plan: list[tuple[int, int, int, float, Regime]], depth: int, blocks: int
) -> None:
    engine = core(depth=depth, kv_blocks=blocks)
    outputs = play(engine, plan)
    asked = sorted(plan, key=lambda each: each[3])
    for number, (prompt, tokens, *_) in enumerate(asked):
        mine = [output for output in outputs if output.request_id == f"r{number}"]
        assert sum(len(output.tokens) for output in mine) == tokens
        assert [output.finish_reason for output in mine].count("stop") == 1
        assert prompt > 0
    counted = engine.statistics
    assert counted.generated_tokens == sum(tokens for _, tokens, *_ in asked)
    assert counted.prompt_tokens == sum(prompt for prompt, *_ in asked)
    assert counted.prompt_tokens == counted.cached_tokens + counted.computed_prompt_tokens
    assert counted.finished == len(plan)
    assert counted.draft_tokens == counted.drafts * depth
    assert sum(counted.accepted_per_position) == counted.accepted_tokens
    assert counted.accepted_per_position == sorted(counted.accepted_per_position, reverse=True)
    assert engine.pool.held == 0
    # Each pass with tokens is one sample, but each request's first.
    assert counted.between_tokens_s.count == len(outputs) - len(plan)


@settings(max_examples=40, deadline=None)
@given(plan=ORDERS)
def test_only_whole_blocks_hit_and_never_a_whole_prompt(
    plan: list[tuple[int, int, int, float, Regime]],
) -> None:
    engine = core()
    play(engine, plan)
    for _, request in engine.ended:
        cached = request.cached or 0
        assert cached % BLOCK == 0
        assert cached < len(request.order.prompt)


@settings(max_examples=25, deadline=None)
@given(plan=ORDERS, depth=st.sampled_from([0, 24]))
def test_the_same_seed_brings_the_same_tokens_at_the_same_times(
    plan: list[tuple[int, int, int, float, Regime]], depth: int
) -> None:
    once, again = (play(core(depth=depth, seed=7), plan) for _ in range(2))
    assert once == again


@settings(max_examples=25, deadline=None)
@given(plan=ORDERS)
def test_no_counter_ever_falls(plan: list[tuple[int, int, int, float, Regime]]) -> None:
    engine = core(depth=5, kv_blocks=80)
    names = [
        *("prompt_tokens", "cached_tokens", "generated_tokens", "passes", "drafts"),
        *("preemptions", "accepted_tokens", "started", "finished"),
    ]
    before = dict.fromkeys(names, 0)
    for number, (prompt, tokens, family, _, regime) in enumerate(plan):
        ids = tuple(family * 10_000 + index for index in range(prompt))
        engine.submit(order(f"r{number}", ids, tokens, regime=regime), number * 0.05)
        now = {name: getattr(engine.statistics, name) for name in names}
        assert all(now[name] >= before[name] for name in names)
        before = now


def test_a_prompt_that_was_there_is_not_computed_again() -> None:
    engine = core()
    prompt = tuple(range(640))
    engine.submit(order("first", prompt, 4), 0.0)
    run(engine)
    engine.submit(order("second", prompt, 4), 5.0)
    run(engine, 5.0)
    _, second = engine.ended[-1]
    assert second.cached == 640 - BLOCK  # the last block is computed, or nothing would come out
    assert engine.statistics.computed_prompt_tokens == 640 + BLOCK


def test_an_answer_is_found_again_as_part_of_the_next_prompt() -> None:
    engine = core()
    prompt = token_ids("a question of some length " * 30)
    outputs = engine.submit(order("first", prompt, 200), 0.0) + run(engine)
    text = "".join("".join(output.tokens) for output in outputs)
    again = (*prompt, *token_ids(text), *token_ids("\nand another one"))
    engine.submit(order("second", again, 4), 9.0)
    run(engine, 9.0)
    _, second = engine.ended[-1]
    assert (second.cached or 0) >= (len(prompt) + 199) // BLOCK * BLOCK


def test_the_oldest_unused_prefix_is_evicted_first() -> None:
    engine = core(kv_blocks=64)
    for number, start in enumerate((0, 10_000, 20_000)):
        engine.submit(order(f"r{number}", tuple(range(start, start + 400)), 2), number * 5.0)
        run(engine, number * 5.0)
    for name, start, at_s in (("newest", 20_000, 20.0), ("oldest", 0, 30.0)):
        engine.submit(order(name, tuple(range(start, start + 400)), 2), at_s)
        run(engine, at_s)
    cached = {request.order.request_id: request.cached for _, request in engine.ended}
    assert cached["newest"] == 384
    assert 0 < (cached["oldest"] or 0) < 384  # its end went first: a beginning serves more of them


def test_a_full_cache_preempts_the_newest_and_both_still_finish() -> None:
    engine = core(kv_blocks=40)
    for number in range(3):
        prompt = tuple(range(number * 10_000, number * 10_000 + 160))
        engine.submit(order(f"r{number}", prompt, 250), 0.0)
    run(engine)
    assert engine.statistics.preemptions > 0
    assert engine.statistics.generated_tokens == 750
    preempted = [request.preemptions for _, request in engine.ended]
    assert sum(preempted) == engine.statistics.preemptions


def test_more_than_may_run_waits_in_order() -> None:
    engine = core(max_running=2)
    for number in range(4):
        engine.submit(order(f"r{number}", tuple(range(100)), 50), number * 1e-3)
    engine.advance(0.1)
    assert [request.order.request_id for request in engine.running] == ["r0", "r1"]
    assert [request.phase for request in engine.waiting] == ["queued", "queued"]
    run(engine, 0.1)
    ended = [request.order.request_id for _, request in engine.ended]
    assert ended == ["r0", "r1", "r2", "r3"]


def test_what_is_aborted_gives_its_blocks_back_and_no_token_more() -> None:
    engine = core()
    engine.submit(order("one", tuple(range(500)), 1000), 0.0)
    engine.advance(1.0)
    assert engine.pool.held > 0
    engine.abort("one", 1.0)
    assert engine.pool.held == 0
    assert engine.advance(5.0) == []
    assert engine.statistics.aborted == 1
    assert engine.statistics.ended == {}  # vLLM counts no aborts among its successes


def test_a_frozen_engine_takes_orders_and_gives_nothing() -> None:
    engine = core()
    engine.frozen = True
    engine.submit(order("one", tuple(range(50)), 5), 0.0)
    assert engine.advance(60.0) == []
    assert len(engine.live()) == 1


def test_speed_makes_everything_so_many_times_faster() -> None:
    slow, fast = core(), core(speed=100.0)
    for engine in (slow, fast):
        engine.submit(order("one", tuple(range(2000)), 400), 0.0)
        run(engine, step_s=0.001)
    ended = [engine.ended[-1][1].ended_s or 0.0 for engine in (slow, fast)]
    assert ended[0] / ended[1] == pytest.approx(100, rel=0.01)


def test_an_order_that_could_never_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        core(kv_blocks=8).submit(order("huge", tuple(range(100)), 100), 0.0)


@given(st.text(max_size=300))
def test_tokens_joined_are_the_text_again(text: str) -> None:
    assert "".join(tokenize(text)) == text


@pytest.mark.parametrize("regime", ["prose", "session", "code_edit"])
def test_an_answer_is_the_same_tokens_when_it_is_read_again(regime: Regime) -> None:
    words = answer(regime, 3)
    written = [next(words) for _ in range(2000)]
    assert tokenize("".join(written)) == written


def test_garbled_code_repeats_what_it_has_just_written() -> None:
    plain, garbled = answer("code_edit", 3), answer("code_edit", 3, garbled=True)
    assert [next(plain) for _ in range(300)] != [next(garbled) for _ in range(300)]
