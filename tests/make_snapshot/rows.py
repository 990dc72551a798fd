"""Requests: live ones by what they do, and one that ended."""

from __future__ import annotations

import math
from typing import Any

from a40console.model.figures import Estimated, Missing
from a40console.model.snapshot import RecentRequest, Slot
from tests.make_snapshot.blocks import NO_SESSIONS, at

IN_PREFILL = Missing("in prefill")
NOT_OURS = Missing("not sent through the gateway")


def slot(**changes: Any) -> Slot:
    """A decoding request of a Claude Code session."""
    values: dict[str, Any] = {
        "slot": 0,
        "request_id": "req-7f3a-0127",
        "session": "7f3a",
        "agent": NO_SESSIONS,
        "client": "claude-code",
        "model": "qwen3-coder-30b",
        "direct": False,
        "phase": "decode",
        "prompt_tokens": 31204,
        "cached_tokens": 29956,
        "reread_tokens": NO_SESSIONS,
        "generated_tokens": 1204,
        "max_tokens": 8192,
        "prefill_ratio": Missing("not in prefill"),
        "tokens_per_s": 412.6,
        "passes_per_s": 22.7,
        "tokens_per_pass": 18.2,
        "window_tokens_per_s": 412.6,
        "ttft_s": 0.31,
        "age_s": 4.1,
        "method": "engine",
    }
    return Slot(**(values | changes))


def prefill_slot(**changes: Any) -> Slot:
    """A request in prefill: it has no speeds yet, and says why."""
    values: dict[str, Any] = {
        "slot": 1,
        "request_id": "req-7f3a-0128",
        "phase": "prefill",
        "prompt_tokens": 18990,
        "cached_tokens": 0,
        "generated_tokens": 0,
        "prefill_ratio": 0.71,
        "tokens_per_s": IN_PREFILL,
        "passes_per_s": IN_PREFILL,
        "tokens_per_pass": IN_PREFILL,
        "window_tokens_per_s": 0.0,
        "ttft_s": Missing("no token yet"),
        "age_s": 2.2,
    }
    return slot(**(values | changes))


def four_slots() -> tuple[Slot, ...]:
    """Two that decode, one in prefill, one in the engine's queue."""
    queued = Missing("queued in the engine")
    return (
        slot(),
        prefill_slot(),
        slot(
            slot=2,
            request_id="req-c04d-0009",
            session="c04d",
            client="openai-python",
            prompt_tokens=2210,
            cached_tokens=1984,
            generated_tokens=388,
            max_tokens=1024,
            tokens_per_s=Estimated(96.4),
            passes_per_s=Estimated(22.7),
            tokens_per_pass=Estimated(4.25),
            window_tokens_per_s=Estimated(96.4),
            ttft_s=0.84,
            age_s=11.0,
            method="apportioned",
        ),
        prefill_slot(
            slot=3,
            request_id="req-direct-77",
            session=NOT_OURS,
            client=NOT_OURS,
            model=NOT_OURS,
            direct=True,
            phase="queued",
            prompt_tokens=640,
            prefill_ratio=Missing("not in prefill"),
            tokens_per_s=queued,
            passes_per_s=queued,
            tokens_per_pass=queued,
            age_s=0.6,
        ),
    )


def many_slots(number: int, step: int = 0) -> tuple[Slot, ...]:
    """Decoding requests whose every figure moves with `step`."""
    rows = []
    for index in range(number):
        wave = 1 + 0.4 * math.sin(step / 3 + index)
        speed = 38.0 * wave
        rows.append(
            slot(
                slot=index,
                request_id=f"req-{index:04d}",
                session=f"{(index * 7919) % 65536:04x}",
                prompt_tokens=8000 + 977 * index,
                cached_tokens=7000 + 900 * index,
                generated_tokens=120 + index + round(38 * step * wave) % 8000,
                tokens_per_s=speed,
                passes_per_s=9.0 * wave,
                tokens_per_pass=speed / (9.0 * wave),
                window_tokens_per_s=speed,
                ttft_s=0.3 + index / 50,
                age_s=float(4 + index + step),
            )
        )
    return tuple(rows)


def recent(**changes: Any) -> RecentRequest:
    """A request that finished."""
    values: dict[str, Any] = {
        "request_id": "req-7f3a-0126",
        "session": "7f3a",
        "finish_reason": "tool_use",
        "generated_tokens": 640,
        "tokens_per_s": 398.0,
        "ttft_s": 0.29,
        "ended_at": at(7),
        "client": "claude-code",
        "model": "qwen3-coder-30b",
        "queue_s": 0.01,
        "prefill_s": 0.27,
        "decode_s": 1.61,
        "agent": "main",
        "prompt_tokens": 20_480,
        "cached_tokens": 19_660,
        "reread_tokens": 0,
        "max_tokens": 8192,
        "method": "engine",
        "age_s": 1.9,
    }
    return RecentRequest(**(values | changes))
