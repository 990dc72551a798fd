"""Snapshots of an engine in each of its states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from a40console.model import blank
from a40console.model.busiest_thread import BusiestThread
from a40console.model.engine import EngineEnd, EngineState
from a40console.model.event import Finding
from a40console.model.figures import Estimated, Missing
from a40console.model.snapshot import Snapshot, UsdPerMillion
from tests.make_snapshot.blocks import (
    at,
    cost,
    engine,
    gpu,
    host,
    kv_cache,
    latency,
    prefix_cache,
    requests,
    sources,
    speculation,
    throughput,
    usd_per_million,
)
from tests.make_snapshot.rows import slot
from tests.make_snapshot.whole import snapshot

NO_PROMPT = Missing("no prompt in the window")


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
    none, why = Missing("no engine runs"), Missing(state.sentence)
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
