"""What a run's folder tells, however its process ended."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.errors import UsageError
from a40console.ledger.database import LedgerError
from a40console.ledger.ending import Gone, run_of
from a40console.ledger.ingest import read_records
from a40console.ledger.store import Ledger
from a40console.model.codec import encode
from a40console.model.figures import Missing
from a40console.model.run import NOT_STARTED, Run, RunPlan
from a40console.model.run_order import RunOrder
from a40console.model.run_record import ArmEnd, Doubted, Ended, Found, Record, Sample, Started
from a40console.model.run_result import Doubt, RunResult
from tests import make_runs

RUN = make_runs.run()
RECORDS = make_runs.records(RUN)
SATURATED = Doubt(code="client-saturated", text="0.93 of a core", invalidates=True)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger.open(tmp_path / "ledger.sqlite")
    yield opened
    opened.close()


def order_of(run: Run) -> RunOrder:
    assert isinstance(run.plan, RunPlan)
    return RunOrder(
        id=run.id,
        spec=run.spec,
        settled=run.settled,
        plan=run.plan,
        asked_at=run.asked_at,
        environment=run.environment,
    )


def lines_of(records: Sequence[Record]) -> list[bytes]:
    return [json.dumps(encode(record)).encode() + b"\n" for record in records]


def folder_of(place: Path, records: Sequence[Record], run: Run = RUN) -> Path:
    folder = place / run.id
    folder.mkdir()
    (folder / "order.json").write_text(json.dumps(encode(order_of(run))))
    (folder / "run.jsonl").write_bytes(b"".join(lines_of(records)))
    return folder


def without(*kinds: type) -> list[Record]:
    return [record for record in RECORDS if not isinstance(record, kinds)]


def test_a_finished_run_is_taken_over_whole_and_once(ledger: Ledger, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, RECORDS)
    told = ledger.ingest(folder)
    assert told.state == "done"
    assert told.result == RUN.result
    assert told.environment == RUN.environment
    assert told.ended_at == RUN.ended_at
    assert ledger.samples(RUN.id) == make_runs.samples(RUN)
    assert ledger.arm_ends(RUN.id) == make_runs.arm_ends(RUN)
    revision = ledger.document(RUN.id)["revision"]
    assert ledger.ingest(folder) == told
    assert ledger.document(RUN.id)["revision"] == revision
    ledger.invalidate(RUN.id, "the fan had stopped")
    assert ledger.ingest(folder).state == "invalid"


@pytest.mark.parametrize(
    ("records", "state", "words"),
    [
        (without(Ended), "partial", "without saying so"),
        (without(Ended, Found), "partial", "without saying so"),
        (without(Ended, Found, Sample, ArmEnd), "failed", "before it measured anything"),
        ([], "failed", "before it began"),
    ],
)
def test_a_killed_run_is_what_it_holds(
    ledger: Ledger, tmp_path: Path, records: list[Record], state: str, words: str
) -> None:
    folder = folder_of(tmp_path, records)
    (folder / "output.log").write_text("OSError: [Errno 28] No space left on device\n\n")
    told = ledger.ingest(folder)
    assert told.state == state
    assert words in told.reason
    assert "No space left on device" in told.reason
    assert isinstance(told.ended_at, str)
    if state == "failed":
        assert isinstance(told.result, Missing)


def test_what_a_killed_run_measured_stands_without_a_verdict(
    ledger: Ledger, tmp_path: Path
) -> None:
    told = ledger.ingest(folder_of(tmp_path, without(Ended, Found)))
    assert isinstance(told.result, RunResult)
    assert told.result.verdict.kind == "none"
    rows = {str(row[0]): row for row in told.result.tables[0].rows}
    assert rows.keys() == set(make_runs.ARMS)
    counted = [sample for sample in make_runs.samples(RUN) if not sample.warm_up]
    for arm, row in rows.items():
        own = [sample for sample in counted if sample.arm == arm]
        assert row[1] == len(own)
        assert row[2] == sum(bool(sample.error) for sample in own)
    # One answer came without usage: their sum is not known, and is no smaller number.
    assert isinstance(rows["none"][6], Missing)
    assert rows["block"][6] == 256 * (make_runs.TURNS - 1) * make_runs.REPEATS


def test_why_it_was_asked_to_end_is_told(ledger: Ledger, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, without(Ended, Found))
    (folder / "cancel").write_text("cancelled by the operator")
    assert ledger.ingest(folder).reason.startswith("cancelled by the operator; its process ended")


def test_a_doubt_that_leaves_nothing_standing_makes_the_run_invalid(
    ledger: Ledger, tmp_path: Path
) -> None:
    told = ledger.ingest(folder_of(tmp_path, [*RECORDS, Doubted(doubt=SATURATED)]))
    assert (told.state, told.reason) == ("invalid", "0.93 of a core")
    assert isinstance(told.result, RunResult)
    assert SATURATED in told.result.doubts
    verdict = told.result.verdict
    assert (verdict.kind, verdict.winner, verdict.paste) == ("none", "", "")
    assert told.result.headline == "invalid"


def test_a_line_that_cannot_be_read_is_a_doubt_but_not_a_torn_last_one(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, RECORDS)
    file = folder / "run.jsonl"
    whole = lines_of(RECORDS)
    file.write_bytes(b"".join(whole[:5]) + b'{"kind": "sam\n' + b"".join(whole[5:]))
    records, broken = read_records(file)
    assert (records, broken) == (list(RECORDS), 1)
    run = run_of(order_of(RUN), records, broken=broken, gone=Gone(at=""))
    assert isinstance(run.result, RunResult)
    assert "records-lost" in [doubt.code for doubt in run.result.doubts]
    assert run.state == "done"


@given(cut=st.integers(min_value=0, max_value=len(b"".join(lines_of(RECORDS)))))
def test_wherever_the_file_is_cut_what_stands_before_is_read(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    data = b"".join(lines_of(RECORDS))
    whole = data[:cut].count(b"\n")
    file = tmp_path_factory.getbasetemp() / "cut.jsonl"
    file.write_bytes(data[:cut])
    records, broken = read_records(file)
    assert broken == 0
    assert records[:whole] == list(RECORDS[:whole])
    assert len(records) - whole in (0, 1)
    run = run_of(order_of(RUN), records, gone=Gone(at=""))
    has_sample = any(isinstance(record, Sample) and not record.warm_up for record in records)
    ends = any(isinstance(record, Ended) for record in records)
    assert run.state == ("done" if ends else "partial" if has_sample else "failed")


def test_while_its_process_lives_it_runs() -> None:
    order = order_of(RUN)
    assert run_of(order, []).state == "queued"
    started = [record for record in RECORDS if isinstance(record, Started)]
    assert run_of(order, started).state == "running"
    running = run_of(order, without(Ended, Found))
    assert running.state == "running"
    assert isinstance(running.result, Missing)
    assert run_of(order, []).started_at == NOT_STARTED
    assert run_of(order, RECORDS).state == "done"


def test_an_end_that_promises_a_result_and_has_none_failed() -> None:
    ended = Ended(at="2026-11-30T10:00:00Z", state="done")
    assert run_of(order_of(RUN), [RECORDS[0], ended], gone=Gone(at="")).state == "failed"


def test_a_folder_without_an_order_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, RECORDS)
    (folder / "order.json").write_text("{")
    with pytest.raises(UsageError, match="its order cannot be read"):
        ledger.ingest(folder)
    assert ledger.runs() == ()


def test_the_same_doubt_is_told_once() -> None:
    assert isinstance(RUN.result, RunResult)
    doubt = Doubt(code="clock-step", text="3 s", invalidates=False)
    found = Found(result=replace(RUN.result, doubts=(doubt,)))
    run = run_of(order_of(RUN), [*without(Ended, Found), Doubted(doubt=doubt), found])
    assert isinstance(run.result, RunResult)
    assert [each.code for each in run.result.doubts].count("clock-step") == 1


def test_a_finished_run_that_the_disk_did_not_take_is_taken_later(
    ledger: Ledger, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, RECORDS)
    ledger.add(make_runs.sweep())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16 * 1024, before[1]))
    try:
        with pytest.raises(LedgerError, match="disk did not take it"):
            ledger.ingest(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [run.id for run in ledger.runs()] == [make_runs.sweep().id]
    assert ledger.ingest(folder).state == "done"
    assert ledger.samples(RUN.id) == make_runs.samples(RUN)
