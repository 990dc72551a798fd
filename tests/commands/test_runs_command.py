"""`runs`: the list, one in full, two side by side, notes and claims, and what a script gets."""

from __future__ import annotations

import json
import re

import pytest

from a40console.commands.read_only import acts
from a40console.paths import Paths
from tests import make_runs as make
from tests.commands.console_process import (
    CONSOLE_WITH_STUB,
    Run,
    Service,
    on_terminal,
    with_stub,
)

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def test_the_list_for_a_person(console: Run, service: Service) -> None:
    service(state="serving", runs=True)
    run = console("runs")
    assert run.returncode == 0
    rows = run.stdout.splitlines()
    assert rows[0].split() == ["state", "run", "found"]
    assert rows[1].startswith("queued   20261130-150200-protocol-00f1 ")
    assert "34 %, per-turn, turn 34 of 120" in rows[2]
    assert "SIMULATED: block 360 s" in rows[3]
    assert "REFERENCE: 1,166 tok/s" in rows[-1]


def test_a_narrow_terminal_cuts_nothing(environment: dict[str, str], service: Service) -> None:
    service(state="serving", runs=True)
    code, text = on_terminal(environment, "runs", columns=80)
    rows = COLOUR.sub("", text).splitlines()
    assert code == 0
    assert all(len(row) <= 80 for row in rows)
    assert " ".join(" ".join(rows).split()).count("per-turn 528 s") == 2
    code, text = on_terminal(environment, "runs", "show", "1f3a", columns=80)
    rows = COLOUR.sub("", text).splitlines()
    assert code == 0
    assert all(len(row) <= 80 for row in rows)
    assert any(row.startswith("block ") and row.rstrip().endswith("0.74") for row in rows)


def test_the_list_for_a_script(console: Run, service: Service) -> None:
    service(state="serving", runs=True)
    listed = json.loads(console("runs", "--json").stdout)["runs"]
    assert [each["id"] for each in listed] == [run.id for run in make.several()]
    by_id = {each["id"][-4:]: each for each in listed}
    done = by_id["1f3a"]
    assert (done["experiment"], done["state"]) == ("compaction", "done")
    assert done["started_at"] == "2026-11-30T09:45:02Z"
    assert done["verdict"]["kind"] == "difference"
    assert by_id["00f1"]["started_at"] == {"missing": "it has not started"}
    assert by_id["51a0"]["simulated"] is True
    assert by_id["eed3"]["reference"] is True
    invalid = by_id["9e90"]
    assert invalid["verdict"] is None
    assert invalid["headline"] == "the client was saturated"


def test_a_part_of_the_list(console: Run, service: Service) -> None:
    service(state="serving", runs=True)

    def ids(*words: str) -> list[str]:
        listed = json.loads(console("runs", "list", *words, "--json").stdout)["runs"]
        return [each["id"][-4:] for each in listed]

    assert ids("--experiment", "sweep") == ["9e90", "77b0", "dead", "eed3"]
    assert ids("--experiment", "sweep", "--state", "failed", "--limit", "1") == ["dead"]


def test_without_runs_it_says_how_one_comes(console: Run, service: Service) -> None:
    service(state="serving")
    assert "a40console run EXPERIMENT" in console("runs").stdout
    assert json.loads(console("runs", "--json").stdout) == {"runs": []}


def test_the_list_starts_a_service_where_none_runs(
    console: Run, environment: dict[str, str], paths: Paths
) -> None:
    started = with_stub(environment, state="absent", runs=True)
    run = console("runs", command=CONSOLE_WITH_STUB, environment=started)
    assert run.returncode == 0
    assert "20261130-094501-compaction-1f3a" in run.stdout
    assert paths.control_socket.exists()


@pytest.mark.parametrize("name", ["20261130-0945", "1f3a"])
def test_one_in_full_by_a_part_of_its_id(console: Run, service: Service, name: str) -> None:
    service(state="serving", runs=True)
    run = console("runs", "show", name)
    assert run.returncode == 0
    for said in (
        "compaction, standard · 2026-11-30 09:45 UTC",
        "Verdict: block does the same work 1.47 ×",
        "Ratio: 1.47 × [1.41, 1.52], 95 %, 3 repeats",
        "    export CLAUDE_CODE_AUTO_COMPACT_WINDOW=96000",
        "▲ vcpu-throttled (cc-clear)",
        "≈1,204,000",
        "– recovers in (per-turn): it shrinks every turn",
        "Seconds a turn",
        "20 counts are the same on both sides and left out.",
        "argv asked",
    ):
        assert said in run.stdout, said


