"""`a40console --plain`: a conversation of lines, with the commands of the table as words."""

from __future__ import annotations

import re

import pytest

from a40console.commands.plain_words import understand
from a40console.model.command import COMMANDS
from a40console.paths import Paths
from a40console.tui.keymap import resolve
from tests.commands.console_process import Run, Service, on_terminal

KEYS = resolve({})


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("start", "engine.start"),
        ("start tiny", "engine.start"),
        ("S", "engine.start"),
        ("Engine.Start tiny", "engine.start"),
        ("stop", "engine.stop"),
        ("stop service", "service.stop"),
        ("why", "limit.why"),
        ("why slow", "limit.why"),
        ("w", "limit.why"),
        ("s", "engine.speculation"),
        ("note pruning off", "note.add"),
        ("  restart  ", "engine.restart"),
    ],
)
def test_a_command_is_understood_by_key_name_and_id(line: str, meant: str) -> None:
    command = understand(line, KEYS).command
    assert command is not None
    assert command.id == meant


def test_every_command_can_be_said() -> None:
    for command in COMMANDS:
        meaning = understand(command.id, KEYS)
        assert meaning.command is command or meaning.own


def test_the_rest_of_the_line_is_the_argument() -> None:
    assert understand("start  tiny", KEYS).argument == "tiny"
    assert understand("say all", KEYS).argument == "all"
    assert understand("note pruning is off", KEYS).argument == "pruning is off"


@pytest.mark.parametrize(
    ("line", "own"), [("status", "status"), ("1", "status"), ("?", "help"), ("q", "quit")]
)
def test_words_of_the_mode_and_keys_for_them(line: str, own: str) -> None:
    assert understand(line, KEYS).own == own


def test_what_is_not_understood_is_said_with_the_nearest_word() -> None:
    assert "Did you mean restart" in understand("restrat", KEYS).problem
    assert understand("s" * 40, KEYS).problem


def conversation(console: Run, *lines: str) -> str:
    run = console("--plain", stdin="".join(f"{line}\n" for line in lines).encode())
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stdout + run.stderr
    return run.stdout


def test_it_reports_answers_and_leaves(console: Run, service: Service) -> None:
    service(state="serving", slots=2)
    said = conversation(console, "status", "why", "events", "findings", "quit", "status")
    assert said.count("SERVING. ") == 1, "asked for at once, the report is not said twice"
    assert "Limit: " in said
    assert "out of memory." in said, "no escape of a log's reaches the terminal"
    assert said.splitlines()[-1] == "Left. Service and engine keep running."
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", said)


def test_status_asked_for_later_is_said_again(console: Run, service: Service) -> None:
    service(state="serving", slots=2)
    said = conversation(console, "why", "status", "quit", "status")
    assert said.count("SERVING. ") == 2, "once unasked, once asked, and nothing after quit"
    assert "with a engine" not in conversation(console, "help")


def test_the_end_of_the_input_is_the_end(console: Run, service: Service) -> None:
    service(state="serving")
    said = conversation(console)
    assert "SERVING" in said


def test_a_command_is_done_and_told(console: Run, service: Service) -> None:
    service(state="absent")
    said = conversation(console, "start tiny")
    assert "Start engine: under way." in said
    assert "Start engine: done." in said


def test_what_cannot_be_done_is_refused_with_the_reason(console: Run, service: Service) -> None:
    service(state="serving")
    assert "Not now: the engine is serving." in conversation(console, "start tiny")


@pytest.mark.parametrize(("answer", "done"), [("yes", True), ("no", False), ("", False)])
def test_a_question_takes_the_next_line(
    answer: str, done: bool, console: Run, service: Service
) -> None:
    service(state="serving")
    said = conversation(console, "stop", answer or "x", "status")
    assert "Type yes to do it." in said
    assert ("Stop engine: under way." in said) is done
    assert ("Nothing done." in said) is not done


