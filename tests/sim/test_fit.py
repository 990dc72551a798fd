"""The simulated A40 beside the measured one: every table of the field notes, with its tolerance."""

from __future__ import annotations

import pytest

from a40console.sim.core import Core, Options
from a40console.sim.requests import Order
from a40console.sim.sheets import SHEETS, Regime, survival

QWEN, KIMI = SHEETS["qwen3-coder-30b"], SHEETS["kimi-linear-48b"]


def tokens_per_s(
    model: str,
    streams: int,
    *,
    depth: int = 0,
    batched: int = 16_384,
    regime: Regime = "prose",
    tokens: int = 500,
    context: int = 200,
) -> float:
    """Aggregate decode speed of so many streams, prompts and their prefill apart."""
    sheet = SHEETS[model]
    options = Options(
        max_model_len=sheet.max_model_len, depth=depth, batched_tokens=batched, max_running=64
    )
    engine = Core(sheet, options)
    for number in range(streams):
        prompt = tuple(range(number * 1_000_000, number * 1_000_000 + context))
        name = f"r{number}"
        engine.submit(
            Order(
                request_id=name,
                external_id=name,
                prompt=prompt,
                max_tokens=tokens,
                answer_tokens=tokens,
                regime=regime,
                seed=number,
            ),
            0.0,
        )
    while engine.statistics.first_token_s.count < streams:
        engine.advance(engine.next_event_s() or 0.0)
    from_s, before = engine.next_event_s() or 0.0, engine.statistics.generated_tokens
    now_s = from_s
    while len(engine.live()) == streams:
        now_s = engine.next_event_s() or 0.0
        engine.advance(now_s)
    return (engine.statistics.generated_tokens - before) / (now_s - from_s)


@pytest.mark.parametrize(
    ("streams", "measured"),
    [(1, 122.9), (2, 209.5), (4, 331.2), (8, 512.1), (16, 776.8), (32, 1159.7)],
)
def test_qwen_by_sessions_without_speculation(streams: int, measured: float) -> None:
    got = tokens_per_s("qwen3-coder-30b", streams)
    assert got == pytest.approx(measured, rel=0.06)


@pytest.mark.parametrize(
    ("streams", "measured"), [(1, 83.9), (4, 250.6), (8, 402.9), (16, 616.4), (32, 772.4)]
)
def test_kimi_by_streams_without_speculation(streams: int, measured: float) -> None:
    assert tokens_per_s("kimi-linear-48b", streams) == pytest.approx(measured, rel=0.07)


@pytest.mark.parametrize(("streams", "slower"), [(2, 0.08), (4, 0.28), (8, 0.36)])
def test_speculation_loses_with_several_sessions(streams: int, slower: float) -> None:
    with_drafts = tokens_per_s("qwen3-coder-30b", streams, depth=24, regime="session", tokens=3000)
    without = tokens_per_s("qwen3-coder-30b", streams)
    assert 1 - with_drafts / without == pytest.approx(slower, abs=0.06)


def test_speculation_wins_for_a_single_session() -> None:
    with_drafts = tokens_per_s("qwen3-coder-30b", 1, depth=24, regime="session", tokens=4000)
    assert with_drafts > tokens_per_s("qwen3-coder-30b", 1)


@pytest.mark.parametrize(
    ("depth", "batched", "measured"), [(5, 2048, 259.2), (12, 16_384, 363.9), (24, 16_384, 574.7)]
)
def test_code_edits_by_depth(depth: int, batched: int, measured: float) -> None:
    got = tokens_per_s(
        "qwen3-coder-30b", 1, depth=depth, batched=batched, regime="code_edit", tokens=6000
    )
    assert got == pytest.approx(measured, rel=0.08)


@pytest.mark.parametrize(("regime", "change"), [("prose", -0.43), ("code_edit", 0.86)])
def test_a_regime_decides_at_depth_five(regime: Regime, change: float) -> None:
    drafted = tokens_per_s("qwen3-coder-30b", 1, depth=5, batched=2048, regime=regime, tokens=4000)
    assert drafted / tokens_per_s("qwen3-coder-30b", 1) - 1 == pytest.approx(change, abs=0.12)


