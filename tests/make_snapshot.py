"""Builds realistic snapshots, history and events, for tests and for screenshots."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from a40console.advisor.limit import explain, limit
from a40console.model import blank
from a40console.model.control import HistoryPoint, ProfileSummary
from a40console.model.engine import EngineEnd, EngineState
from a40console.model.event import Event, Finding
from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.snapshot import (
    BusiestThread,
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
    Slot,
    Snapshot,
    SourceStatus,
    SpeculationInfo,
    Throughput,
    UsdPerMillion,
)
from a40console.telemetry.speculation import tail_verdict

NOW = datetime(2026, 11, 29, 14, 7, 31, tzinfo=UTC)
MIB, GIB = 2**20, 2**30

NO_PROMPT = Missing("no prompt in the window")
NOT_YET = Missing("known with the first token")
IN_PREFILL = Missing("in prefill")
NO_SESSIONS = Missing("sessions are not followed")
NO_BLOCKS = Missing("the engine does not tell cached blocks from free ones")
NOT_OURS = Missing("not sent through the gateway")


def at(seconds_ago: float = 0.0) -> str:
    """An instant before NOW as the service writes it."""
    return (NOW - timedelta(seconds=seconds_ago)).isoformat().replace("+00:00", "Z")


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


def several_gpus(number: int) -> tuple[Gpu, ...]:
    """Cards that differ, one of which slows down."""
    return tuple(
        gpu(
            index=index,
            memory_used_bytes=44_990_000_000 - 900_000_000 * index,
            utilization_ratio=0.97 - 0.03 * index,
            power_w=283.0 - 11 * index,
            temperature_c=67 + index,
            sm_clock_mhz=1740 - 30 * index,
            throttle_reasons=("thermal slowdown",) if index == 3 else (),
        )
        for index in range(number)
    )


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
        "control": "restart",
        "started_with": 24,
        "depth": 24,
        "depth_max": 24,
        "method": "ngram",
        "tokens_per_pass": 18.2,
        "accepted_per_draft": 17.2,
        "acceptance_ratio": 0.715,
        "accepted_ratio_per_position": tuple(0.98 - 0.0205 * k for k in range(24)),
        "drafts": 212,
        "locked_reason": None,
        "off_tokens_per_s_at_this_load": Missing("never measured"),
    }
    made = values | changes
    verdict = tail_verdict(made["drafts"], made["accepted_ratio_per_position"])
    return SpeculationInfo(**({"tail_verdict": verdict} | made))


def findings() -> tuple[Finding, ...]:
    """One warning: a setting of the profile that is not in force."""
    return (
        Finding(
            code="setting-not-in-force",
            severity="warn",
            title="2 settings of the profile not in force",
            evidence=(
                "max_num_batched_tokens: asked 16384, runs 2048 (log: chunked prefill limits it)"
                " · async_scheduling: asked True, runs False (n-gram speculation turns it off)"
            ),
            since=at(300),
            remedy=(
                "Measure nothing by what was asked: change the profile to what the engine accepts."
            ),
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
    """Hits of the last minute and since the start."""
    values: dict[str, Any] = {
        "window_s": 60.0,
        "source": "vllm.metrics",
        "age_s": 0.4,
        "hit_ratio": 0.96,
        "hit_tokens": 29956,
        "queried_tokens": 31204,
        "prompts": 2,
        "reusable_ratio": NO_SESSIONS,
        "hit_ratio_since_start": 0.92,
        "last_loss": NO_SESSIONS,
    }
    return PrefixCache(**(values | changes))


def kv_cache(**changes: Any) -> KvCache:
    """A tenth is held."""
    values: dict[str, Any] = {
        "source": "vllm.metrics",
        "age_s": 0.4,
        "held_tokens": 51000,
        "reusable_tokens": NO_BLOCKS,
        "free_tokens": NO_BLOCKS,
        "capacity_tokens": 450112,
        "held_ratio": 0.11,
        "fits_more": Estimated(7),
    }
    return KvCache(**(values | changes))


def usd_per_million(now: Figure) -> UsdPerMillion:
    """At the present rate; nothing else is known."""
    return UsdPerMillion(
        now=now, session=NO_SESSIONS, since_rent=Missing("when the rent began is not known")
    )


def cost(**changes: Any) -> Cost:
    """What the pod costs."""
    values: dict[str, Any] = {
        "kind": "hourly",
        "usd_per_hour": 0.454,
        "includes_disk": False,
        "usd_so_far": 1.45,
        "since": "engine start",
        "usd_per_million": usd_per_million(0.31),
        "counted": "generated",
    }
    return Cost(**(values | changes))


def sources() -> tuple[SourceStatus, ...]:
    """Sources that answer, and one that is not there."""
    return (
        SourceStatus(name="vllm.metrics", state="ok", age_s=0.4, reason=None),
        SourceStatus(name="vllm.health", state="ok", age_s=0.9, reason=None),
        SourceStatus(name="vllm.plugin", state="ok", age_s=0.4, reason=None),
        SourceStatus(name="cgroup", state="ok", age_s=0.4, reason=None),
        SourceStatus(name="nvml", state="ok", age_s=0.4, reason=None),
    )


def idle() -> Snapshot:
    """An engine that serves and has nothing to do."""
    quiet = Missing("no pass in the window")
    return snapshot(
        slots=(),
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
        kv_cache=kv_cache(
            held_tokens=0, held_ratio=0.0, fits_more=Missing("no session to take the size of")
        ),
        speculation=speculation(
            tokens_per_pass=quiet,
            drafts=0,
            accepted_per_draft=Missing("no drafts in the window"),
            acceptance_ratio=Missing("no drafts in the window"),
            accepted_ratio_per_position=Missing("no draft of this length in the window"),
        ),
        latency=latency(
            ttft_s=Missing("no request in the window"), pass_s=Missing("no pass in the window")
        ),
        gpus=(
            gpu(
                utilization_ratio=0.0,
                power_w=31.0,
                temperature_c=38,
                read_bytes_per_s=Estimated(0.0),
            ),
        ),
        host=host(
            cpu_used_vcpu=0.1, busiest_engine_thread=BusiestThread(name="APIServer", ratio=0.01)
        ),
        cost=cost(usd_per_million=usd_per_million(Missing("nothing is generated now"))),
        findings=(),
    )


def without_engine(state: EngineState, **changes: Any) -> Snapshot:
    """No engine serves: every figure that needs one is missing."""
    none, why = Missing("no engine runs"), Missing(f"the engine is {state.value}")
    info = engine(
        state=state,
        phase=why,
        phase_s=none,
        eta_s=Missing("nothing starts"),
        version=none,
        pid=none,
        session_id=none,
        uptime_s=none,
        exit=Missing("it never ended"),
        max_model_len=none,
        paused=none,
        effective=none,
    )
    values: dict[str, Any] = {
        "engine": info,
        "slots": why,
        "recent": (),
        "throughput": blank.throughput(why),
        "requests": replace(blank.requests(why), failed=0),
        "latency": blank.latency(why),
        "prefix_cache": blank.prefix_cache(why),
        "speculation": replace(blank.speculation(why), locked_reason=why.reason),
        "kv_cache": blank.kv_cache(why),
        "gpus": (
            gpu(
                utilization_ratio=0.0,
                power_w=31.0,
                temperature_c=38,
                memory_used_bytes=280_000_000,
                read_bytes_per_s=why,
            ),
        ),
        "host": host(cpu_used_vcpu=0.1, busiest_engine_thread=none),
        "cost": cost(usd_so_far=none, usd_per_million=usd_per_million(why)),
        "findings": (),
        "sources": sources()[-2:],
    }
    return snapshot(**(values | changes))


def starting() -> Snapshot:
    """Loading the weights, with an estimate of what is left."""
    why = Missing("the engine is starting")
    silent = Missing("the engine has not said it yet")
    return without_engine(
        EngineState.STARTING,
        engine=engine(
            state=EngineState.STARTING,
            phase="load",
            phase_s=42.0,
            eta_s=Estimated(35.0),
            uptime_s=61.0,
            version=silent,
            max_model_len=silent,
            paused=silent,
            effective=(),
        ),
        gpus=(
            gpu(
                utilization_ratio=0.12,
                power_w=74.0,
                temperature_c=41,
                memory_used_bytes=18_400_000_000,
                read_bytes_per_s=why,
            ),
        ),
        cost=cost(usd_so_far=0.0077, usd_per_million=usd_per_million(why)),
    )


def failed() -> Snapshot:
    """A start that ran out of GPU memory."""
    cause = "out of GPU memory while the KV cache was allocated"
    return without_engine(
        EngineState.FAILED,
        engine=replace(
            without_engine(EngineState.FAILED).engine,
            exit=EngineEnd(code=1, signal=Missing("ended by itself"), cause=cause, at=at(95)),
        ),
        findings=(
            Finding(
                code="engine-failed",
                severity="error",
                title=f"The engine failed: {cause}",
                evidence=(
                    "CUDA out of memory: tried to allocate 4.50 GiB, 2.11 GiB free · exit code 1"
                    f" · ended {at(95)}"
                ),
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
        gpus=(gpu(utilization_ratio=0.0, power_w=71.0, read_bytes_per_s=Missing("no engine")),),
        findings=(
            Finding(
                code="engine-orphaned",
                severity="error",
                title="The engine is gone, but processes of it live on",
                evidence=(
                    "VLLM::EngineCore (pid 912), python (pid 913)"
                    " · GPU 0 holds 41.6 GiB more than before it"
                ),
                since=at(140),
                remedy="End exactly these processes; nothing can start before.",
                command="engine.clean",
            ),
        ),
    )


def hung() -> Snapshot:
    """An engine that serves no token any more."""
    none = Missing("no pass in the window")
    still = slot(tokens_per_s=0.0, passes_per_s=none, tokens_per_pass=none, window_tokens_per_s=0.0)
    return snapshot(
        slots=(still,),
        requests=requests(running=1, waiting=0, waiting_by_reason={}),
        engine=engine(state=EngineState.HUNG, phase_s=43.0),
        throughput=throughput(0.0, passes_per_s=none, sequences_per_pass=none),
        cost=cost(usd_per_million=usd_per_million(Missing("nothing is generated now"))),
        findings=(
            Finding(
                code="engine-hung",
                severity="error",
                title="The engine hangs: no token for 43 s",
                evidence="1 running · no token for 43 s",
                since=at(13),
                remedy="Restart the engine; open requests are lost, their clients retry.",
                command="engine.restart",
            ),
        ),
    )


def sparse() -> Snapshot:
    """llama.cpp without a GPU: estimates, and much that is not known, each with its reason."""
    counted = Missing("this engine does not count it")
    unknown = Missing("the engine does not tell")
    off = Missing("speculation is off")
    unpriced = Missing("the profile names no price")
    return snapshot(
        engine=engine(
            kind="llamacpp",
            profile="smollm2-135m",
            model="SmolLM2-135M-Instruct.Q4_1.gguf",
            served_name="smollm2-135m",
            version="b6989",
            max_model_len=8192,
            paused=Missing("only our plugin tells whether vLLM is paused"),
            effective=(),
        ),
        slots=(
            slot(
                client="curl",
                session=Missing("the client names no session"),
                request_id="req-19",
                prompt_tokens=412,
                cached_tokens=Missing("the engine did not tell"),
                generated_tokens=Estimated(97),
                max_tokens=Missing("no limit was asked for"),
                tokens_per_s=Estimated(61.3),
                passes_per_s=Estimated(61.3),
                tokens_per_pass=Estimated(1.0),
                window_tokens_per_s=Estimated(61.3),
                ttft_s=0.05,
                method="apportioned",
            ),
        ),
        recent=(),
        throughput=throughput(
            61.3,
            prefill_tokens_per_s=0.0,
            passes_per_s=61.3,
            sequences_per_pass=1.0,
            source="llamacpp.metrics",
        ),
        requests=requests(
            source="llamacpp.metrics",
            waiting=0,
            running=1,
            max_running=unknown,
            preemptions=counted,
            aborted=0,
            waiting_by_reason={},
        ),
        latency=latency(
            pass_s=Missing("llama.cpp keeps no histograms"),
            queue_s=Missing("llama.cpp keeps no histograms"),
        ),
        prefix_cache=prefix_cache(
            source="llamacpp.metrics",
            hit_ratio=counted,
            hit_tokens=counted,
            queried_tokens=counted,
            prompts=Missing("the engine does not count prompts"),
            hit_ratio_since_start=counted,
        ),
        speculation=speculation(
            source="llamacpp.metrics",
            mode="off",
            control="none",
            started_with=off,
            depth=off,
            depth_max=off,
            method=off,
            tokens_per_pass=1.0,
            accepted_per_draft=off,
            acceptance_ratio=off,
            accepted_ratio_per_position=off,
            drafts=off,
            locked_reason="the profile has none",
        ),
        kv_cache=kv_cache(
            source="llamacpp.metrics",
            held_tokens=509,
            reusable_tokens=0,
            free_tokens=7683,
            capacity_tokens=8192,
            held_ratio=509 / 8192,
            fits_more=Estimated(3),
        ),
        gpus=Missing("no NVIDIA GPU on this machine"),
        host=host(cpu_quota_vcpu=2.0, cpu_used_vcpu=1.9, throttled_ms_per_s=84.0),
        cost=cost(
            usd_per_hour=unpriced,
            usd_so_far=unpriced,
            usd_per_million=UsdPerMillion(now=unpriced, session=unpriced, since_rent=unpriced),
        ),
        findings=(),
        sources=sources()[3:4],
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
