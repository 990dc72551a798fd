"""Builds realistic snapshots, history and events, for tests and for screenshots."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from a40console.model.control import HistoryPoint, ProfileSummary
from a40console.model.engine import EngineEnd, EngineState
from a40console.model.event import Event, Finding
from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.snapshot import (
    BusiestThread,
    CacheLoss,
    Cost,
    Difference,
    EngineInfo,
    FirstToken,
    Gpu,
    Host,
    KvCache,
    Latency,
    Limit,
    Percentiles,
    PrefixCache,
    RecentRequest,
    Requests,
    ServiceInfo,
    Session,
    Slot,
    Snapshot,
    SourceStatus,
    SpeculationInfo,
    Throughput,
    UsdPerMillion,
)

NOW = datetime(2026, 11, 29, 14, 7, 31, tzinfo=UTC)
MIB, GIB = 2**20, 2**30

NO_PROMPT = Missing("no prompt in the window")
NOT_YET = Missing("not before its first token")
IN_PREFILL = Missing("in prefill")
NO_PLUGIN = Missing("needs the plugin")


def at(seconds_ago: float = 0.0) -> str:
    """An instant before NOW as the service writes it."""
    return (NOW - timedelta(seconds=seconds_ago)).isoformat().replace("+00:00", "Z")


def slot(**changes: Any) -> Slot:
    """A decoding request of a Claude Code session."""
    values: dict[str, Any] = {
        "slot": 0,
        "request_id": "req-7f3a-0127",
        "session": "7f3a",
        "agent": "main",
        "client": "claude-code",
        "model": "qwen3-coder-30b",
        "direct": False,
        "phase": "decode",
        "prompt_tokens": 31204,
        "cached_tokens": 29956,
        "reread_tokens": 0,
        "generated_tokens": 1204,
        "max_tokens": 8192,
        "prefill_ratio": Missing("the prefill is over"),
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
        "agent": "Explore",
        "phase": "prefill",
        "prompt_tokens": 18990,
        "cached_tokens": NOT_YET,
        "reread_tokens": NOT_YET,
        "generated_tokens": IN_PREFILL,
        "prefill_ratio": Estimated(0.71),
        "tokens_per_s": IN_PREFILL,
        "passes_per_s": IN_PREFILL,
        "tokens_per_pass": IN_PREFILL,
        "window_tokens_per_s": 0.0,
        "ttft_s": NOT_YET,
        "age_s": 2.2,
    }
    return slot(**(values | changes))


def four_slots() -> tuple[Slot, ...]:
    """Two that decode, one in prefill, one in the engine's queue."""
    queued = Missing("queued")
    return (
        slot(),
        prefill_slot(),
        slot(
            slot=2,
            request_id="req-c04d-0009",
            session="c04d",
            agent="main",
            client="openai-python",
            prompt_tokens=2210,
            cached_tokens=1984,
            reread_tokens=16,
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
            session=Missing("not through the gateway"),
            agent=Missing("not through the gateway"),
            client=Missing("not through the gateway"),
            direct=True,
            phase="queued",
            prompt_tokens=640,
            prefill_ratio=queued,
            generated_tokens=queued,
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
                agent="main" if index % 3 else "Explore",
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


def session(**changes: Any) -> Session:
    """A session whose client runs a tool."""
    values: dict[str, Any] = {
        "session": "a91c",
        "client": "claude-code",
        "phase": "client",
        "tool": "Bash",
        "phase_s": 190.0,
        "turns": 41,
        "requests": 57,
        "context_tokens": 31844,
        "window_tokens": 262144,
        "prompt_tokens": 900112,
        "reused_tokens": 861004,
        "reread_tokens": 16400,
        "generated_tokens": 28110,
        "hit_ratio": 0.957,
        "sustained_tokens_per_s": 268.0,
        "cost_usd": 0.61,
        "started_at": at(7200),
    }
    return Session(**(values | changes))


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
    }
    return RecentRequest(**(values | changes))


def engine(**changes: Any) -> EngineInfo:
    """A vLLM that serves."""
    values: dict[str, Any] = {
        "id": "2026-11-29T10-55-12-qwen3",
        "kind": "vllm",
        "state": EngineState.SERVING,
        "phase": "ready",
        "phase_s": 11410.0,
        "eta_s": Missing("ready"),
        "profile": "qwen3-coder-30b",
        "model": "Qwen/Qwen3-Coder-30B-A3B-Instruct-AWQ",
        "served_name": "qwen3-coder-30b",
        "version": "0.33.0",
        "listen": "socket",
        "pid": 900,
        "session_id": 900,
        "uptime_s": 11520.0,
        "restarts": 0,
        "exit": Missing("running"),
        "max_model_len": 262144,
        "paused": False,
        "argv_digest": "c2f1a09be4d7",
        "effective": (
            Difference(
                setting="max_num_batched_tokens",
                asked=16384,
                effective=2048,
                evidence="log: chunked prefill limits it",
            ),
            Difference(
                setting="async_scheduling",
                asked=True,
                effective=False,
                evidence="n-gram speculation turns it off",
            ),
        ),
    }
    return EngineInfo(**(values | changes))


def gpu(**changes: Any) -> Gpu:
    """An A40 at work."""
    values: dict[str, Any] = {
        "source": "nvml",
        "age_s": 0.4,
        "index": 0,
        "name": "NVIDIA A40",
        "memory_used_bytes": 44_990_000_000,
        "memory_total_bytes": 48_305_799_168,
        "memory_baseline_bytes": 280_000_000,
        "utilization_ratio": 0.97,
        "power_w": 283.0,
        "power_limit_w": 300.0,
        "temperature_c": 67,
        "sm_clock_mhz": 1740,
        "throttle_reasons": (),
        "read_bytes_per_s": Estimated(331e9),
        "peak_bytes_per_s": 696e9,
    }
    return Gpu(**(values | changes))


def host(**changes: Any) -> Host:
    """A pod with nine vCPU."""
    values: dict[str, Any] = {
        "source": "cgroup",
        "age_s": 0.4,
        "cpu_quota_vcpu": 9.0,
        "quota_origin": "cgroup2",
        "cpu_used_vcpu": 3.1,
        "throttled_ms_per_s": 0.0,
        "busiest_engine_thread": BusiestThread(name="EngineCore", ratio=0.88),
        "memory_used_bytes": round(21.3 * GIB),
        "memory_limit_bytes": 50 * GIB,
        "shm_used_bytes": 210 * MIB,
        "shm_total_bytes": 23 * GIB,
        "disk_free_bytes": 61 * GIB,
    }
    return Host(**(values | changes))


def speculation(**changes: Any) -> SpeculationInfo:
    """n-gram speculation at depth 24 that pays."""
    values: dict[str, Any] = {
        "window_s": 60.0,
        "source": "vllm.metrics",
        "age_s": 0.4,
        "mode": "on",
        "control": "live",
        "started_with": 24,
        "depth": 24,
        "depth_max": 24,
        "method": "ngram",
        "tokens_per_pass": 18.2,
        "accepted_per_draft": 17.2,
        "acceptance_ratio": 0.715,
        "accepted_ratio_per_position": tuple(0.98 - 0.0205 * k for k in range(24)),
        "drafts": 212,
        "tail_verdict": "deeper",
        "locked_reason": None,
        "off_tokens_per_s_at_this_load": 118.0,
    }
    return SpeculationInfo(**(values | changes))


def findings() -> tuple[Finding, ...]:
    """One warning whose remedy has a command."""
    return (
        Finding(
            code="spec-at-2",
            severity="warn",
            title="with 2 decoding, on was 8 % slower than off",
            evidence="measured 13:57, unequal cache: weak",
            since=at(300),
            remedy="Turn speculation off while two sessions decode.",
            command="engine.speculation",
        ),
    )


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
        "sessions": (
            session(
                session="7f3a", phase="decode", tool=Missing("the engine has the turn"), phase_s=4.0
            ),
            session(),
        ),
        "throughput": throughput(_sum(slots)),
        "requests": requests(),
        "latency": latency(),
        "prefix_cache": prefix_cache(),
        "speculation": speculation(),
        "kv_cache": kv_cache(),
        "gpus": (gpu(),),
        "host": host(),
        "cost": cost(),
        "limit": Limit(
            cause="prefill",
            text="prefill of 18,990 tokens (sub-agent Explore), ≈ 1.4 s left",
            evidence=(
                "18,990 prompt tokens computed at ≈ 3,957 tok/s, no decode pass meanwhile",
                "GPU 97 % busy at 283 of 300 W, clocks at 1740 MHz",
            ),
            ruled_out=("vcpu", "kv", "queue", "clocks", "gate"),
        ),
        "findings": findings(),
        "events_last_id": 9131,
        "sources": sources(),
    }
    return Snapshot(**(values | changes))


