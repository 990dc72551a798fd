"""Levels and blocks as real engines write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.log_line import (
    LONGEST_CHARS,
    Level,
    LevelReader,
    LogLine,
    plain,
    split_stamp,
)

DATA = Path(__file__).parents[1] / "data" / "engine_logs"
TIME = "11-29 13:00:00 [core.py:1]"
RUST = "\x1b[36m(RustFrontend pid=5)\x1b[0m \x1b[31mERROR\x1b[0m \x1b[90m11-29 13:47:52\x1b[0m x"


def read(*texts: str) -> list[LogLine]:
    reader = LevelReader()
    return [reader.read(text) for text in texts]


def errors(name: str) -> list[str]:
    """The first line of every error of a recorded output."""
    lines = read(*(DATA / name).read_text(errors="replace").split("\n"))
    return [x.text for x in lines if x.level is Level.ERROR and not x.continues]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        (f"(APIServer pid=1) INFO {TIME} Resolved", Level.INFO),
        (f"(EngineCore pid=2) WARNING {TIME} Reset", Level.WARN),
        (f"(Worker_TP0 pid=2) ERROR {TIME} it failed", Level.ERROR),
        (f"DEBUG {TIME} Waiting", Level.DEBUG),
        (RUST, Level.ERROR),
        ('INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK', Level.INFO),
        ('INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 503 Service Unavailable', Level.WARN),
        ('(APIServer pid=1) INFO:  x - "POST /v1/messages HTTP/1.1" 500 Internal', Level.ERROR),
        ("ERROR:    Exception in ASGI application", Level.ERROR),
        ("0.00.002.753 W srv  llama_server: security: no API key is set", Level.WARN),
        ("0.00.171.473 E llama_adapter_lora_init: failed to open '/nope.gguf'", Level.ERROR),
        ("12.59.171.473 I srv  llama_server: model loaded", Level.INFO),
        ("[41234] 0.00.171.473 E srv start: failed", Level.ERROR),
        ('{"type":"log","time":3158,"level":"warn","msg":"security\\n"}', Level.WARN),
        ('{"type":"fit_memory_breakdown","data":{}}', Level.INFO),
        ("[W1129 13:34:59.013202044 utils.cpp:68] Warning: NUMA binding", Level.WARN),
        ("[rank0]:[E1129 13:34:59.013202044 ProcessGroupNCCL.cpp:1] timeout", Level.ERROR),
        ("pod:12:34 [0] NCCL WARN Call to ibv_open_device failed", Level.WARN),
        ("2026-11-29 13:00:00,123 - WARNING - autotuner.py:1 - slow", Level.WARN),
        ("/srv/x.py:138: FutureWarning: deprecated", Level.WARN),
        ("nanobind: leaked 4 instances!", Level.WARN),
        ("vllm: error: unrecognized arguments: --disable-log-requests", Level.ERROR),
        ("error: invalid argument: --no-such-flag", Level.ERROR),
        ('error while handling argument "-np": stoi', Level.ERROR),
        ("OSError: [Errno 98] Address already in use", Level.ERROR),
        ("ggml/src/ggml.c:1644: GGML_ASSERT(ctx->mem_buffer != NULL) failed", Level.ERROR),
        ("Traceback (most recent call last):", Level.ERROR),
        ("Loading safetensors checkpoint shards: 100% Completed | 1/1", Level.INFO),
        ("an error: of ours? no: text with Error inside", Level.INFO),
        ("", Level.INFO),
    ],
)
def test_every_form_of_a_line_has_its_level(text: str, level: Level) -> None:
    assert read(text)[0].level is level


def test_a_traceback_is_one_block_up_to_what_was_raised() -> None:
    lines = read(*(DATA / "fail-port-in-use.log").read_text().rstrip("\n").split("\n"))
    begin = next(i for i, line in enumerate(lines) if line.text.startswith("Traceback"))
    assert not lines[begin].continues
    assert all(line.continues and line.level is Level.ERROR for line in lines[begin + 1 :])
    assert lines[-1].text == "OSError: [Errno 98] Address already in use"


def test_the_fields_of_a_refused_setting_belong_to_its_traceback() -> None:
    lines = read(*(DATA / "fail-bad-spec-method.log").read_text().rstrip("\n").split("\n"))
    below = [line for line in lines if line.text.startswith(("method", "  Input should be"))]
    assert len(below) == 2
    assert all(line.continues for line in below)


def test_tracebacks_of_two_processes_that_write_at_once_stay_apart() -> None:
    one, two = f"(EngineCore pid=1) ERROR {TIME} ", f"(APIServer pid=2) ERROR {TIME} "
    lines = read(
        one + "EngineCore failed to start.",
        one + "Traceback (most recent call last):",
        two + "AsyncLLM output_handler failed.",
        one + '  File "x.py", line 1',
        one + "ValueError: no",
        f"(EngineCore pid=1) INFO {TIME} after",
    )
    assert [line.continues for line in lines] == [False, True, False, True, True, False]


def test_an_exception_that_led_to_another_belongs_to_the_same_block() -> None:
    lines = read(
        "Traceback (most recent call last):",
        '  File "x.py", line 1, in <module>',
        "KeyError: 'a'",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        "ValueError: b",
        "Traceback (most recent call last):",
        "OSError: of another process",
    )
    assert [line.continues for line in lines] == [False, *[True] * 7, False, True]


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        (
            "fail-kv-too-small-bytes2.log",
            ["EngineCore failed to start", "died unexpectedly", "Traceback", "Traceback"],
        ),
        ("fail-unknown-flag.log", ["unrecognized arguments"]),
        ("llama-bad_flag.txt", ["invalid argument"]),
        ("llama-bad_oom_weights_ulimit.txt", ["insufficient", "GGML_ASSERT", "Fatal", "Fatal"]),
        ("startup-quiet-compiled.log", []),
        ("serve-0.27.1.log", []),
        ("llama-log_startup_np4.txt", []),
    ],
)
def test_the_errors_of_recorded_outputs(name: str, heads: list[str]) -> None:
    found = errors(name)
    assert len(found) == len(heads)
    for text, part in zip(found, heads, strict=True):
        assert part in text


@pytest.mark.parametrize(
    "name", ["startup-033rust.log", "serve-0.27.1.log", "llama-log_startup_np4.txt"]
)
def test_the_line_with_which_an_engine_is_ready_is_seen(name: str) -> None:
    reader = LevelReader()
    for text in (DATA / name).read_text().split("\n"):
        reader.read(text)
    assert reader.ready_seen


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m text", "red text"),
        ("loading  10%\rloading  90%", "loading  90%"),
        ("a\tb", "a   b"),
        ("bell\x07", "bell "),
        ("\x1b]52;c;c2VjcmV0\x07copied", "copied"),
        ("[bold]not markup[/bold]", "[bold]not markup[/bold]"),
    ],
)
def test_escape_sequences_are_taken_out(raw: str, shown: str) -> None:
    assert plain(raw) == shown


def test_a_line_without_measure_is_cut_and_says_so() -> None:
    assert plain("x" * 5000).endswith(f"… ({5000 - LONGEST_CHARS} characters more)")


def test_a_stamp_is_split_off_and_shortened() -> None:
    text = f"(APIServer pid=1) INFO {TIME} Resolved"
    assert split_stamp(text) == (f"(APIServer pid=1) INFO {TIME} ", "Resolved")
    assert split_stamp(text, short=True) == ("13:00:00 APIServer ", "Resolved")
    llama = "0.00.006.875 I srv    load_model: loading"
    assert split_stamp(llama, short=True)[1] == "srv    load_model: loading"


@given(st.text())
def test_no_line_can_move_the_cursor(raw: str) -> None:
    assert plain(raw).isprintable()


@given(
    st.lists(st.text(max_size=60) | st.sampled_from(["Traceback (most recent call last):", " "]))
)
def test_every_line_has_a_level_and_the_first_goes_on_from_none(texts: list[str]) -> None:
    for index, line in enumerate(read(*texts)):
        assert line.level in Level
        assert index or not line.continues
