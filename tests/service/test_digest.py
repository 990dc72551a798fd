"""What happened while the operator was away: a recorded night, told truly."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from a40console.model.control import EngineStart, History, HistoryPoint
from a40console.model.engine import EngineEnd
from a40console.model.event import Event, Severity
from a40console.model.figures import Estimated, Figure, Missing
from a40console.service.digest import Records, Window, digest
from a40console.service.tally import Tally

EVENING = datetime(2026, 11, 29, 22, 0, tzinfo=UTC)
UNREAD = Missing("the engine is starting")


def at(minutes: float) -> str:
    return (EVENING + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def at_s(minutes: float) -> float:
    return EVENING.timestamp() + 60 * minutes


def event(
    number: int, minutes: float, kind: str, severity: Severity = "info", **data: str
) -> Event:
    return Event(number, at(minutes), kind, data.pop("text", kind), severity, data)


def start(name: str, minutes: float, ended: float | None = None) -> EngineStart:
    end: EngineEnd | Missing = Missing("it runs")
    if ended is not None:
        end = EngineEnd(Missing("a signal ended it"), "SIGKILL", "out of memory", at(ended))
    return EngineStart(
        id=name,
        profile="qwen3-coder-30b",
        kind="vllm",
        model="m",
        argv_digest="d",
        started_at=at(minutes),
        phases=Missing("its phases were not watched"),
        ready_after_s=60.0,
        ended_at=Missing("it runs") if ended is None else at(ended),
        end=end,
        served_s=1.0,
    )


def history(*speeds: Figure, known: dict[int, float] | None = None) -> History:
    """Minutes from the evening on."""
    shares = known or {}
    points = tuple(
        HistoryPoint(
            at_s=at_s(minute),
            generation_tokens_per_s=speed,
            generation_peak_tokens_per_s=speed,
            prefill_tokens_per_s=0.0,
            running=0,
            waiting=0,
            known_ratio=shares.get(minute, 0.0 if isinstance(speed, Missing) else 1.0),
        )
        for minute, speed in enumerate(speeds)
    )
    return History(
        since_s=at_s(0),
        until_s=at_s(len(speeds)),
        step_s=60.0,
        oldest_s=at_s(0),
        points=points,
        retention=(),
        trouble=None,
    )


WINDOW = Window(since_s=at_s(0), until_s=at_s(600), since_event=100, until_event=140, complete=True)
NIGHT = Records(
    events=(
        event(101, 5, "finding.began", "warn", code="vcpu-throttled", text="The quota throttles"),
        event(102, 9, "engine.ended", "error", evidence="Killed"),
        event(103, 10, "engine.starting"),
        event(104, 11, "engine.serving"),
        event(105, 20, "finding.ended", code="vcpu-throttled", title="The quota throttles"),
        event(
            106,
            30,
            "finding.ended",
            code="kv-full",
            title="The KV cache is full",
            severity_of="",
            began=at(-50),
        ),
        event(107, 40, "note.added", text="pruning off"),
        event(108, 50, "finding.began", "error", code="engine-hung", text="The engine hangs"),
    ),
    starts=(start("second", 10), start("first", -300, ended=9)),
    counted_since_s=at_s(0),
    tally=Tally(
        generated_tokens=81_000,
        finished=40,
        failed=2,
        aborted=1,
        usd=Decimal("4.40"),
        priced_s=36_000,
        busy_s=900.04,
        observed_s=36_000,
    ),
    usd=4.40,
    history=history(100.0, 0.0, UNREAD, UNREAD, UNREAD, 650.0, 20.0, UNREAD, 0.0),
)


def test_a_night() -> None:
    told = digest(WINDOW, NIGHT)
    assert [one.id for one in told.starts] == ["second"]
    assert [one.id for one in told.ends] == ["first"]
    assert (told.warnings, told.errors) == (1, 2)
    assert [note.text for note in told.notes] == ["pruning off"]
    assert (told.requests_finished, told.requests_failed, told.requests_aborted) == (40, 2, 1)
    assert (told.generated_tokens, told.busy_s, told.usd_spent) == (81_000, 900.0, 4.40)
    assert (told.peak_tokens_per_s, told.peak_at_s) == (650.0, at_s(5))
    assert (told.longest_gap_s, told.longest_gap_at_s) == (Estimated(180.0), at_s(2))
    assert (told.since_event, told.until_event, told.complete) == (100, 140, True)
    assert (told.since_s, told.counted_since_s) == (at_s(0), at_s(0))


def test_sums_that_begin_before_the_window_are_estimates() -> None:
    told = digest(WINDOW, replace(NIGHT, counted_since_s=at_s(-0.5)))
    assert (told.generated_tokens, told.busy_s) == (Estimated(81_000), Estimated(900.0))
    assert told.requests_finished == Estimated(40)
    assert told.usd_spent == 4.40, "dollars go by time"
    assert told.counted_since_s == at_s(-0.5)


def test_findings_that_came_and_went() -> None:
    full, throttled, hung = digest(WINDOW, NIGHT).findings
    assert (full.code, full.began_at, full.ended_at) == ("kv-full", at(-50), at(30))
    assert full.title == "The KV cache is full"
    assert (throttled.code, throttled.severity) == ("vcpu-throttled", "warn")
    assert (throttled.began_at, throttled.ended_at) == (at(5), at(20))
    assert (hung.code, hung.ended_at) == ("engine-hung", Missing("it lasts"))


def test_a_finding_that_came_twice_is_told_twice() -> None:
    events = (
        event(1, 1, "finding.began", "warn", code="kv-full", text="full"),
        event(2, 2, "finding.ended", code="kv-full"),
        event(3, 3, "finding.began", "warn", code="kv-full", text="full"),
    )
    first, second = digest(WINDOW, replace(NIGHT, events=events)).findings
    assert (first.ended_at, second.ended_at) == (at(2), Missing("it lasts"))


def test_nothing_recorded_is_not_nothing_happened() -> None:
    empty = Records(
        events=(),
        starts=(),
        counted_since_s=at_s(0),
        tally=Tally(),
        usd=Missing("unseen"),
        history=history(),
    )
    told = digest(WINDOW, empty)
    unseen = Missing("nothing was recorded: the service did not run")
    for figure in (told.generated_tokens, told.requests_finished, told.requests_failed):
        assert figure == unseen
    assert told.busy_s == unseen
    assert isinstance(told.peak_tokens_per_s, Missing)
    assert isinstance(told.longest_gap_s, Missing)


def test_a_quiet_night_has_no_gap_and_a_peak_of_nothing() -> None:
    quiet = replace(NIGHT, history=history(0.0, 0.0, 0.0))
    told = digest(WINDOW, quiet)
    assert told.longest_gap_s == Missing("the speed was known all the time")
    assert told.peak_tokens_per_s == 0.0


def test_a_gap_that_reaches_into_its_neighbours() -> None:
    partly = history(5.0, 5.0, UNREAD, 5.0, 5.0, known={1: 0.5, 3: 0.75})
    told = digest(WINDOW, replace(NIGHT, history=partly))
    assert told.longest_gap_s == Estimated(30.0 + 60.0 + 15.0)
    assert told.longest_gap_at_s == at_s(1)