def _sum(slots: tuple[Slot, ...] | Missing) -> Figure:
    if isinstance(slots, Missing):
        return 509.0
    figures = [row.window_tokens_per_s for row in slots]
    return sum(
        f.value if isinstance(f, Estimated) else f for f in figures if not isinstance(f, Missing)
    )


def throughput(generation: Figure = 412.6, **changes: Any) -> Throughput:
    """The engine's own rates."""
    values: dict[str, Any] = {
        "window_s": 5.0,
        "source": "vllm.metrics",
        "age_s": 0.4,
        "generation_tokens_per_s": generation,
        "prefill_tokens_per_s": 3957.0,
        "passes_per_s": 22.7,
        "sequences_per_pass": 1.67,
    }
    return Throughput(**(values | changes))


def requests(**changes: Any) -> Requests:
    """Two run, one waits, one was aborted."""
    values: dict[str, Any] = {
        "source": "vllm.metrics",
        "age_s": 0.4,
        "held": 0,
        "waiting": 1,
        "waiting_by_reason": {"capacity": 1},
        "running": 3,
        "max_running": 64,
        "aborted": 1,
        "failed": 0,
        "preemptions": 0,
    }
    return Requests(**(values | changes))


def latency(**changes: Any) -> Latency:
    """First tokens with one outlier."""
    values: dict[str, Any] = {
        "window_s": 60.0,
        "ttft_s": FirstToken(
            p50=0.31,
            p95=Missing("5 samples"),
            count=5,
            last=(0.31, 0.29, 4.1, 0.33, 0.3),
            origin="gateway",
        ),
        "pass_s": Percentiles(p50=0.044, p95=0.051, count=1360, origin="engine"),
        "queue_s": Percentiles(p50=0.0, p95=0.0, count=5, origin="engine"),
    }
    return Latency(**(values | changes))


