"""`sessions`, `sessions show` and `sessions capture`, for a person, a script, in sentences."""

from __future__ import annotations

import json

from a40console.commands.session_words import session_sentences
from a40console.model.figures import Missing
from tests import make_sessions as many
from tests import make_snapshot as make
from tests.commands.console_process import Run, Service


def test_the_list_for_a_person(console: Run, service: Service) -> None:
    service(state="serving", sessions=True)
    run = console("sessions")
    assert run.returncode == 0
    rows = run.stdout.splitlines()
    assert len(rows) == 6
    assert rows[0].split()[:4] == ["session", "client", "phase", "turns"]
    assert "●1a2b3c4d claude-code decode 4 s" in rows[1]
    assert "runs Bash 3 m" in rows[2]
    assert rows[2].rstrip().endswith("0.29  0.37 $0.013")
    assert all(len(row) <= 120 for row in rows)
    assert console("sessions", "list").stdout == run.stdout


def test_the_list_for_a_script(console: Run, service: Service) -> None:
    service(state="serving", sessions=True)
    for words in (("sessions", "--json"), ("sessions", "list", "--json")):
        listed = json.loads(console(*words).stdout)["sessions"]
        assert [each["capturing"] for each in listed] == [True, False, False, False, False]
        assert listed[1]["compacts_at_tokens"] == {"value": 229144, "estimated": True}


def test_without_sessions_it_says_how_one_comes(console: Run, service: Service) -> None:
    service(state="serving")
    assert "– " in console("sessions").stdout
    assert "Connect one with" not in console("sessions").stdout


def test_one_in_full_by_the_beginning_of_its_id(console: Run, service: Service) -> None:
    service(state="serving", sessions=True)
    run = console("sessions", "show", "7f3a")
    assert run.returncode == 0
    for said in (
        "7f3a9c52-5d1e-4b8a-9f60-2f8a1c7e4b10",
        "its session header",
        "31,844 of 262,144",
        "compacts at ≈229,144 tokens",
        "turn 40, block 14: tool_result",
        "└ Explore a1b2c3d",
        "context_management 57 ×",
        "Turn by turn",
    ):
        assert said in run.stdout, said
    assert all(len(row) <= 120 for row in run.stdout.splitlines())
    detail = json.loads(console("sessions", "show", "7f3a", "--json").stdout)
    assert detail["session"].startswith("7f3a9c52")
    assert len(detail["timeline"]) == 4


def test_one_that_is_not_known(console: Run, service: Service) -> None:
    service(state="serving", sessions=True)
    run = console("sessions", "show", "ffff")
    assert run.returncode == 2
    assert "No session is known as ffff" in run.stderr
    assert "a40console sessions" in run.stderr


def test_capture_is_asked_of_the_service(console: Run, service: Service) -> None:
    service(state="serving", sessions=True)
    assert console("sessions", "capture", "7f3a", "on").stdout == "Asked for: 7f3a on\n"
    told = json.loads(console("sessions", "capture", "7f3a", "off", "--json").stdout)
    assert told["result"] == {"report": "Asked for: 7f3a off"}
    assert console("sessions", "capture", "7f3a").returncode == 2


def test_a_capture_is_told_in_the_status(console: Run, service: Service) -> None:
    service(state="serving", sessions=True)
    assert "● CAPTURE 1a2b3c4d" in console("status", "--line").stdout


def test_in_sentences(console: Run, service: Service) -> None:
    service(state="serving", sessions=True)
    run = console("--plain", stdin=b"sessions\nquit\n")
    assert (
        "Session 7f3a9c52, claude-code, waits for its client, which runs Bash since 3 m 10 s, "
        "41 turns, context 31,844 of 262,144 tokens, 96 % reused, about 16,400 re-read, "
        "268 tokens a second sustained, $0.0128." in run.stdout
    )
    assert "its text is being captured." in run.stdout


def test_sentences_without_any() -> None:
    none = make.snapshot(sessions=())
    unknown = make.snapshot(sessions=Missing("the gateway is down"))
    assert session_sentences(none) == ["No client has sent anything in the last 24 hours"]
    assert session_sentences(unknown) == ["Sessions: the gateway is down"]
    assert len(session_sentences(many.snapshot())) == 5
