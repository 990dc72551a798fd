"""`ask`: from nothing at all to an answer, and every way in which none comes."""

from __future__ import annotations

import json

import pytest

from a40console.errors import Exit, NotServingError
from a40console.model.figures import Missing
from a40console.service.chat import NO_USAGE, Answer, Piece, parse_event
from tests.commands.console_process import CONSOLE_WITH_STUB, Run, Service, on_terminal, with_stub
from tests.commands.service_stub import TOKEN


def test_from_nothing_to_an_answer(console: Run, environment: dict[str, str]) -> None:
    run = console(
        "ask",
        "why?",
        "--max-tokens",
        "7",
        command=CONSOLE_WITH_STUB,
        environment=with_stub(environment),
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "You asked: why? [7]\n"
    started, phase, figures = run.stderr.splitlines()
    assert started.startswith("Started the service")
    assert phase == "starting: load"
    assert figures.startswith("4 tokens   ")
    assert " tok/s   TTFT " in figures
    assert figures.endswith("   qwen3-coder-30b")
    assert TOKEN not in run.stdout + run.stderr


@pytest.mark.pty
def test_a_person_sees_one_line_that_moves(environment: dict[str, str]) -> None:
    code, written = on_terminal(with_stub(environment), "ask", "why?", command=CONSOLE_WITH_STUB)
    assert code == 0, written
    assert "\r\x1b[Kstarting  load 42 s, ≈35 s left" in written
    *_, answer, figures, _ = written.split("\r\n")
    assert answer.endswith("\r\x1b[KYou asked: why? [None]")
    assert figures.startswith("4 tokens")


def test_json(console: Run, service: Service) -> None:
    service(state="serving")
    run = console("ask", "why?", "--json", "--temperature", "0")
    document = json.loads(run.stdout)
    assert document.pop("ttft_s") > 0
    assert document.pop("tokens_per_s") > 0
    assert document == {
        "model": "qwen3-coder-30b",
        "simulated": False,
        "text": "You asked: why? [None]",
        "thinking": "",
        "finish_reason": "stop",
        "prompt_tokens": 9,
        "generated_tokens": 4,
    }
    assert not run.stderr


def test_the_question_may_come_from_standard_input(console: Run, service: Service) -> None:
    service(state="serving")
    assert console("ask", "-", stdin="été\n".encode()).stdout == "You asked: été\n [None]\n"
    assert console("ask", "-", stdin=b"\xff").returncode == Exit.USAGE
    assert console("ask", "-").returncode == Exit.USAGE
    assert console("ask", " ").returncode == Exit.USAGE


def test_a_proxy_of_the_environment_is_left_aside(
    console: Run, environment: dict[str, str], service: Service
) -> None:
    service(state="serving")
    proxy = {"HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}
    assert console("ask", "x", environment={**environment, **proxy}).returncode == 0


def test_an_engine_that_starts_already_is_waited_for(console: Run, service: Service) -> None:
    service(state="starting")
    run = console("ask", "x", "--timeout", "1")
    assert run.returncode == Exit.TIMED_OUT
    assert "load 42 s" in run.stderr


@pytest.mark.parametrize("state", ["hung", "orphaned", "asleep", "stopping"])
def test_an_engine_in_no_state_to_answer(state: str, console: Run, service: Service) -> None:
    service(state=state)
    run = console("ask", "x")
    assert run.returncode == Exit.NOT_SERVING
    assert run.stderr.startswith(f"The engine is {state}\n")
    assert ("a40console engine wake" in run.stderr) is (state == "asleep")
    assert ("engine wake" in console("status").stdout) is (state == "asleep")


@pytest.mark.parametrize(
    ("gateway", "code", "printed", "told"),
    [
        ("refuses", 5, "", "HTTP 400: too long a prompt"),
        ("down", 4, "", "HTTP 503: no engine"),
        ("breaks", 4, "You \n", "The answer broke off"),
        ("errors", 4, "You \n", "the engine died"),
        ("none", 4, "", "The gateway does not listen"),
    ],
)
def test_what_goes_wrong_is_told(
    gateway: str, code: int, printed: str, told: str, console: Run, service: Service
) -> None:
    service(state="serving", gateway=gateway)
    run = console("ask", "x")
    assert run.returncode == code
    assert run.stdout == printed
    assert told in run.stderr
    error = json.loads(console("ask", "x", "--json").stdout)["error"]
    assert error["exit_code"] == code


def test_a_start_that_fails_is_the_answer(console: Run, service: Service) -> None:
    service(state="absent", start="fails")
    run = console("ask", "x")
    assert run.returncode == Exit.NOT_SERVING
    assert "CUDA out of memory" in run.stderr


def test_an_answer_cannot_steer_the_terminal(console: Run, service: Service) -> None:
    service(state="serving", gateway="colourful")
    assert console("ask", "x").stdout == "red\n"


def grown(*pieces: tuple[float, Piece]) -> Answer:
    answer = Answer(model="m", sent_at_s=10.0)
    for now_s, piece in pieces:
        answer.add(piece, now_s)
    return answer


def test_speed_is_taken_between_the_first_and_the_last_token() -> None:
    answer = grown(
        (10.5, Piece(thinking="hm")),
        (11.0, Piece(text="a")),
        (12.5, Piece(text="b")),
        (13.0, Piece(finish_reason="stop")),
        (13.0, Piece(usage={"prompt_tokens": 3, "completion_tokens": 21})),
    )
    assert answer.ttft_s == 0.5
    assert answer.tokens_per_s == 20 / 2.0
    assert (answer.text, answer.thinking, answer.finish_reason) == ("ab", "hm", "stop")


def test_figures_without_their_inputs_are_missing() -> None:
    empty = grown((11.0, Piece(finish_reason="stop")))
    assert empty.generated_tokens is NO_USAGE
    assert isinstance(empty.tokens_per_s, Missing)
    assert isinstance(empty.ttft_s, Missing)
    one = grown((11.0, Piece(text="a")), (11.0, Piece(usage={"completion_tokens": 1})))
    assert isinstance(one.tokens_per_s, Missing)
    assert isinstance(one.prompt_tokens, Missing)
    at_once = grown((11.0, Piece(text="a")), (11.0, Piece(usage={"completion_tokens": 9})))
    assert isinstance(at_once.tokens_per_s, Missing)


@pytest.mark.parametrize("line", ["", ": keep-alive", "event: ping", "data: [DONE]"])
def test_lines_without_content(line: str) -> None:
    assert parse_event(line) is None


def test_events_of_the_stream() -> None:
    assert parse_event('data:{"choices":[{"delta":{"content":"x"}}]}') == Piece(text="x")
    assert parse_event('data: {"choices":[{"delta":{"reasoning":"r","content":null}}]}') == Piece(
        thinking="r"
    )
    assert parse_event('data: {"choices":[],"usage":null}') == Piece()
    for broken in ("data: {", 'data: {"error":"gone"}'):
        with pytest.raises(NotServingError):
            parse_event(broken)