def prefix_cache(**changes: Any) -> PrefixCache:
    """Hits, and one prefix that was lost."""
    values: dict[str, Any] = {
        "window_s": 60.0,
        "source": "vllm.metrics",
        "age_s": 0.4,
        "hit_ratio": 0.96,
        "hit_tokens": 29956,
        "queried_tokens": 31204,
        "prompts": 2,
        "reusable_ratio": 1.0,
        "hit_ratio_since_start": 0.92,
        "last_loss": CacheLoss(
            session="7f3a", turn=127, tokens=16400, cause="block 3, tool result changed", at=at(240)
        ),
    }
    return PrefixCache(**(values | changes))


def kv_cache(**changes: Any) -> KvCache:
    """A tenth held, a third reusable."""
    values: dict[str, Any] = {
        "source": "vllm.metrics",
        "age_s": 0.4,
        "held_tokens": 51000,
        "reusable_tokens": Estimated(133000),
        "free_tokens": 266112,
        "capacity_tokens": 450112,
        "held_ratio": 0.11,
        "fits_more": Estimated(7),
    }
    return KvCache(**(values | changes))


def cost(**changes: Any) -> Cost:
    """What the pod costs."""
    values: dict[str, Any] = {
        "kind": "hourly",
        "usd_per_hour": 0.454,
        "includes_disk": True,
        "usd_so_far": 1.45,
        "since": "rent",
        "usd_per_million": UsdPerMillion(now=0.31, session=0.46, since_rent=3.42),
        "counted": "generated",
    }
    return Cost(**(values | changes))


