"""`events`, `note`, `history` and `engine history`, for a person and for a script."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import threading
from dataclasses import replace
from itertools import islice

import pytest
from rich.console import Console as RichConsole

from a40console.commands.engine_history import _lines
from a40console.commands.history import SERIES, _table, as_csv_text
from a40console.commands.since import event_id, since_seconds
from a40console.errors import UsageError
from a40console.model.control import HistoryPoint
from a40console.model.engine import EngineEnd
from a40console.model.figures import Estimated, Missing
from tests import make_snapshot as make
from tests.commands.console_process import CONSOLE, Run, Service
from tests.tui import fake_past


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", -90.0),
        ("15m", -900.0),
        ("2h", -7200.0),
        ("1d", -86_400.0),
        ("1h30m", -5400.0),
        ("1.5h", -5400.0),
        (" 2H ", -7200.0),
        ("2026-11-29T10:00:00Z", 1_795_946_400.0),
        ("2026-11-29T12:00:00+02:00", 1_795_946_400.0),
    ],
)
def test_how_far_back(text: str, seconds: float) -> None:
    assert since_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "2 hours", "-2h", "2h!", "yesterday", "1e9h"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="no time span and no instant"):
        since_seconds(text)


@pytest.mark.parametrize(("text", "number"), [("42", 42), ("0", 0), ("2h", None), ("٣", None)])
def test_an_id_of_an_event(text: str, number: int | None) -> None:
    assert event_id(text) == number


def test_events_for_a_person(console: Run, service: Service) -> None:
    service()
    run = console("events", "--limit", "500")
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert "service.started  the service starts" in lines[0]
    [ended] = [line for line in lines if "engine.ended" in line]
    assert "✖ engine.ended  out of memory  Killed  Lower max_model_len." in ended
    assert "[bold]pruning[/] off" in run.stdout, "what was typed is text, not markup"
    assert "\x1b" not in run.stdout


def test_events_filtered(console: Run, service: Service) -> None:
    service()
    kinds = [
        event["kind"]
        for event in json.loads(console("events", "--kind", "engine", "--json").stdout)["events"]
    ]
    assert kinds[:2] == ["engine.starting", "engine.ended"]
    document = json.loads(console("events", "--severity", "warn", "--json").stdout)
    assert [event["id"] for event in document["events"]] == [3, 5]
    assert document["events"][0] == {
        "id": 3,
        "at": "2026-11-29T13:30:00Z",
        "kind": "engine.ended",
        "severity": "error",
        "text": "out of \x1b[31mmemory",
        "data": {"evidence": "Killed", "remedy": "Lower max_model_len.", "run": "r1"},
        "marked": True,
    }
    after = json.loads(console("events", "--since", "4", "--kind", "finding", "--json").stdout)
    assert [event["id"] for event in after["events"]] == [5]


def test_events_as_they_happen(console: Run, service: Service, environment: dict[str, str]) -> None:
    service()
    process = subprocess.Popen(
        [*CONSOLE, "events", "--follow", "--limit", "1", "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    impatience = threading.Timer(20, process.kill)
    impatience.start()
    seen = [json.loads(line)["id"] for line in islice(process.stdout, 4)]
    impatience.cancel()
    process.kill()
    process.wait(10)
    process.stdout.close()
    assert seen == sorted(set(seen))
    assert len(seen) == 4


@pytest.mark.parametrize(
    "words", [("--since", "soon"), ("--severity", "fatal"), ("--limit", "0"), ("--limit", "-3")]
)
def test_events_called_wrongly(console: Run, service: Service, words: tuple[str, str]) -> None:
    service()
    run = console("events", *words)
    assert run.returncode == 2
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    "words",
    [("events",), ("note", "x"), ("history",), ("digest",), ("cost",), ("engine", "history")],
)
def test_without_a_service_nothing_is_started(console: Run, words: tuple[str, ...]) -> None:
    run = console(*words)
    assert run.returncode == 3, run.stderr
    assert "a40console serve" in run.stderr


def test_a_note(console: Run, service: Service) -> None:
    service()
    run = console("note", "pruning", "off", "from here")
    assert (run.returncode, run.stdout) == (0, "Noted: pruning off from here\n")
    document = json.loads(console("note", "x", "--json").stdout)
    assert document["command"] == "note.add"
    assert console("note").returncode == 2


def test_a_note_that_is_refused(console: Run, service: Service) -> None:
    service(refuse_with=2)
    run = console("note", "x")
    assert run.returncode == 2
    assert "note.add is refused" in run.stderr


def test_history_as_a_table(console: Run, service: Service) -> None:
    service()
    run = console("history", "--points", "5")
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[0].split()[:4] == ["at", "tok/s", "peak", "prefill"]
    assert len([line for line in run.stdout.splitlines() if line.startswith("11-29")]) == 5
    assert "a point is 1 s" in run.stdout


@pytest.mark.parametrize("width", [40, 80, 100, 120, 160])
@pytest.mark.parametrize("simulated", [False, True])
def test_history_shows_whole_figures_on_any_width(*, width: int, simulated: bool) -> None:
    told = fake_past.history(make.history(), {"since": "0"})
    points = tuple(replace(point, simulated=simulated) for point in told.points[-5:])
    buffer = io.StringIO()
    RichConsole(file=buffer, width=width).print(_table(replace(told, points=points), width))
    drawn = buffer.getvalue()
    assert "…" not in drawn
    assert "tok/s" in drawn
    assert ("  W" in drawn) is (width >= 120 and not (simulated and width == 120))
    assert max(map(len, drawn.splitlines())) <= width


def test_history_as_json_and_csv(console: Run, service: Service) -> None:
    service()
    document = json.loads(console("history", "--since", "20m", "--json").stdout)
    assert (document["step_s"], len(document["points"])) == (1.0, 900)
    assert document["retention"][0] == {"step_s": 1.0, "span_s": 3600.0}
    rows = list(csv.DictReader(io.StringIO(console("history", "--csv").stdout)))
    assert len(rows) == 900
    gaps = [row for row in rows if row["gap"]]
    assert {row["gap"] for row in gaps} == {"the engine restarted"}
    assert {row["generation_tokens_per_s"] for row in gaps} == {""}
    assert console("history", "--csv", "--json").returncode == 2


def test_an_estimate_in_csv_says_so() -> None:
    point = HistoryPoint(
        at_s=0.0,
        generation_tokens_per_s=Estimated(4.0),
        prefill_tokens_per_s=Missing("not read yet"),
        running=2,
        waiting=0,
    )
    told = replace(fake_past.history(make.history(), {"since": "0"}), points=(point,))
    [row] = csv.DictReader(io.StringIO(as_csv_text(told)))
    assert (row["at"], row["generation_tokens_per_s"]) == ("1970-01-01T00:00:00.000Z", "4.0")
    assert (row["estimated"], row["prefill_tokens_per_s"]) == ("generation_tokens_per_s", "")
    assert (row["waiting"], row["running"]) == ("0", "2")
    assert set(SERIES) < set(row)
    assert row["simulated"] == ""
    told = replace(told, points=(replace(point, simulated=True),))
    [row] = csv.DictReader(io.StringIO(as_csv_text(told)))
    assert row["simulated"] == "SIMULATED"


def test_engine_history(console: Run, service: Service) -> None:
    service()
    run = console("engine", "history")
    assert run.returncode == 0, run.stderr
    first, phases, killed, *_ = run.stdout.splitlines()
    assert "qwen3-coder-30b  ready after 77.0 s" in first
    assert first.endswith("runs")
    assert "starting 6.10 s  load 38.4 s  compile 19.0 s  capture 13.5 s" in phases
    assert "out of memory" in killed
    assert "never served" not in run.stdout
    assert "ready after –" in run.stdout
    document = json.loads(console("engine", "history", "-n", "1", "--json").stdout)
    [start] = document["starts"]
    assert start["end"] == {"missing": "it runs"}
    assert start["phases"][0] == {"name": "starting", "seconds": 6.1}


def test_a_signal_that_the_cause_names_is_told_once() -> None:
    killed = next(one for one in fake_past.starts() if not isinstance(one.end, Missing))
    assert isinstance(killed.end, EngineEnd)
    end = replace(killed.end, cause="killed from outside (SIGKILL)", signal="SIGKILL")
    assert str(_lines(replace(killed, end=end))[0]).count("SIGKILL") == 1
    unnamed = replace(end, cause="out of memory")
    assert "out of memory (SIGKILL)" in str(_lines(replace(killed, end=unnamed))[0])


def test_a_simulated_start_is_called_so() -> None:
    start = fake_past.starts()[0]
    assert "SIMULATED qwen3-coder-30b" in str(_lines(replace(start, simulated=True))[0])
    assert "SIMULATED" not in str(_lines(start)[0])


def test_a_digest(console: Run, service: Service) -> None:
    service()
    run = console("digest")
    assert run.returncode == 0, run.stderr
    said = " ".join(run.stdout.split())
    assert said.startswith("span 8 h ")
    for text in (
        "requests 412 finished 2 failed 5 aborted",
        "generated 1,204,331 tokens busy for 2 h 36 m of it",
        "spent $3.52",
        "peak 612 tok/s",
        "out of memory: the kernel killed VLLM::EngineCore",
        "The container's CPU quota throttles the engine, still so",
        "note: pruning off from here on",
        "In the journal: 9,128 events, 1 error, 3 warnings.",
    ):
        assert text in said
    assert json.loads(console("digest", "--json").stdout)["since_event"] == 3, "since it was read"
    assert json.loads(console("digest", "--since", "7", "--json").stdout)["since_event"] == 7
    assert console("digest", "--since", "8h").returncode == 0
    assert console("digest", "--since", "soon").returncode == 2


def test_cost_by_the_hour(console: Run, service: Service) -> None:
    service(state="serving", slots=1)
    run = console("cost")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("─ Paid ─")
    assert "A million tokens" in run.stdout
    assert re.search(r"By the hour +since .*: +≈\$10\.12 +1,842,000 tokens", run.stdout)
    head, *rows = run.stdout[run.stdout.index("hour from") :].splitlines()
    assert head.split() == ["hour", "from", "$", "tokens", "busy", "$/1M"]
    assert len(rows) == 24
    assert any("the service did not run" in row for row in rows), "one was not seen"
    assert len(json.loads(console("cost", "--json").stdout)["hours"]) == 24


@pytest.mark.parametrize(
    "text", ["999999d", "0001-01-01", "0001-01-01T00:00:00+14:00", "9" * 5000 + "d", "9" * 5000]
)
def test_a_look_back_beyond_all_time_is_refused_in_short(text: str) -> None:
    asked = event_id if text.isdigit() else since_seconds
    with pytest.raises(UsageError) as refused:
        asked(text)
    assert "2026-11-29T10:00:00Z" in refused.value.remedy
    assert len(refused.value.message) < 120