@pytest.mark.parametrize(
    ("depth", "batched", "streams", "measured"),
    [
        (5, 2048, 1, 79.2),
        (5, 2048, 4, 110.1),
        (5, 2048, 8, 154.4),
        (5, 2048, 16, 271.2),
        (5, 2048, 32, 296.1),
        (12, 16_384, 1, 93.3),
        (12, 16_384, 4, 186.9),
        (12, 16_384, 8, 278.4),
        (12, 16_384, 16, 297.2),
        (12, 16_384, 32, 336.9),
    ],
)
def test_free_text_under_speculation(
    depth: int, batched: int, streams: int, measured: float
) -> None:
    got = tokens_per_s("qwen3-coder-30b", streams, depth=depth, batched=batched, tokens=900)
    assert got == pytest.approx(measured, rel=0.35)  # the runs themselves are as uneven


@pytest.mark.parametrize(
    ("depth", "per_draft", "ratio", "last"),
    [(5, 3.41, 0.682, 0.58), (12, 3.23, 0.269, 0.163), (24, 17.16, 0.715, 0.506)],
)
def test_accepted_by_depth_and_position(
    depth: int, per_draft: float, ratio: float, last: float
) -> None:
    curve = survival("code_edit", depth)
    assert sum(curve) == pytest.approx(per_draft, rel=0.01)
    assert sum(curve) / depth == pytest.approx(ratio, rel=0.01)
    assert curve[-1] == pytest.approx(last, abs=0.02)


@pytest.mark.parametrize(
    ("streams", "with_drafts", "without"), [(1, 23.1, 71.2), (4, 58.7, 249.6), (32, 203.9, 781.0)]
)
def test_kimi_is_three_to_four_times_slower_with_drafts(
    streams: int, with_drafts: float, without: float
) -> None:
    slow = tokens_per_s("kimi-linear-48b", streams, depth=5, tokens=300)
    fast = tokens_per_s("kimi-linear-48b", streams, tokens=300)
    assert fast / slow == pytest.approx(without / with_drafts, rel=0.25)


@pytest.mark.parametrize(
    ("model", "prompt", "measured_s", "tolerance"),
    [("qwen3-coder-30b", 38_494, 10.42, 0.08), ("kimi-linear-48b", 32_000, 32_000 / 7647, 0.08)],
)
def test_a_cold_prompt_takes_as_long(
    model: str, prompt: int, measured_s: float, tolerance: float
) -> None:
    assert first_token_s(model, prompt)[0] == pytest.approx(measured_s, rel=tolerance)


def test_a_warm_prompt_is_nearly_free() -> None:
    _, warm_s = first_token_s("qwen3-coder-30b", 38_494)
    assert 0.4 < warm_s < 1.1  # 38,494 tokens came warm in 0.61 to 1.07 s


def first_token_s(model: str, prompt: int) -> tuple[float, float]:
    """Seconds to the first token of a prompt, cold and then warm."""
    sheet = SHEETS[model]
    engine = Core(sheet, Options(max_model_len=sheet.max_model_len, batched_tokens=8192))
    took = []
    for number, at_s in enumerate((0.0, 100.0)):
        name = f"r{number}"
        engine.submit(
            Order(
                request_id=name,
                external_id=name,
                prompt=tuple(range(prompt)),
                max_tokens=1,
                answer_tokens=1,
            ),
            at_s,
        )
        engine.advance(at_s + 99)
        took.append((engine.ended[-1][1].first_token_s or 0.0) - at_s)
    return took[0], took[1]


def test_a_long_context_slows_a_stream_down() -> None:
    short = tokens_per_s("qwen3-coder-30b", 1)
    long = tokens_per_s("qwen3-coder-30b", 1, context=119_000, tokens=40)
    assert long / short == pytest.approx(34.3 / 77.6, rel=0.3)


def test_the_cache_holds_a_dozen_sessions() -> None:
    assert pytest.approx(QWEN.kv_capacity_tokens / 35_000, rel=0.01) == 450_000 / 35_000
    assert KIMI.kv_capacity_tokens == pytest.approx(1_505_550, rel=0.001)