def sources() -> tuple[SourceStatus, ...]:
    """Four sources, one of which has failed."""
    return (
        SourceStatus(name="vllm.metrics", state="ok", age_s=0.4, reason=None),
        SourceStatus(name="vllm.plugin", state="ok", age_s=0.4, reason=None),
        SourceStatus(name="nvml", state="ok", age_s=0.4, reason=None),
        SourceStatus(name="host", state="stale", age_s=12.0, reason="cpu.stat was not readable"),
    )


def idle() -> Snapshot:
    """An engine that serves and has nothing to do."""
    quiet = Missing("no request is running")
    return snapshot(
        slots=(),
        sessions=(session(phase_s=1900.0),),
        throughput=throughput(
            0.0, prefill_tokens_per_s=0.0, passes_per_s=quiet, sequences_per_pass=quiet
        ),
        requests=requests(running=0, waiting=0, waiting_by_reason={}),
        prefix_cache=prefix_cache(
            hit_ratio=NO_PROMPT,
            hit_tokens=NO_PROMPT,
            queried_tokens=NO_PROMPT,
            prompts=0,
            reusable_ratio=NO_PROMPT,
        ),
        kv_cache=kv_cache(held_tokens=0, held_ratio=0.0, reusable_tokens=184000, fits_more=12),
        speculation=speculation(
            tokens_per_pass=quiet,
            drafts=0,
            accepted_ratio_per_position=Missing("no drafts in the window"),
            tail_verdict=Missing("fewer than 100 drafts"),
        ),
        latency=latency(
            ttft_s=Missing("no request in the window"), pass_s=Missing("no pass in the window")
        ),
        gpus=(
            gpu(
                utilization_ratio=0.0,
                power_w=31.0,
                temperature_c=38,
                read_bytes_per_s=Missing("idle"),
            ),
        ),
        host=host(
            cpu_used_vcpu=0.1, busiest_engine_thread=BusiestThread(name="APIServer", ratio=0.01)
        ),
        cost=cost(
            usd_per_million=UsdPerMillion(
                now=Missing("nothing is generated"), session=0.46, since_rent=3.42
            )
        ),
        limit=Limit(cause="idle", text="idle: no request is running", evidence=(), ruled_out=()),
        findings=(),
    )