def test_the_last_one_is_the_last_that_has_begun_here(console: Run, service: Service) -> None:
    service(state="serving", runs=True)
    told = json.loads(console("runs", "show", "last", "--json").stdout)
    assert (told["id"], told["state"]) == ("20261130-150000-compaction-aa01", "running")
    assert told["experiment"] == "compaction"


def test_marks_come_first_and_an_invalid_run_shows_no_result(
    console: Run, service: Service
) -> None:
    service(state="serving", runs=True)
    assert console("runs", "show", "51a0").stdout.splitlines()[1].startswith("SIMULATED: ")
    assert console("runs", "show", "eed3").stdout.splitlines()[1].startswith("REFERENCE: ")
    text = console("runs", "show", "9e90").stdout
    assert text.splitlines()[1] == "INVALID: no figure of it may be believed"
    assert "✖ client-saturated (32)" in text
    assert "1,165" not in text


def test_one_that_runs_is_shown_with_what_it_has(console: Run, service: Service) -> None:
    service(state="serving", runs=True)
    text = console("runs", "show", "aa01").stdout
    assert "34 %, per-turn, turn 34 of 120" in text
    assert "Under which conditions" in text


def test_one_that_is_not_known_or_not_meant_alone(console: Run, service: Service) -> None:
    service(state="serving", runs=True)
    for name in ("ffff", "20261130"):
        run = console("runs", "show", name)
        assert run.returncode == 2
        assert f"No run is known as {name}" in run.stderr
        assert "a40console runs list" in run.stderr


def test_two_side_by_side(console: Run, service: Service) -> None:
    service(state="serving", runs=True)
    run = console("runs", "compare", "1f3a", "51a0")
    assert run.returncode == 0
    for said in (
        "left   20261130-094501-compaction-1f3a, compaction, standard",
        "right  20261130-140000-compaction-51a0, SIMULATED, compaction, standard",
        "effective.speculation is the one variable that differs",
        "effective.speculation  ngram, 5 tokens  off",
        "What differs, and no effect can be its",
        "1.36 × [1.31, 1.40], 95 %, 3 repeats",
        "wall s, right over left",
        "– not measured",
    ):
        assert said in run.stdout, said
    told = json.loads(console("runs", "compare", "1f3a", "51a0", "--json").stdout)
    assert told["attributable"] is True
    assert told["left"].endswith("1f3a")


def test_a_note_and_a_mark_are_asked_of_the_service(console: Run, service: Service) -> None:
    service(state="serving", runs=True)
    assert console("runs", "note", "1f3a", "with", "the", "new driver").stdout == (
        "runs.note: id=20261130-094501-compaction-1f3a, text=with the new driver\n"
    )
    told = json.loads(console("runs", "invalidate", "77b0", "wrong model", "--json").stdout)
    assert told["result"]["report"] == (
        "runs.invalidate: id=20261130-081200-sweep-77b0, reason=wrong model"
    )
    assert console("runs", "note", "1f3a", " ").returncode == 2


def test_claims(console: Run, service: Service) -> None:
    service(state="serving", runs=True)
    text = console("runs", "hypotheses").stdout
    assert "   1 confirmed block compaction beats per-turn pruning" in text
    assert "by 20261130-094501-compaction-1f3a" in text
    told = json.loads(console("runs", "hypotheses", "list", "--state", "open", "--json").stdout)
    assert [each["id"] for each in told["hypotheses"]] == [2]
    assert console("runs", "hypotheses", "add", "n=12", "wins").stdout == (
        "hypotheses.add: text=n=12 wins\n"
    )
    said = ("2", "refuted", "--run", "0c4e", "--why", "it does not")
    assert console("runs", "hypotheses", "conclude", *said).stdout == (
        "hypotheses.conclude: id=2, runs=20261129-201500-regimes-0c4e, state=refuted, "
        "why=it does not\n"
    )


def test_who_only_looks_may_look_alone() -> None:
    for looks in ("", "list", "show 1f3a", "compare a b", "export a", "hypotheses"):
        assert not acts(["runs", *looks.split()])
    assert not acts(["runs", "hypotheses", "list", "--state", "open"])
    for changes in ("note a x", "invalidate a x", "import f", "pull", "hypotheses add x"):
        assert acts(["runs", *changes.split()])
