"""What lies behind a snapshot: its history, the journal, the profiles."""

from __future__ import annotations

import math

from a40console.model.control import HistoryPoint, ProfileSummary
from a40console.model.event import Event
from a40console.model.figures import Figure, Missing, number
from tests.make_snapshot.blocks import NOW, at


def history(points: int = 900) -> tuple[HistoryPoint, ...]:
    """A quarter of an hour with two busy spells."""
    now_s = NOW.timestamp()
    return tuple(
        HistoryPoint(
            at_s=now_s - age,
            generation_tokens_per_s=_past_speed(900 - age),
            prefill_tokens_per_s=3957.0 if (900 - age) % 140 < 6 else 0.0,
            running=1,
            waiting=0,
            generation_peak_tokens_per_s=_past_speed(900 - age),
            passes_per_s=22.7,
            tokens_per_pass=17.0 + 2 * math.sin((900 - age) / 70),
            held=0,
            cache_hit_ratio=0.96,
            kv_held_ratio=0.04 + 0.07 * (900 - age) / 900,
            ttft_s=4.1 if (900 - age) % 400 < 20 else 0.31,
            cpu_used_vcpu=2.9 + 0.4 * math.sin((900 - age) / 20),
            throttled_ms_per_s=0.0,
            gpu_memory_used_bytes=44_990_000_000,
            gpu_utilization_ratio=0.97 if number(_past_speed(900 - age)) else 0.03,
            gpu_power_w=283.0 if number(_past_speed(900 - age)) else 71.0,
        )
        for age in range(points, 0, -1)
    )


def _past_speed(second: int) -> Figure:
    if 395 <= second < 410:
        return Missing("the engine restarted")
    if second < 90 or 480 <= second < 560:
        return 0.0
    base = 190.0 if second < 240 else 420.0
    return max(0.0, base + 40 * math.sin(second / 9) + 25 * math.sin(second / 2.3))


def events() -> tuple[Event, ...]:
    """A day's journal, oldest first."""
    return (
        Event(9120, at(820), "engine.serving", "qwen3-coder-30b serves, 77.0 s after its start"),
        Event(9126, at(656), "service.started", "the service starts"),
        Event(9127, at(655), "engine.adopted", "qwen3-coder-30b, 164 s old, is taken over"),
        Event(
            9131,
            at(240),
            "command.failed",
            "engine.switch: kimi-linear-48b cannot run here",
            "warn",
            {"evidence": "the model is not on this disk"},
        ),
    )


def profiles() -> tuple[ProfileSummary, ...]:
    """Three profiles, one of which this machine cannot run."""
    return (
        ProfileSummary(
            name="qwen3-coder-30b",
            title="Qwen3 Coder 30B, AWQ",
            kind="vllm",
            model="Qwen/Qwen3-Coder-30B-A3B-Instruct-AWQ",
            origin="shipped",
            speculation="ngram 24, on",
            usd_per_hour=0.44,
            ready=True,
            why_not=None,
        ),
        ProfileSummary(
            name="kimi-linear-48b",
            title="Kimi Linear 48B",
            kind="vllm",
            model="moonshotai/Kimi-Linear-48B-A3B-Instruct",
            origin="shipped",
            speculation=None,
            usd_per_hour=0.44,
            ready=False,
            why_not="vLLM is not installed: pip install vllm",
        ),
        ProfileSummary(
            name="smollm2-135m",
            title="SmolLM2 135M, embedded",
            kind="llamacpp",
            model="SmolLM2-135M-Instruct.Q4_1.gguf",
            origin="shipped",
            speculation=None,
            usd_per_hour=None,
            ready=True,
            why_not=None,
        ),
    )