def without_engine(state: EngineState, **changes: Any) -> Snapshot:
    """No engine serves: every figure that needs one is missing."""
    none = Missing("no engine runs")
    info = engine(
        state=state,
        phase=none,
        phase_s=none,
        uptime_s=none,
        paused=none,
        pid=none,
        session_id=none,
        effective=none,
        eta_s=none,
    )
    values: dict[str, Any] = {
        "engine": info,
        "slots": none,
        "recent": (),
        "sessions": (),
        "throughput": throughput(
            none, prefill_tokens_per_s=none, passes_per_s=none, sequences_per_pass=none
        ),
        "requests": requests(
            waiting=none,
            waiting_by_reason={},
            running=none,
            max_running=none,
            aborted=none,
            preemptions=none,
        ),
        "latency": Latency(window_s=60.0, ttft_s=none, pass_s=none, queue_s=none),
        "prefix_cache": prefix_cache(
            hit_ratio=none,
            hit_tokens=none,
            queried_tokens=none,
            prompts=none,
            reusable_ratio=none,
            hit_ratio_since_start=none,
            last_loss=none,
        ),
        "speculation": speculation(
            mode=none,
            control="none",
            started_with=none,
            depth=none,
            depth_max=none,
            method=none,
            tokens_per_pass=none,
            drafts=none,
            accepted_ratio_per_position=none,
            tail_verdict=none,
            off_tokens_per_s_at_this_load=none,
        ),
        "kv_cache": kv_cache(
            held_tokens=none,
            reusable_tokens=none,
            free_tokens=none,
            capacity_tokens=none,
            held_ratio=none,
            fits_more=none,
        ),
        "gpus": (
            gpu(
                utilization_ratio=0.0,
                power_w=31.0,
                temperature_c=38,
                memory_used_bytes=280_000_000,
                read_bytes_per_s=none,
            ),
        ),
        "host": host(cpu_used_vcpu=0.1, busiest_engine_thread=none),
        "cost": cost(usd_per_million=UsdPerMillion(now=none, session=none, since_rent=3.42)),
        "limit": Limit(cause="no engine", text="no engine runs", evidence=(), ruled_out=()),
        "findings": (),
    }
    return snapshot(**(values | changes))


def starting() -> Snapshot:
    """Loading the weights, with an estimate of what is left."""
    none = Missing("the engine is starting")
    base = without_engine(EngineState.STARTING)
    return replace(
        base,
        engine=engine(
            state=EngineState.STARTING,
            phase="load",
            phase_s=42.0,
            eta_s=Estimated(35.0),
            uptime_s=Missing("not ready yet"),
            paused=none,
            effective=none,
        ),
        limit=Limit(cause="starting", text="the engine is starting", evidence=(), ruled_out=()),
        gpus=(
            gpu(
                utilization_ratio=0.12,
                power_w=74.0,
                temperature_c=41,
                memory_used_bytes=18_400_000_000,
                read_bytes_per_s=none,
            ),
        ),
    )


def failed() -> Snapshot:
    """A start that ran out of GPU memory."""
    return without_engine(
        EngineState.FAILED,
        engine=replace(
            without_engine(EngineState.FAILED).engine,
            exit=EngineEnd(
                code=1,
                signal=Missing("ended by itself"),
                cause="out of GPU memory while the KV cache was allocated",
                at=at(95),
            ),
        ),
        findings=(
            Finding(
                code="start-out-of-memory",
                severity="error",
                title="the KV cache does not fit beside the weights",
                evidence="CUDA out of memory: tried to allocate 4.50 GiB, 2.11 GiB free",
                since=at(95),
                remedy="Lower max_model_len to 131072, then start again.",
                command="engine.start",
            ),
        ),
    )


def orphaned() -> Snapshot:
    """An engine died and left processes behind."""
    return without_engine(
        EngineState.ORPHANED,
        findings=(
            Finding(
                code="engine-orphaned",
                severity="error",
                title="2 processes of a dead engine hold 41.9 GiB of GPU memory",
                evidence="pids 912, 913 of session 900; leader gone since 14:05:12",
                since=at(140),
                remedy="End exactly these processes: press K.",
                command="engine.clean",
            ),
        ),
    )


