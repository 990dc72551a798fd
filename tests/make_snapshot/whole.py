"""A whole snapshot, and a stream of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from a40console.advisor.limit import explain, limit
from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.service_info import ServiceInfo
from a40console.model.snapshot import Limit, Slot, Snapshot
from tests.make_snapshot.blocks import (
    at,
    cost,
    engine,
    findings,
    gpu,
    host,
    kv_cache,
    latency,
    prefix_cache,
    requests,
    sources,
    speculation,
    throughput,
)
from tests.make_snapshot.rows import four_slots, many_slots, recent


def snapshot(**changes: Any) -> Snapshot:
    """A vLLM that serves four requests."""
    slots = changes.get("slots", four_slots())
    values: dict[str, Any] = {
        "schema": 1,
        "protocol": 1,
        "seq": 412,
        "at": at(),
        "monotonic_s": 8123.4,
        "interval_s": 1.0,
        "simulated": False,
        "service": ServiceInfo(
            version="0.1.0", pid=812, uptime_s=11520.0, home="/root/.a40", read_only=False
        ),
        "engine": engine(),
        "slots": slots,
        "recent": (
            recent(),
            recent(
                request_id="req-c04d-0008",
                session="c04d",
                finish_reason="stop",
                generated_tokens=212,
                tokens_per_s=91.3,
                ttft_s=0.7,
                ended_at=at(31),
            ),
            recent(
                request_id="req-a91c-0056",
                session="a91c",
                finish_reason="tool_use",
                generated_tokens=1911,
                tokens_per_s=431.0,
                ttft_s=4.1,
                ended_at=at(190),
            ),
        ),
        "sessions": Missing("client sessions are not followed"),
        "throughput": throughput(_sum(slots)),
        "requests": requests(),
        "latency": latency(),
        "prefix_cache": prefix_cache(),
        "speculation": speculation(),
        "kv_cache": kv_cache(),
        "gpus": (gpu(),),
        "host": host(),
        "cost": cost(),
        "limit": Limit(cause="unknown", text="", evidence=(), ruled_out=()),
        "findings": findings(),
        "events_last_id": 9131,
        "sources": sources(),
    }
    made = Snapshot(**(values | changes))
    return made if "limit" in changes else replace(made, limit=limit(explain(made)))


def _sum(slots: tuple[Slot, ...] | Missing) -> Figure:
    if isinstance(slots, Missing):
        return 509.0
    figures = [row.window_tokens_per_s for row in slots]
    return sum(
        f.value if isinstance(f, Estimated) else f for f in figures if not isinstance(f, Missing)
    )


def moving(number: int, *, start_s: float) -> Iterator[Snapshot]:
    """One snapshot a second in which every figure of every slot moves."""
    step = 0
    while True:
        now = datetime.fromtimestamp(start_s + step, UTC)
        yield snapshot(
            seq=step + 1,
            at=now.isoformat(),
            slots=many_slots(number, step),
            gpus=(gpu(power_w=270.0 + step % 17, temperature_c=60 + step % 9),),
            host=host(cpu_used_vcpu=3.0 + step % 10 / 10),
            kv_cache=kv_cache(held_tokens=51000 + 640 * (step % 60)),
        )
        step += 1
