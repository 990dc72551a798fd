"""Whatever the figures: the ranking is honest, and what is missing rules nothing out."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a40console.advisor.evidence import Evidence, Shift, Stalls, Trends
from a40console.advisor.findings import findings
from a40console.advisor.limit import SHOWN_FIRST, explain
from a40console.model.busiest_thread import BusiestThread
from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Missing
from a40console.model.snapshot import Gpu, RecentRequest, Session, Slot, Snapshot
from tests.advisor.scenes import GONE, MakeSlot, Scene

FIGURES = st.one_of(
    st.just(GONE),
    st.floats(0, 1e6).map(Estimated),
    st.floats(0, 1e6),
    st.just(0),
    st.just(0.0),
)


def _shuffled(data: st.DataObject, block: Any) -> Any:
    """A block with every figure drawn anew."""
    drawn = {
        field.name: data.draw(FIGURES)
        for field in fields(block)
        if field.type == "Figure" and field.name != "age_s"
    }
    return replace(block, **drawn)


FACTS = st.one_of(st.just(GONE), st.builds(Shift, st.floats(0, 1e6), st.floats(0, 1e6)))


def _trends(data: st.DataObject) -> Trends:
    shifts = {field.name for field in fields(Trends) if "Shift" in str(field.type)}
    drawn: Trends = _shuffled(data, Trends())
    facts: dict[str, Any] = {name: data.draw(FACTS) for name in sorted(shifts)}
    return replace(drawn, **facts)


def _anything(data: st.DataObject, snapshot: Snapshot, slots: tuple[Slot, ...]) -> Snapshot:
    """The snapshot with every figure of every judged block drawn anew."""
    blocks = ("requests", "throughput", "host", "kv_cache", "prefix_cache", "speculation")
    state = data.draw(st.sampled_from(EngineState))
    thread = data.draw(
        st.one_of(st.just(GONE), st.builds(BusiestThread, name=st.just("t"), ratio=st.floats(0, 1)))
    )
    shuffled = replace(
        snapshot,
        **{name: _shuffled(data, getattr(snapshot, name)) for name in blocks},
        engine=replace(snapshot.engine, state=state),
        slots=data.draw(st.one_of(st.just(GONE), st.just(()), st.just(slots))),
        recent=data.draw(st.sampled_from([(), (_ended("tool_use"),), (_ended("stop"),)])),
        sessions=data.draw(st.one_of(st.just(GONE), st.just((_session(data),)))),
    )
    mode: Any = data.draw(st.sampled_from(["on", "off", GONE]))
    gpus = data.draw(st.one_of(st.just(GONE), st.just(()), st.just((_gpu(data, snapshot),))))
    return replace(
        shuffled,
        host=replace(shuffled.host, busiest_engine_thread=thread),
        speculation=replace(shuffled.speculation, mode=mode),
        gpus=gpus,
    )


def _gpu(data: st.DataObject, snapshot: Snapshot) -> Gpu:
    assert not isinstance(snapshot.gpus, Missing)
    words = st.sampled_from([(), ("power cap",), ("hardware thermal slowdown",), GONE])
    drawn: Gpu = _shuffled(data, snapshot.gpus[0])
    reasons: Any = data.draw(words)
    return replace(drawn, throttle_reasons=reasons)


def _session(data: st.DataObject) -> Session:
    tool: Any = data.draw(st.sampled_from(["Bash", GONE]))
    return Session(
        session="7f3a",
        client="claude-code",
        phase=data.draw(st.sampled_from(["client", "decode"])),
        tool=tool,
        phase_s=data.draw(FIGURES),
        turns=1,
        requests=1,
        context_tokens=GONE,
        window_tokens=GONE,
        prompt_tokens=GONE,
        reused_tokens=GONE,
        reread_tokens=GONE,
        generated_tokens=GONE,
        hit_ratio=GONE,
        sustained_tokens_per_s=GONE,
        cost_usd=GONE,
        started_at="2026-11-29T14:00:00Z",
        last_at="2026-11-29T14:07:00Z",
        tokens_per_s=GONE,
        ttft_last_s=GONE,
        ttft_median_s=GONE,
        compacts_at_tokens=GONE,
        capturing=False,
    )


def _ended(reason: str) -> RecentRequest:
    return RecentRequest(
        request_id="r0",
        session="7f3a",
        finish_reason=reason,
        generated_tokens=1,
        tokens_per_s=1.0,
        ttft_s=0.1,
        ended_at="2026-11-29T14:07:30.000Z",
    )


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_whatever_the_figures_there_is_one_honest_ranking(
    data: st.DataObject, scene: Scene, make_slot: MakeSlot
) -> None:
    slots = (_shuffled(data, make_slot("prefill")), make_slot("queued"))
    snapshot = _anything(data, scene(), slots)
    extra = Evidence(trends=_trends(data), stalls=_shuffled(data, Stalls()))
    found = explain(snapshot, extra)
    assert found == explain(snapshot, extra), "the same figures, the same order"
    assert findings(snapshot, extra) == findings(snapshot, extra)
    strengths = [("cause", "candidate", "weak").index(cause.strength) for cause in found.causes]
    assert strengths[0] == 0
    assert strengths == sorted(strengths)
    named = [cause.cause for cause in found.causes]
    named += [excluded.cause for excluded in found.ruled_out]
    named += [unjudged.cause for unjudged in found.unjudged]
    assert len(named) == len(set(named)), "each cause has one verdict"
    excluded = [entry.cause for entry in found.ruled_out]
    assert excluded == [name for name in SHOWN_FIRST if name in excluded]
    assert all(entry.how for entry in found.ruled_out)
    assert all(entry.reason for entry in found.unjudged)
    assert all(cause.text for cause in found.causes)


NEEDED: dict[str, tuple[str, ...]] = {
    "vcpu": ("host.cpu_used_vcpu", "host.throttled_ms_per_s", "host.age_s"),
    "kv": ("kv_cache.held_ratio", "kv_cache.age_s"),
    "queue": ("requests.waiting", "requests.age_s"),
    "memory": ("host.memory_used_bytes", "host.memory_limit_bytes", "host.shm_used_bytes"),
}


@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for name, places in NEEDED.items() for place in places]
)
@given(data=st.data())
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_missing_figure_rules_nothing_out_whatever_the_others_are(
    data: st.DataObject, scene: Scene, make_slot: MakeSlot, name: str, place: str
) -> None:
    snapshot = _anything(data, scene(), (make_slot("decode"),))
    block, _, figure = place.partition(".")
    hidden = replace(getattr(snapshot, block), **{figure: GONE})
    found = explain(replace(snapshot, **{block: hidden}), Evidence(trends=_trends(data)))
    assert name not in {entry.cause for entry in found.ruled_out}
