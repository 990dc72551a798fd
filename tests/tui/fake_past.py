"""The past as a service tells it: history, events, digest, starts and spending, for fakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from a40console.model.control import (
    Digest,
    EngineStart,
    FindingSpan,
    History,
    HistoryPoint,
    Retention,
    SpendingHour,
    SpendingReport,
    StartPhase,
)
from a40console.model.engine import EngineEnd
from a40console.model.event import Event
from a40console.model.figures import Estimated, Missing
from tests import make_snapshot as make

RETENTION = (
    Retention(step_s=1.0, span_s=3600.0),
    Retention(step_s=10.0, span_s=21_600.0),
    Retention(step_s=60.0, span_s=86_400.0),
)
SEVERITIES = ("info", "warn", "error")


def history(points: Sequence[HistoryPoint], query: Mapping[str, str]) -> History:
    """The points in the window that is asked for, as they are; the newest `points` of them."""
    now_s = points[-1].at_s if points else make.NOW.timestamp()
    since_s, until_s = float(query["since"]), float(query.get("until", now_s))
    if since_s < 0:
        since_s += now_s
    kept = [point for point in points if since_s < point.at_s <= until_s]
    kept = kept[-int(query.get("points", 900)) :]
    return History(
        since_s=since_s or (points[0].at_s if points else now_s),
        until_s=until_s,
        step_s=1.0,
        oldest_s=points[0].at_s if points else Missing("nothing is recorded yet"),
        points=tuple(kept),
        retention=RETENTION,
        trouble=None,
    )


def events(entries: Sequence[Event], query: Mapping[str, str]) -> list[Event]:
    """The newest `limit` entries that the query means, oldest first."""
    least = SEVERITIES.index(query.get("severity", "info"))
    before, kind = int(query.get("before", 2**53)), query.get("kind", "")
    kept = [
        event
        for event in entries
        if int(query["since"]) < event.id < before
        and SEVERITIES.index(event.severity) >= least
        and f"{event.kind}.".startswith(f"{kind}." if kind else "")
    ]
    return kept[-int(query.get("limit", 200)) :]


def starts() -> tuple[EngineStart, ...]:
    """One that serves, one that was killed, one that never served; newest first."""
    common: dict[str, Any] = {
        "profile": "qwen3-coder-30b",
        "kind": "vllm",
        "argv_digest": "9f2c41d07a",
    }
    model = "Qwen/Qwen3-Coder-30B-A3B-Instruct-AWQ"
    return (
        EngineStart(
            id="2026-11-29T10-55-12-qwen3",
            model=model,
            started_at=make.at(11_539),
            phases=(
                StartPhase(name="starting", seconds=6.1),
                StartPhase(name="load", seconds=38.4),
                StartPhase(name="compile", seconds=19.0),
                StartPhase(name="capture", seconds=13.5),
            ),
            ready_after_s=77.0,
            ended_at=Missing("it runs"),
            end=Missing("it runs"),
            served_s=11_462.0,
            **common,
        ),
        EngineStart(
            id="2026-11-29T09-10-02-77aa-qwen3-coder-30b",
            model=model,
            started_at=make.at(17_849),
            phases=(
                StartPhase(name="starting", seconds=5.8),
                StartPhase(name="load", seconds=61.2),
                StartPhase(name="compile", seconds=88.9),
                StartPhase(name="capture", seconds=14.1),
            ),
            ready_after_s=170.0,
            ended_at=make.at(11_560),
            end=EngineEnd(
                Missing("a signal ended it"),
                "SIGKILL",
                "out of memory: the kernel killed VLLM::EngineCore",
                make.at(11_560),
            ),
            served_s=6_119.0,
            **common,
        ),
        EngineStart(
            id="2026-11-29T09-05-40-0c3d-qwen3-coder-30b",
            model=model,
            started_at=make.at(18_111),
            phases=(StartPhase(name="starting", seconds=7.0),),
            ready_after_s=Missing("it never served"),
            ended_at=make.at(18_103),
            end=EngineEnd(
                1,
                Missing("it ended by itself"),
                "max_model_len 400000 needs 44.1 GiB of KV cache",
                make.at(18_103),
            ),
            served_s=Missing("it never served"),
            **common,
        ),
    )


def digest() -> Digest:
    """A night: the engine was killed and came back, a finding came and went."""
    serving, killed, _ = starts()
    now_s = make.NOW.timestamp()
    return Digest(
        since_s=now_s - 28_800,
        until_s=now_s,
        counted_since_s=now_s - 28_800,
        since_event=9102,
        until_event=9131,
        complete=True,
        starts=(serving,),
        ends=(killed,),
        findings=(
            FindingSpan(
                code="spec-loses-at-load",
                severity="warn",
                title="Speculation costs speed at this load",
                began_at=make.at(9_000),
                ended_at=make.at(7_800),
            ),
            FindingSpan(
                code="vcpu-throttled",
                severity="warn",
                title="The container's CPU quota throttles the engine",
                began_at=make.at(900),
                ended_at=Missing("it lasts"),
            ),
        ),
        notes=(Event(9110, make.at(20_000), "note.added", "pruning off from here on"),),
        warnings=3,
        errors=1,
        requests_finished=412,
        requests_failed=2,
        requests_aborted=5,
        generated_tokens=1_204_331,
        busy_s=9_360.0,
        usd_spent=3.52,
        longest_gap_s=98.0,
        longest_gap_at_s=now_s - 11_560,
        peak_tokens_per_s=612.4,
        peak_at_s=now_s - 14_220,
    )


def spending(hours: int = 24) -> SpendingReport:
    """A day by the hour: idle hours, busy hours, one hour that nobody saw."""
    until_s = make.NOW.timestamp()
    first_s = until_s // 3600 * 3600 - (hours - 1) * 3600
    rows = tuple(_hour(first_s + 3600 * number, number) for number in range(hours))
    seen = [row for row in rows if not isinstance(row.usd, Missing)]
    usd = sum(float(row.usd) for row in seen if isinstance(row.usd, int | float))
    tokens = sum(
        int(row.generated_tokens) for row in seen if isinstance(row.generated_tokens, int | float)
    )
    return SpendingReport(
        since_s=first_s,
        until_s=until_s,
        hours=rows,
        usd=Estimated(round(usd, 4)),
        generated_tokens=tokens,
        busy_s=sum(float(row.busy_s) for row in seen if isinstance(row.busy_s, int | float)),
        usd_per_million=Estimated(round(usd / tokens * 1e6, 4)),
        usd_per_hour=0.44,
        includes_disk=False,
    )


def _hour(at_s: float, number: int) -> SpendingHour:
    if number == 7:
        unseen = Missing("the service did not run")
        return SpendingHour(
            at_s=at_s,
            observed_s=0.0,
            usd=unseen,
            generated_tokens=unseen,
            busy_s=unseen,
            usd_per_million=unseen,
        )
    tokens = 0 if number % 5 == 0 else 40_000 + 17_000 * (number % 9)
    return SpendingHour(
        at_s=at_s,
        observed_s=3600.0,
        usd=0.44,
        generated_tokens=tokens,
        busy_s=tokens / 390,
        usd_per_million=round(0.44 / tokens * 1e6, 4)
        if tokens
        else Missing("nothing was generated"),
    )
