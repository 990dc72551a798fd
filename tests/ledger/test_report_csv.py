"""A run's requests as values that a spreadsheet and a program read alike."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

from a40console.ledger.report_csv import COLUMNS, samples_csv
from a40console.model.figures import Estimated
from a40console.model.run import Run
from a40console.model.run_record import Sample
from tests import make_runs as make


def rows_of(run: Run, samples: tuple[Sample, ...]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(samples_csv(run, samples))))


def test_every_request_is_a_row_and_reads_back() -> None:
    run = make.run()
    samples = make.samples(run)
    rows = rows_of(run, samples)
    assert len(rows) == len(samples)
    assert tuple(rows[0]) == COLUMNS
    first, sample = rows[3], samples[3]
    assert (first["arm"], int(first["repeat"]), int(first["index"])) == (sample.arm, 0, 3)
    assert float(first["total_s"]) == sample.total_s
    assert int(first["generated_tokens"]) == sample.generated_tokens
    assert tuple(map(float, first["gaps_s"].split())) == sample.gaps_s
    assert [row["warm_up"] for row in rows[:2]] == ["yes", "no"]


def test_what_is_missing_is_empty_and_says_why() -> None:
    run = make.run()
    rows = rows_of(run, make.samples(run))
    failed = next(row for row in rows if row["error"])
    assert failed["error"] == "HTTP 500: the engine died"
    assert (failed["ttft_s"], failed["total_s"]) == ("", "")
    assert failed["missing"] == "ttft_s: it failed; total_s: it failed"
    untold = next(row for row in rows if not row["generated_tokens"])
    assert untold["missing"] == "cached_tokens: no usage; generated_tokens: no usage"


def test_estimates_are_named() -> None:
    sample = replace(make.samples(make.run())[0], cached_tokens=Estimated(512))
    row = rows_of(make.run(), (sample,))[0]
    assert (row["cached_tokens"], row["estimated"]) == ("512", "cached_tokens")


def test_every_row_says_whether_it_is_real() -> None:
    for run, simulated, reference, state in (
        (make.simulated(), "yes", "no", "done"),
        (make.reference(), "no", "yes", "done"),
        (make.invalid(), "no", "no", "invalid"),
    ):
        row = rows_of(run, make.samples(make.run())[:1])[0]
        told = (row["simulated"], row["reference"], row["state"])
        assert told == (simulated, reference, state)


def test_nothing_from_a_server_is_computed_by_a_spreadsheet() -> None:
    evil = replace(make.samples(make.run())[0], error='=HYPERLINK("x")', arm="+1", role="@x")
    row = rows_of(make.run(), (evil,))[0]
    assert (row["error"], row["arm"], row["role"]) == ('\'=HYPERLINK("x")', "'+1", "'@x")


def test_a_text_of_several_lines_stays_one_row() -> None:
    broken = replace(make.samples(make.run())[0], error='a\nb,"c"\x00')
    text = samples_csv(make.run(), (broken,))
    assert len(text.splitlines()) == 2
    assert rows_of(make.run(), (broken,))[0]["error"] == 'a\\nb,"c"\\x00'
