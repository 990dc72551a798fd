"""`runs export` and `runs import`: every format, to files and back."""

from __future__ import annotations

import csv
import json
import stat
from pathlib import Path

from a40console.ledger.documents import read
from tests import make_runs as make
from tests.commands.console_process import Run, Service


def test_each_format_on_standard_output(console: Run, service: Service) -> None:
    service(state="serving", runs=True)
    assert console("runs", "export", "1f3a").stdout.startswith("# compaction, standard")
    page = console("runs", "export", "1f3a", "--format", "html").stdout
    assert page.startswith("<!DOCTYPE html>")
    assert "<svg" in page
    values = console("runs", "export", "1f3a", "--format", "csv").stdout
    assert len(list(csv.DictReader(values.splitlines()))) == len(make.samples(make.run()))
    document = read(json.loads(console("runs", "export", "1f3a", "--json").stdout))
    assert document.run == make.run()
    assert tuple(document.samples) == make.samples(make.run())


def test_to_a_file_whose_ending_says_the_format(
    console: Run, service: Service, tmp_path: Path
) -> None:
    service(state="serving", runs=True)
    path = tmp_path / "report.html"
    run = console("runs", "export", "1f3a", "-o", str(path))
    assert (run.returncode, run.stdout) == (0, "")
    assert f"Written: {path}" in run.stderr
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = console("runs", "export", "1f3a", "-o", str(path))
    assert again.returncode == 5
    assert "is there already" in again.stderr
    words = ("runs", "export", "51a0", "-o", str(path), "--force", "--json")
    assert json.loads(console(*words).stdout) == {"format": "html", "paths": [str(path)]}
    assert "SIMULATED" in path.read_text()
    odd = console("runs", "export", "1f3a", "-o", str(tmp_path / "report.pdf"))
    assert odd.returncode == 2
    assert ".html" in odd.stderr


def test_all_of_them_into_a_folder(console: Run, service: Service, tmp_path: Path) -> None:
    service(state="serving", runs=True)
    folder = tmp_path / "out"
    assert console("runs", "export", "--all", "--format", "json", "-o", str(folder)).returncode == 0
    ended = {run.id for run in make.several() if run.state not in ("queued", "running")}
    assert {path.stem for path in folder.iterdir()} == ended
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_cannot_be_exported_says_why(console: Run, service: Service) -> None:
    service(state="serving", runs=True)
    for words, code, said in (
        ((), 2, "Name them, or say --all"),
        (("1f3a", "51a0"), 2, "Several runs need a folder"),
        (("aa01",), 5, "has not ended"),
        (("eed3", "--format", "csv"), 5, "has no single requests"),
        (("1f3a", "--format", "html", "--json"), 2, "needs a file"),
        (("1f3a", "-o", "/proc/x/report.md"), 5, "/proc/x"),
    ):
        run = console("runs", "export", *words)
        assert run.returncode == code, run.stderr
        assert said in run.stderr + run.stdout


def test_what_was_exported_is_imported(console: Run, service: Service, tmp_path: Path) -> None:
    service(state="serving", runs=True)
    path = tmp_path / "run.json"
    path.write_text(console("runs", "export", "51a0", "--json").stdout)
    assert console("runs", "import", str(path)).stdout == (
        "runs.import: 20261130-140000-compaction-51a0 with 180 requests (SIMULATED)\n"
    )
    piped = console("runs", "import", "-", "--json", stdin=path.read_bytes())
    assert json.loads(piped.stdout) == {
        "runs": [{"id": "20261130-140000-compaction-51a0", "marks": ["SIMULATED"]}]
    }


def test_what_is_no_document_is_told_before_anything_is_taken(
    console: Run, service: Service, tmp_path: Path
) -> None:
    service(state="serving", runs=True)
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(console("runs", "export", "1f3a", "--json").stdout)
    for text, said in (
        ("{", "is no run's document"),
        ("[]", "That is no run's document"),
        (good.read_text().replace('"compaction"', "7"), "cannot be read"),
    ):
        bad.write_text(text)
        run = console("runs", "import", str(good), str(bad))
        assert run.returncode == 2
        assert said in run.stderr
        assert str(bad) in run.stderr
        assert run.stdout == ""
    gone = console("runs", "import", str(tmp_path / "none.json"))
    assert gone.returncode == 2
    assert "No such file" in gone.stderr
