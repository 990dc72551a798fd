"""`engine logs` on recorded outputs: levels, patterns, the first error, and what lines mean."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.console import FaultConsole, fault_console
from tests.kept_output import keep_output

DATA = Path(__file__).parents[1] / "data" / "engine_logs"
STAMP = "(APIServer pid=7) {} 11-29 14:00:00 [x.py:1] "


def recorded(name: str) -> str:
    return (DATA / name).read_text(errors="replace")


@pytest.fixture(scope="module")
def console() -> Iterator[FaultConsole]:
    """A service beside the outputs of three starts."""
    with fault_console() as made:
        runs = made.paths
        keep_output(runs, "2026-11-29T10-00-00-port", recorded("fail-port-in-use.log"))
        llama = recorded("llama-bad_missing_file.txt")
        keep_output(runs, "2026-11-29T11-00-00-llama", llama, profile="smollm2-135m")
        served = recorded("startup-ngram.log")
        keep_output(runs, "2026-11-29T11-30-00-served", served, served=True)
        keep_output(runs, "2026-11-29T12-00-00-kv", recorded("fail-kv-too-small-bytes2.log"))
        made.serve("--no-engine")
        yield made


def logs(console: FaultConsole, *words: str) -> str:
    """What is printed; the outputs are full of tracebacks, which are none of ours."""
    done = subprocess.run(
        console.command("engine", "logs", *words),
        env=console.environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout


def document(console: FaultConsole, *words: str) -> Any:
    return json.loads(logs(console, *words, "--json"))


def test_the_newest_start_is_shown_though_no_engine_runs(console: FaultConsole) -> None:
    shown = document(console, "-n", "3")
    assert "12-00-00-kv" in shown["path"]
    assert shown["levels"] == ["error", "warn", "warn"]
    assert "Engine core initialization failed" in shown["lines"][0]


def test_only_lines_of_a_level_and_above(console: FaultConsole) -> None:
    warned = document(console, "--level", "warn", "-n", "1000")
    assert set(warned["levels"]) == {"warn", "error"}
    failed = document(console, "--level", "error", "-n", "1000")
    assert set(failed["levels"]) == {"error"}
    assert 100 < len(failed["lines"]) < len(warned["lines"])


def test_only_lines_that_match_in_any_case(console: FaultConsole) -> None:
    lines = logs(console, "--grep", "VALUEERROR: .*kv cache", "-n", "10").splitlines()
    assert len(lines) == 2, "as the core wrote it, and as its traceback repeats it"
    assert "0.18 GiB KV cache is needed" in lines[0]
    assert logs(console, "--grep", "zebra") == ""
    assert "no regular expression" in console.refused(2, "engine", "logs", "--grep", "(")


@pytest.mark.parametrize("more", [(), ("--first-error",), ("--follow",)])
def test_a_pattern_that_hangs_on_a_line_is_dropped(
    console: FaultConsole, more: tuple[str, ...]
) -> None:
    hostile = STAMP.format("ERROR") + "a" * 6000 + "!\n"
    start = f"2026-11-29T09-00-00-hostile{''.join(more)}"
    keep_output(console.paths, start, hostile)
    said = console.refused(2, "engine", "logs", "--start", start, "--grep", "(a+)+$", *more)
    assert "--grep takes too long and was dropped: (a+)+$" in said
    assert "characters took more than 0.25 s" in said
    assert "Repeat nothing that is itself repeated" in said


def test_the_first_error_with_its_traceback_and_what_it_means(console: FaultConsole) -> None:
    text = logs(console, "--first-error", "--explain")
    assert "EngineCore failed to start." in text.splitlines()[0]
    assert "the KV cache has 0.09 GiB, and one request of 8192 tokens needs 0.18" in text
    assert "max_model_len = 4096" in text
    assert "Worker proc VllmWorker-0 died" not in text, "that is another one"
    [known] = document(console, "--first-error", "--explain")["explained"]
    assert known["cause"].startswith("the KV cache has 0.09 GiB")
    assert not known["harmless"]
    assert len(known["lines"]) > 20


def test_consequences_and_harmless_warnings_are_told_from_causes(console: FaultConsole) -> None:
    known = document(console, "-n", "1000", "--explain", "--level", "warn")["explained"]
    causes = {entry["cause"]: entry["harmless"] for entry in known}
    assert causes["the CPU build has no use for Triton"] is True
    assert any("a consequence" in cause for cause in causes)


def test_another_start_is_named_by_its_id(console: FaultConsole) -> None:
    text = logs(console, "--start", "2026-11-29T10-00-00-port", "--first-error", "--explain")
    assert text.startswith("Traceback (most recent call last):")
    assert "its address is taken by another program" in text
    llama = logs(console, "--start", "2026-11-29T11-00-00-llama", "--first-error", "--explain")
    assert "/nope/x.gguf cannot be opened: No such file or directory" in llama
    assert "engine history" in console.refused(2, "engine", "logs", "--start", "../../etc")


def test_in_an_engine_that_has_served_a_clients_mistake_is_no_cause(console: FaultConsole) -> None:
    start = ("--start", "2026-11-29T11-30-00-served")
    known = document(console, *start, "-n", "1000", "--explain", "--level", "warn")["explained"]
    assert known
    assert not any("refused" in entry["cause"] and not entry["harmless"] for entry in known)


def test_an_output_without_an_error_says_so(console: FaultConsole) -> None:
    done = console.run("engine", "logs", "--first-error", "--grep", "zebra")
    assert done.returncode == 0
    assert done.stdout == ""
    assert "no such error" in done.stderr


def test_the_starts_that_engine_history_names_are_read_by_their_ids(console: FaultConsole) -> None:
    for _ in range(2):
        console.succeed("engine", "start", "fake")
        console.succeed("engine", "stop")
    listed = json.loads(console.succeed("engine", "history", "--json"))["starts"]
    newest, before = (start["id"] for start in listed[:2])
    assert newest > before
    told = console.succeed("engine", "history")
    assert told.index(newest) < told.index(before)
    assert newest in document(console)["path"]
    assert before in document(console, "--start", before)["path"]


def test_a_flood_is_followed_without_a_gap(console: FaultConsole) -> None:
    """More than one answer of the service holds, between two looks."""
    output = next(console.paths.engine_runs.glob("*-kv")) / "output.log"
    start = ("--start", output.parent.name)
    command = console.command("engine", "logs", *start, "-f", "-n", "99999", "--grep", "flood")
    with subprocess.Popen(command, env=console.environment, stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        number, lines = 0, list[str]()
        while len(lines) < 30_000:
            if number < 30_000:
                with output.open("a") as file:
                    file.writelines(
                        f"{STAMP.format('INFO')}flood {n}\n" for n in range(number, number + 10_000)
                    )
                number += 10_000
            part = (following.stdout.readline() for _ in range(10_000))
            lines += [line.decode().split()[-1] for line in part]
        following.send_signal(signal.SIGINT)
    assert lines == [str(n) for n in range(30_000)]
