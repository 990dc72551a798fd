"""What a run came to, by its order and its records. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from a40console.ledger.remains import result_of_samples
from a40console.model.figures import Missing, Text
from a40console.model.run import NOT_ENDED, NOT_STARTED, Run, RunState
from a40console.model.run_order import RunOrder
from a40console.model.run_record import (
    ArmEnd,
    Doubted,
    Ended,
    Found,
    Progressed,
    Record,
    Sample,
    Started,
)
from a40console.model.run_result import Doubt, RunResult, Verdict

_NO_RESULT = Missing("it ended before it found anything")
_NO_VERDICT = Verdict(kind="none", text="No figure of it may be believed.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """What is known of the end of a process that is no more."""

    at: str
    """When it last wrote, ISO 8601; empty where that is not known."""

    asked_to_end: str = ""
    """Why it had been asked to end; empty where nobody had asked."""

    last_words: str = ""
    """The last line that it said, where its records do not tell the end."""


@dataclass(frozen=True, slots=True)
class _End:
    state: RunState
    at: Text
    reason: str


def run_of(
    order: RunOrder, records: Sequence[Record], *, broken: int = 0, gone: Gone | None = None
) -> Run:
    """The run as its records tell it.

    Args:
        order: What was ordered.
        records: What its process wrote, in that order.
        broken: Lines between them that cannot be read.
        gone: The end of its process; None while it may still write. A process that is gone and
            did not say so was killed: what it holds makes the run partial or failed.
    """
    started = next((record for record in records if isinstance(record, Started)), None)
    doubts = _doubts(records, broken)
    result = _result(records, doubts, over=gone is not None)
    end = _believed(_end(started, records, result, gone), doubts)
    if end.state == "invalid" and isinstance(result, RunResult):
        # Programs read the winner and the line to paste without asking for the state.
        result = replace(result, headline="invalid", verdict=_NO_VERDICT)
    progress = [record.progress for record in records if isinstance(record, Progressed)]
    told: Started | RunOrder = started or order
    return Run(
        id=order.id,
        spec=order.spec,
        state=end.state,
        asked_at=order.asked_at,
        started_at=started.at if started else NOT_STARTED,
        ended_at=end.at,
        reason=end.reason,
        settled=told.settled,
        environment=told.environment,
        plan=told.plan,
        progress=progress[-1] if progress else NOT_STARTED,
        result=result,
    )


def _end(
    started: Started | None,
    records: Sequence[Record],
    result: RunResult | Missing,
    gone: Gone | None,
) -> _End:
    for record in reversed(records):
        if isinstance(record, Ended):
            if isinstance(result, Missing) and record.state in ("done", "partial"):
                return _End("failed", record.at, record.reason or result.reason)
            return _End(record.state, record.at, record.reason)
    if gone is None:
        return _End("running" if started else "queued", NOT_ENDED, "")
    at = gone.at or Missing("its process did not say")
    if isinstance(result, RunResult):
        return _End("partial", at, _killed(gone, "in the middle of it"))
    moment = "before it measured anything" if started else "before it began"
    return _End("failed", at, _killed(gone, moment))


def _killed(gone: Gone, moment: str) -> str:
    if gone.asked_to_end:
        return f"{gone.asked_to_end}; its process ended {moment} without a conclusion"
    words = f"; it said last: {gone.last_words}" if gone.last_words else ""
    return f"its process ended {moment} without saying so: killed, or the disk was full{words}"


def _believed(end: _End, doubts: Sequence[Doubt]) -> _End:
    """The end of a run of which a doubt leaves nothing standing."""
    fatal = [doubt.text for doubt in doubts if doubt.invalidates]
    if end.state not in ("done", "partial") or not fatal:
        return end
    return replace(end, state="invalid", reason="; ".join(fatal))


def _doubts(records: Sequence[Record], broken: int) -> tuple[Doubt, ...]:
    """Every doubt once, those of the last result too."""
    told = [record.doubt for record in records if isinstance(record, Doubted)]
    found = [record.result for record in records if isinstance(record, Found)]
    if broken:
        lines = "1 line" if broken == 1 else f"{broken} lines"
        text = f"{lines} of the run's records cannot be read: single requests may lack"
        told.append(Doubt(code="records-lost", text=text, invalidates=False))
    return tuple(dict.fromkeys((*(found[-1].doubts if found else ()), *told)))


def _result(
    records: Sequence[Record], doubts: tuple[Doubt, ...], *, over: bool
) -> RunResult | Missing:
    found = [record.result for record in records if isinstance(record, Found)]
    if found:
        return replace(found[-1], doubts=doubts)
    if not over and not any(isinstance(record, Ended) for record in records):
        return NOT_ENDED
    samples = [record for record in records if isinstance(record, Sample)]
    ends = [record for record in records if isinstance(record, ArmEnd)]
    remains = result_of_samples(samples, ends)
    return _NO_RESULT if remains is None else replace(remains, doubts=doubts)