def test_a_question_that_gets_no_answer_is_a_no(console: Run, service: Service) -> None:
    service(state="serving")
    assert "Nothing done." in conversation(console, "stop")


def test_the_token_is_not_said(console: Run, service: Service) -> None:
    service(state="serving")
    said = conversation(console, "connect", "engine", "logs", "cost", "help", "mute", "pause")
    assert "secret-token" not in said
    assert "is for the screen" in said
    assert "start, or S with a profile" in said
    assert "Alarms off" in said


def test_a_terminal_gets_lines_and_nothing_that_moves(
    environment: dict[str, str], paths: Paths, service: Service
) -> None:
    service(state="serving", slots=1)
    code, written = on_terminal(environment, "--plain", stdin="quit\n")
    assert code == 0
    assert "\x1b" not in written
    assert "SERVING" in written


def test_without_a_terminal_the_screen_names_the_way_in_sentences(console: Run) -> None:
    run = console()
    assert run.returncode == 2
    assert "a40console --plain" in run.stderr


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_cannot_be_drawn_on_is_refused_politely(
    term: str, environment: dict[str, str], paths: Paths
) -> None:
    code, written = on_terminal(environment, term=term)
    assert code == 2
    assert "a40console --plain" in written
    assert "\x1b" not in written
    assert not paths.control_socket.exists(), "nothing was started for it"


@pytest.mark.parametrize(("answer", "done"), [("yes", True), ("no", False)])
def test_an_edited_profile_is_shown_before_it_is_asked(
    answer: str, done: bool, console: Run, service: Service
) -> None:
    service(state="serving")
    said = conversation(console, "apply the edited profile", answer, "status")
    assert "By a restart: max_model_len: 262144 → 131072." in said
    assert "As it runs: usd_per_hour: not set → 0.44." in said
    assert ("Apply the edited profile: under way." in said) is done
    assert ("Nothing done." in said) is not done


@pytest.mark.parametrize(("answer", "done"), [("yes", True), ("no", False)])
def test_a_fix_of_the_profile_is_shown_before_it_is_asked(
    answer: str, done: bool, console: Run, service: Service
) -> None:
    service(state="failed")
    said = conversation(console, "fix the profile", answer, "status")
    assert "Changed would be max_model_len: 262144 → 116480, in /config/profiles/mine.toml." in said
    assert "Type yes to change it." in said
    assert ("Fix the profile: under way." in said) is done
    assert ("Nothing done." in said) is not done


LOST = [
    ("cache.reset", "tokens read again."),
    ("engine.sleep 1", "What still runs after the drain is cut; then every request is refused."),
    ("engine.sleep 1", "2 requests running now."),
    ("engine.drain", "New requests wait at the gateway"),
    ("admission.pause", "New requests wait at the gateway"),
    ("engine.stop", "2 requests running now."),
    ("engine.restart", "2 requests running now."),
    ("engine.speculation 24", "24 tokens are drafted for each pass then."),
    ("engine.speculation 24", "By restart, with clients waiting (deeper than the start)"),
    ("engine.switch other", "for other to start"),
]


def test_what_is_lost_is_said_before_it_is_asked(console: Run, service: Service) -> None:
    service(state="serving", slots=2, sessions=True)
    for line, lost in LOST:
        before, asked, _ = conversation(console, line, "no").partition("Type yes to do it.")
        assert asked, line
        assert lost in before.replace("\n", " "), line


def test_a_request_is_named_before_its_abort_is_asked(console: Run, service: Service) -> None:
    """A slot is taken again within a second: the request that was asked about is meant."""
    service(state="serving", slots=2)
    before, asked, after = conversation(console, "abort 1", "yes").partition("Type yes to do it.")
    assert asked
    (named,) = {word for word in before.split() if word.startswith("req-")}
    assert "Slot 1" in before
    assert f"Asked to end: {named.rstrip(',.')}" in after
    assert "Slot 7 holds no request" in conversation(console, "abort 7")