def sparse() -> Snapshot:
    """llama.cpp without a GPU: estimates, and much that is not known, each with its reason."""
    unknown = Missing("llama-server does not report it")
    gateway = Missing("the route has no usage")
    return snapshot(
        engine=engine(
            kind="llamacpp",
            profile="smollm2-135m",
            model="SmolLM2-135M-Instruct.Q4_1.gguf",
            served_name="smollm2-135m",
            version="b6989",
            max_model_len=8192,
            paused=unknown,
            effective=(),
        ),
        slots=(
            slot(
                client="curl",
                session=Missing("the client names none"),
                agent=Missing("the client names none"),
                request_id="req-19",
                prompt_tokens=412,
                cached_tokens=unknown,
                reread_tokens=gateway,
                generated_tokens=Estimated(97),
                max_tokens=Missing("not set by the client"),
                tokens_per_s=Estimated(61.3),
                passes_per_s=unknown,
                tokens_per_pass=unknown,
                window_tokens_per_s=Estimated(61.3),
                ttft_s=0.05,
                method="apportioned",
            ),
        ),
        sessions=Missing("no client names its session"),
        recent=(),
        throughput=throughput(
            Estimated(61.3),
            prefill_tokens_per_s=unknown,
            passes_per_s=unknown,
            sequences_per_pass=unknown,
            source="llamacpp.slots",
        ),
        requests=requests(
            waiting=0,
            running=1,
            max_running=4,
            preemptions=unknown,
            aborted=0,
            waiting_by_reason={},
        ),
        latency=latency(pass_s=unknown),
        prefix_cache=prefix_cache(
            hit_ratio=unknown,
            hit_tokens=unknown,
            queried_tokens=unknown,
            prompts=unknown,
            reusable_ratio=unknown,
            hit_ratio_since_start=unknown,
            last_loss=Missing("no loss seen"),
        ),
        speculation=speculation(
            mode="off",
            control="none",
            depth=unknown,
            tokens_per_pass=unknown,
            drafts=unknown,
            accepted_ratio_per_position=unknown,
            tail_verdict=unknown,
            started_with=Missing("none"),
            off_tokens_per_s_at_this_load=Missing("never measured"),
            locked_reason="the model has no draft",
        ),
        kv_cache=kv_cache(
            held_tokens=Estimated(509),
            reusable_tokens=NO_PLUGIN,
            capacity_tokens=8192,
            fits_more=NO_PLUGIN,
        ),
        gpus=Missing("no NVIDIA GPU on this machine"),
        host=host(cpu_quota_vcpu=2.0, cpu_used_vcpu=1.9, throttled_ms_per_s=84.0),
        cost=cost(
            usd_per_hour=Missing("the profile has no price"),
            usd_so_far=Missing("the profile has no price"),
            usd_per_million=UsdPerMillion(
                now=Missing("no price"), session=Missing("no price"), since_rent=Missing("no price")
            ),
        ),
        limit=Limit(
            cause="vcpu",
            text="the container's CPU quota: 1.9 of 2 vCPU, throttled 84 ms/s",
            evidence=("throttled 84 ms in each second",),
            ruled_out=("queue", "gate"),
        ),
        findings=(),
    )


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
        Event(
            9120, at(820), "engine.started", "qwen3-coder-30b serves", data={"ready after": "77 s"}
        ),
        Event(9127, at(655), "speculation.turned_on", "n-gram 24, live", data={"took": "0.4 s"}),
        Event(
            9129,
            at(240),
            "prefix.lost",
            "7f3a turn 127 re-read 16,400 tokens: tool result changed in block 3",
            "warn",
            {"cost": "4.1 s"},
        ),
        Event(9131, at(40), "request.aborted", "client disconnected after 212 tokens", "info"),
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
            why_not="the model is not on this disk: a40console models fetch kimi-linear-48b",
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


def moving(number: int, *, start_s: float) -> Iterator[Snapshot]:
    """One snapshot a second in which every figure of every slot moves."""
    step = 0
    while True:
        now = datetime.fromtimestamp(start_s + step, UTC)
        yield snapshot(
            seq=step + 1,
            at=now.isoformat(),
            slots=many_slots(number, step),
            sessions=(),
            gpus=(gpu(power_w=270.0 + step % 17, temperature_c=60 + step % 9),),
            host=host(cpu_used_vcpu=3.0 + step % 10 / 10),
            kv_cache=kv_cache(held_tokens=51000 + 640 * (step % 60)),
        )
        step += 1
