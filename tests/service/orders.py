"""Orders of runs for tests."""

from __future__ import annotations

from a40console.model.figures import Missing
from a40console.model.run import Intrusion, RunEnvironment, RunPlan, RunSpec, RunTarget
from a40console.model.run_order import RunOrder

AT = "2026-11-30T17:45:01.000Z"


def plan(intrusion: Intrusion = "shares", refusal: str = "") -> RunPlan:
    return RunPlan(
        arms=("1 stream",),
        requests=3,
        seconds=Missing("not known"),
        usd=Missing("no price"),
        intrusion=intrusion,
        consequences=(),
        refusal=refusal,
    )


def environment(*, simulated: bool = True) -> RunEnvironment:
    return RunEnvironment(
        console="0.1.0",
        simulated=simulated,
        engine_kind="sim",
        engine_version="0.33.0+sim",
        model="x/qwen3-coder-30b",
        model_digest=Missing("simulated"),
        config_digest="c0ffee",
        profile="sim",
        usd_per_h=0.44,
    )


def order(
    run_id: str = "20261130-174501-sweep-1f3a",
    *,
    spec: RunSpec | None = None,
    intrusion: Intrusion = "shares",
) -> RunOrder:
    return RunOrder(
        id=run_id,
        spec=spec or RunSpec(experiment="sweep", preset="quick"),
        settled={"streams": "1"},
        plan=plan(intrusion),
        asked_at=AT,
        environment=environment(),
    )


def url_spec(url: str, **changes: object) -> RunSpec:
    asked: dict[str, object] = {
        "experiment": "sweep",
        "preset": "quick",
        "parameters": {"streams": "1", "output_tokens": "16", "prompt_tokens": "32"},
        "target": RunTarget(kind="url", url=url),
    }
    return RunSpec(**(asked | changes))  # type: ignore[arg-type]
