"""A snapshot put together: what runs wins over what was asked, and old figures do not speak."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from a40console.advisor.advice import FindingClock
from a40console.config import RentSettings
from a40console.engines.readiness import Stall
from a40console.gateway.meter import RequestCounts
from a40console.model import blank
from a40console.model.engine import EngineEnd, EngineState
from a40console.model.event import Finding
from a40console.model.figures import Estimated, Missing, number
from a40console.model.history import history_point
from a40console.model.profile import Profile, Speculation
from a40console.model.snapshot import Difference, Snapshot
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus
from a40console.profiles.loader import load_profiles
from a40console.service.advisor_evidence import evidence
from a40console.service.assemble import Moment, Parts, assemble, speculation_block, with_bandwidth
from a40console.service.cost import Account, terms_of
from a40console.service.engine_block import engine_block
from a40console.service.self_report import self_report
from a40console.telemetry.held import held_slots
from a40console.telemetry.view import EngineView
from tests import make_snapshot as made
from tests.telemetry.engines import Request, SimulatedEngine, poll, sampler_of
from tests.telemetry.makers import Clock, gateway_row

QWEN = load_profiles(Path("/nonexistent")).profiles["qwen3-coder-30b"]
SPECULATING = replace(
    QWEN,
    usd_per_hour=Decimal("0.44"),
    speculation=Speculation(enabled=True, method="ngram", tokens=4),
)
WHY = Missing("the engine is stopped")
END = EngineEnd(
    code=1, signal=Missing("it ended by itself"), cause="it ran out of memory", at="2026-11-29"
)


def run_of(profile: Profile) -> RunRecord:
    return RunRecord(
        id="run-1",
        profile=profile,
        base_url="http://engine",
        socket_path=None,
        plugin=False,
        argv=(),
        argv_digest="d",
        started_at="2026-11-29T14:00:00.000Z",
    )


def status_of(state: EngineState, **others: object) -> EngineStatus:
    known = {"profile": SPECULATING, "run": run_of(SPECULATING), "started_at_s": 0.0} | others
    return EngineStatus(state=state, **known)  # type: ignore[arg-type]


def parts_of(status: EngineStatus, view: EngineView | None) -> Parts:
    healthy = made.snapshot()
    return Parts(
        moment=Moment(seq=1, at="now", monotonic_s=100.0, interval_s=1.0, events_last_id=0),
        service=healthy.service,
        engine=engine_block(status, self_report(view), now_s=100.0),
        view=view,
        gateway=None,
        host=healthy.host,
        gpus=healthy.gpus,
        sources=(),
        profile=status.profile,
        account=Account(terms=terms_of(RentSettings(), SPECULATING.usd_per_hour), now_s=100.0),
        evidence=evidence(status, view),
    )


def snapshot_of(status: EngineStatus, view: EngineView | None) -> Snapshot:
    return assemble(parts_of(status, view), FindingClock())


def the(code: str, snapshot: Snapshot) -> Finding:
    [found] = [finding for finding in snapshot.findings if finding.code == code]
    return found


async def seen(*, polls: int = 8, wait_s: float = 0.0) -> EngineView:
    """A view of an engine that decodes; looked at some time after its last reading."""
    clock = Clock()
    decoding = Request("a", 0.0, 0.5, 50.0, 100_000)
    engine = SimulatedEngine(clock, [decoding], born_s=clock.now_s)
    sampler = sampler_of(engine)
    for _ in range(polls):
        engine.clock.now_s += 1
        await poll(sampler)
    engine.clock.now_s += wait_s
    return sampler.view((gateway_row("a40-0c", sent_at_s=None),), ())


def test_what_waits_at_the_gate_is_seen_while_no_engine_answers() -> None:
    rows = [
        gateway_row("a40-01", session="7f3a", sent_at_s=None, received_at_s=59.0),
        gateway_row("a40-02", session="7f3a", sent_at_s=60.0, received_at_s=60.0),
        gateway_row("a40-03", session="9b21", sent_at_s=None, received_at_s=90.0),
    ]
    parts = replace(
        parts_of(status_of(EngineState.STARTING), None),
        waiting=held_slots(rows, 100.0),
        gate="it is switched to b",
        gateway=RequestCounts(aborted=1, failed=2, resent=3),
    )
    shown = assemble(parts, FindingClock())
    assert not isinstance(shown.slots, Missing)
    assert [(slot.session, slot.phase, slot.age_s) for slot in shown.slots] == [
        ("7f3a", "held", 41.0),
        ("9b21", "held", 10.0),
    ]
    assert (shown.requests.held, shown.requests.gate) == (2, "it is switched to b")
    assert (shown.requests.failed, shown.requests.resent) == (2, 3)
    assert isinstance(shown.requests.running, Missing)
    assert history_point(shown, 100.0).held == 2


def test_without_an_engine_and_without_requests_the_slots_are_not_known() -> None:
    shown = snapshot_of(status_of(EngineState.STARTING), None)
    assert isinstance(shown.slots, Missing)
    assert shown.requests.held == 0


def test_a_stopped_or_failed_engine_does_not_speculate() -> None:
    for state in (EngineState.STOPPED, EngineState.FAILED):
        shown = snapshot_of(status_of(state, end=END), None).speculation
        assert isinstance(shown.mode, Missing)
        assert isinstance(shown.depth, Missing)
        assert shown.control == "none"
        assert shown.locked_reason == state.sentence


def test_the_engines_word_on_speculation_wins_over_the_profiles() -> None:
    silent = blank.speculation(Missing("the engine does not tell"))
    assert speculation_block(silent, SPECULATING).mode == "on"
    off = speculation_block(replace(silent, mode="off"), SPECULATING)
    assert (off.mode, off.started_with) == ("off", 4)
    assert off.depth == Missing("speculation is off")
    assert SPECULATING.speculation is not None
    asked_off = replace(SPECULATING, speculation=replace(SPECULATING.speculation, enabled=False))
    by_arguments = speculation_block(replace(silent, mode="on", depth=7), asked_off)
    assert (by_arguments.mode, by_arguments.depth) == ("on", 7)


def test_the_workers_word_on_the_depth_wins_over_all() -> None:
    told = replace(
        blank.speculation(Missing("x")),
        mode="on",
        control="live",
        started_with=4,
        depth=2,
        depth_max=4,
        method="ngram",
    )
    assert speculation_block(told, SPECULATING) == told
    assert SPECULATING.speculation is not None
    locked = replace(SPECULATING, speculation=replace(SPECULATING.speculation, locked="why"))
    shown = speculation_block(told, locked)
    assert (shown.depth, shown.control, shown.locked_reason) == (2, "none", "why")


def test_an_engine_that_began_off_is_not_called_on_for_its_counters_alone() -> None:
    ready = replace(SPECULATING, speculation=Speculation(start="off", tokens=4))
    counters = replace(blank.speculation(Missing("x")), mode="on", drafts=0)
    shown = speculation_block(counters, ready)
    assert isinstance(shown.mode, Missing)
    assert (shown.control, shown.started_with) == ("restart", 4)
    assert speculation_block(replace(counters, drafts=7), ready).mode == "on"


async def test_nothing_is_generated_once_the_last_request_has_ended() -> None:
    view = await seen()
    assert number(view.throughput.generation_tokens_per_s)
    over = replace(view, requests=replace(view.requests, running=0), slots=())
    price = snapshot_of(status_of(EngineState.SERVING), over).cost.usd_per_million.now
    assert price == Missing("nothing is generated now")
    decodes = replace(over, slots=(made.slot(),))
    told = snapshot_of(status_of(EngineState.SERVING), decodes)
    assert number(told.cost.usd_per_million.now) is not None


async def test_an_old_rate_is_no_present_price_and_no_point_of_history() -> None:
    fresh = snapshot_of(status_of(EngineState.SERVING), await seen())
    assert number(fresh.cost.usd_per_million.now) is not None
    assert number(history_point(fresh, 0.0).generation_tokens_per_s) is not None
    old = snapshot_of(status_of(EngineState.SERVING), await seen(wait_s=45.0))
    why = Missing("its source is 45 s old")
    assert number(old.throughput.generation_tokens_per_s) is not None, "shown, with its age"
    assert old.cost.usd_per_million.now == why
    point = history_point(old, 7.0)
    silent = Missing("its source had fallen silent")
    assert (point.at_s, point.generation_tokens_per_s, point.running) == (7.0, silent, silent)
    assert (point.known_ratio, point.held) == (0.0, 1)


async def test_a_hung_engine_is_limited_by_hanging() -> None:
    view = await seen()
    stuck = replace(view.progress, generation_flat_s=45.0, steps_flat_s=45.0)
    still = replace(view.throughput, generation_tokens_per_s=0.0)
    hung = snapshot_of(
        status_of(EngineState.SERVING, phase_since_s=0.0),
        replace(view, progress=stuck, throughput=still),
    )
    assert hung.engine.state is EngineState.HUNG
    assert hung.engine.phase_s == 45.0
    assert (hung.limit.cause, hung.limit.text) == ("not-serving", "the engine hangs")


async def test_requests_that_wait_at_the_gateway_are_counted() -> None:
    assert snapshot_of(status_of(EngineState.SERVING), await seen()).requests.held == 1


def test_a_failed_engine_is_told_with_its_own_remedy_and_its_settings_are_not() -> None:
    changed = (Difference(setting="threads", asked=4, effective=2, evidence="n_threads = 2"),)
    status = status_of(
        EngineState.FAILED, end=END, remedy="Lower max_model_len.", differences=changed
    )
    failed = snapshot_of(status, None)
    assert [finding.code for finding in failed.findings] == ["engine-failed"]
    assert the("engine-failed", failed).remedy == "Lower max_model_len."
    assert isinstance(failed.engine.effective, Missing)


def test_a_stalled_start_has_the_verdict_of_its_log() -> None:
    stall = Stall(130.0, "stuck in NCCL initialisation", "Found nccl", "Set NCCL_DEBUG=INFO.")
    found = the("start-stalled", snapshot_of(status_of(EngineState.STARTING, stall=stall), None))
    assert "stuck in NCCL initialisation" in found.title
    assert found.remedy == "Set NCCL_DEBUG=INFO."
    assert "2 m 10 s" in found.title


async def test_what_the_engine_exposes_is_compared_with_what_was_asked() -> None:
    view = replace(await seen(), settings={"cache_dtype": "auto"})
    asked = replace(SPECULATING, kv_cache_dtype="fp8")
    status = status_of(EngineState.SERVING, run=run_of(asked), differences=())
    shown = snapshot_of(status, view).engine.effective
    assert not isinstance(shown, Missing)
    [told] = shown
    assert (told.setting, told.asked, told.effective) == ("kv_cache_dtype", "fp8", "auto")


def test_of_several_gpus_none_is_given_the_engines_bandwidth() -> None:
    one = made.gpu(index=0)
    [alone] = with_bandwidth((one,), Estimated(5e11)) or ()  # type: ignore[misc]
    assert alone.read_bytes_per_s == Estimated(5e11)
    two = with_bandwidth((one, made.gpu(index=1)), Estimated(5e11))
    assert not isinstance(two, Missing)
    assert all(isinstance(gpu.read_bytes_per_s, Missing) for gpu in two)


def test_what_starts_is_never_said_not_to_start() -> None:
    coming = engine_block(status_of(EngineState.STARTING), self_report(None), now_s=100.0)
    assert coming.eta_s == Missing("not known yet")
    down = engine_block(status_of(EngineState.STOPPED), self_report(None), now_s=100.0)
    assert down.eta_s == Missing("nothing starts")
