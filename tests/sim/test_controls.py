"""The simulated engine's depth, pause and sleep: its passes follow them from the next one on."""

from __future__ import annotations

import pytest

from a40console.sim.core import Core, Options
from a40console.sim.requests import Output
from a40console.sim.sheets import SHEETS
from tests.sim.engine_process import TOKEN, sim_process
from tests.sim.test_core import order, run

QWEN, KIMI = SHEETS["qwen3-coder-30b"], SHEETS["kimi-linear-48b"]
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def core(depth: int = 24, sheet: object = QWEN) -> Core:
    options = Options(max_model_len=8192, kv_blocks=512, depth=depth, batched_tokens=16384)
    return Core(sheet, options)  # type: ignore[arg-type]


def decoded(engine: Core, tokens: int) -> list[Output]:
    engine.submit(order("a", tuple(range(100)), tokens, regime="code_edit"), 0.0)
    return run(engine)


def test_off_emits_one_token_a_pass_and_drafts_nothing() -> None:
    engine = core()
    engine.depth = 0
    outputs = decoded(engine, 60)
    assert {len(output.tokens) for output in outputs} == {1}
    assert engine.statistics.drafts == 0


def test_a_depth_is_the_length_of_every_draft() -> None:
    engine = core()
    engine.depth = 3
    outputs = decoded(engine, 60)
    assert max(len(output.tokens) for output in outputs) <= 4
    assert engine.statistics.draft_tokens == 3 * engine.statistics.drafts > 0
    assert len(engine.statistics.drafted_per_position) == 3


def test_a_change_counts_from_the_next_pass_on() -> None:
    engine = core()
    engine.submit(order("a", tuple(range(100)), 400, regime="code_edit"), 0.0)
    engine.advance(0.2)
    drafts = engine.statistics.drafts
    engine.depth = 0
    engine.advance(engine.next_event_s() or 0.0)  # the pass that is under way was planned before
    assert engine.statistics.drafts <= drafts + 1
    drafts = engine.statistics.drafts
    engine.advance(1.0)
    assert engine.statistics.drafts == drafts


def test_off_live_is_as_fast_as_off_where_graphs_stay_and_not_where_they_do_not() -> None:
    def seconds(depth: int, now: int, sheet: object) -> float:
        engine = core(depth, sheet)
        engine.depth = now
        return decoded(engine, 100)[-1].at_s

    assert seconds(24, 0, QWEN) == pytest.approx(seconds(0, 0, QWEN))
    assert seconds(5, 0, KIMI) > 2 * seconds(0, 0, KIMI)


def test_a_pause_holds_what_runs_and_what_comes() -> None:
    engine = core()
    engine.submit(order("a", tuple(range(100)), 50), 0.0)
    engine.advance(0.2)
    engine.paused = True
    engine.submit(order("b", tuple(range(100)), 5), 0.3)
    engine.advance(0.5)
    generated = engine.statistics.generated_tokens
    assert engine.next_event_s() is None
    engine.advance(50.0)
    assert engine.statistics.generated_tokens == generated
    engine.resume(50.0)
    outputs = run(engine, 50.0)
    assert {output.request_id for output in outputs if output.finish_reason} == {"a", "b"}


def test_a_cache_is_forgotten_only_while_nobody_holds_it() -> None:
    engine = core()
    engine.submit(order("a", tuple(range(640)), 500), 0.0)
    engine.advance(0.5)
    assert engine.pool.forget() is False
    run(engine, 0.5)
    assert engine.pool.reusable > 0
    assert engine.pool.forget() is True
    assert engine.pool.reusable == 0
    assert engine.pool.held == 0


def test_a_sleep_that_is_not_survived_answers_gibberish() -> None:
    body = {"messages": [{"role": "user", "content": "say it"}], "max_tokens": 30}
    with sim_process("--enable-sleep-mode", "--fault", "junk_after_wake", "--speed", "50") as made:

        def said() -> str:
            answer = made.http.post("/v1/chat/completions", json=body).json()
            text: str = answer["choices"][0]["message"]["content"]
            return text

        well = said()
        for name, level in (("sleep", {"level": 2}), ("wake", {})):
            told = made.http.post(f"/a40console/v1/{name}", json=level, headers=BEARER)
            assert told.status_code == 200
        assert said() != well


def test_an_engine_started_without_the_parts_says_what_it_lacks() -> None:
    with sim_process("--speed", "50") as made:
        controls = made.http.get("/a40console/v1/state", headers=BEARER).json()["controls"]
        assert controls["speculation"] == "the engine was started without speculation"
        assert controls["sleep"] == "the engine was started without --enable-sleep-mode"
        assert controls["abort"] is None
        for name in controls:
            assert made.http.post(f"/a40console/v1/{name}", json={}).status_code == 401
        answer = made.http.post("/a40console/v1/speculation", json={"tokens": 1}, headers=BEARER)
        assert answer.status_code == 409
        answer = made.http.post("/a40console/v1/speculation", json={"tokens": "x"}, headers=BEARER)
        assert answer.status_code == 400
