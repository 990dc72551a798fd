"""The blocks of a snapshot, each of a vLLM at work on an A40."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from a40console.model.busiest_thread import BusiestThread
from a40console.model.engine import EngineState
from a40console.model.event import Finding
from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.latency import FirstToken, Latency, Percentiles
from a40console.model.snapshot import (
    Cost,
    Difference,
    EngineInfo,
    Gpu,
    Host,
    KvCache,
    PrefixCache,
    Requests,
    SourceStatus,
    SpeculationInfo,
    Throughput,
    UsdPerMillion,
)
from a40console.telemetry.speculation import tail_verdict

NOW = datetime(2026, 11, 29, 14, 7, 31, tzinfo=UTC)
MIB, GIB = 2**20, 2**30
NO_SESSIONS = Missing("sessions are not followed")
NO_BLOCKS = Missing("the engine does not tell cached blocks from free ones")


def at(seconds_ago: float = 0.0) -> str:
    """An instant before NOW as the service writes it."""
    return (NOW - timedelta(seconds=seconds_ago)).isoformat().replace("+00:00", "Z")


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
        "controls": {},
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
        "resent": 0,
        "gate": None,
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
