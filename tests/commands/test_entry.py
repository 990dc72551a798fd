"""The entry of the command line: start-up, help, every way to end, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from a40console import __version__
from a40console.errors import Exit
from a40console.paths import Paths
from tests.commands.console_process import CONSOLE, Run, Service

COMMANDS = [
    *("serve", "stop", "status", "watch", "why", "wait", "ask"),
    *("events", "note", "history", "digest", "cost", "run", "runs", "sessions"),
    *("env", "profiles", "models", "engine", "doctor", "attach", "demo", "links", "endpoint"),
]
HEAVY = ("httpx", "pydantic", "textual", "starlette", "aiohttp", "uvicorn", "rich", "asyncio")


def error_of(run: subprocess.CompletedProcess[str]) -> dict[str, object]:
    document = json.loads(run.stdout)
    assert document.keys() == {"error"}
    assert document["error"].keys() == {"message", "evidence", "remedy", "exit_code"}
    assert document["error"]["exit_code"] == run.returncode
    error: dict[str, object] = document["error"]
    return error


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['a40console', '--help']\n"
        "from a40console.cli import main; code = main()\n"
        f"print(code, [name for name in {HEAVY} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("0 []\n")


def test_help_is_quick() -> None:
    def best_s(command: tuple[str, ...]) -> float:
        spent = []
        for _ in range(4):
            began = time.monotonic()
            subprocess.run(command, capture_output=True, check=True)
            spent.append(time.monotonic() - began)
        return min(spent)

    bare_s = best_s((sys.executable, "-c", "import click"))
    # 0.15 s on an idle machine; a busy one slows the interpreter alone as much.
    assert best_s((*CONSOLE, "--help")) < max(0.15, 3 * bare_s)


def test_help_lists_every_command_with_its_own_help(console: Run) -> None:
    listed = console("--help").stdout.partition("Commands:")[2].split("\n")
    names = [line.split()[0] for line in listed if line.startswith("  ") and line[2] != " "]
    assert names == COMMANDS
    for name in names:
        run = console(name, "--help")
        assert run.returncode == 0, run.stderr
        assert run.stdout.startswith(f"Usage: a40console {name} ")


def test_version(console: Run) -> None:
    assert console("--version").stdout == f"a40console {__version__}\n"


def test_an_unknown_command_is_a_usage_error_that_names_the_nearest(console: Run) -> None:
    run = console("stats")
    assert run.returncode == Exit.USAGE
    assert "status" in run.stderr
    assert not run.stdout


def test_usage_errors_are_json_for_who_asked_for_it(console: Run) -> None:
    run = console("status", "--json", "--nonsense")
    assert run.returncode == Exit.USAGE
    assert "nonsense" in str(error_of(run)["message"])


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("watch",),
        ("env",),
        ("engine", "stop"),
        ("engine", "restart"),
        ("engine", "speculation", "on"),
        ("engine", "clean"),
        ("engine", "logs"),
    ],
    ids=" ".join,
)
def test_without_a_service_commands_say_so(
    command: tuple[str, ...], console: Run, paths: Paths
) -> None:
    run = console(*command)
    assert run.returncode == Exit.NO_SERVICE
    message, evidence, remedy = run.stderr.splitlines()
    assert message == "No service answers"
    assert str(paths.control_socket) in evidence
    assert "a40console serve" in remedy
    assert not run.stdout
    as_json = console(*command, "--json")
    assert error_of(as_json)["message"] == "No service answers"
    assert not as_json.stderr
    assert not paths.state.exists(), "looking must not leave anything behind"


def test_there_is_nothing_to_stop_where_nothing_runs(console: Run, paths: Paths) -> None:
    run = console("stop")
    assert run.returncode == Exit.NO_SERVICE
    message, evidence = run.stderr.splitlines()
    assert message == "Nothing to stop: neither a service nor an engine runs"
    assert str(paths.control_socket) in evidence
    assert not run.stdout
    as_json = console("stop", "--json")
    assert error_of(as_json)["message"] == message
    assert not as_json.stderr
    assert not paths.state.exists(), "looking must not leave anything behind"


def test_without_a_terminal_the_console_points_to_commands(console: Run) -> None:
    run = console()
    assert run.returncode == Exit.USAGE
    assert "Not on one: standard input, standard output, standard error" in run.stderr
    assert "a40console status" in run.stderr


def test_serve_knows_its_profiles_before_it_starts(console: Run, paths: Paths) -> None:
    run = console("serve", "--profile", "smollm2")
    assert run.returncode == Exit.USAGE
    assert "smollm2-135m" in run.stderr
    assert not paths.service_lock.exists()


def test_bytes_that_are_no_text_are_refused(console: Run) -> None:
    run = console("ask", b"caf\xe9")
    assert run.returncode == Exit.USAGE
    assert run.stderr.startswith("Argument 2 is not valid UTF-8\n")
    assert error_of(console("engine", "start", b"\xff", "--json"))["exit_code"] == 2


def test_a_broken_settings_file_is_told_before_anything_starts(console: Run, paths: Paths) -> None:
    paths.config.mkdir(parents=True)
    paths.config_file.write_text("[gateway]\nprot = 1\n")
    for command in (("ask", "x"), ("serve",)):
        run = console(*command)
        assert run.returncode == Exit.USAGE
        assert "gateway.prot" in run.stderr
        assert "Traceback" not in run.stderr
    paths.config_file.write_text("gateway = [")
    assert "not valid TOML" in console("ask", "x").stderr
    assert not paths.service_lock.exists()


def test_a_read_only_home_is_named(console: Run, paths: Paths) -> None:
    mount = f"mount -t tmpfs -o ro none {paths.home} && exec "
    command = ("unshare", "-m", "sh", "-c", mount + '"$@"', "sh", *CONSOLE)
    for arguments in (("ask", "x"), ("engine", "start"), ("serve", "--no-engine")):
        run = console(*arguments, command=command)
        assert run.returncode == Exit.REFUSED, run.stderr
        assert "Read-only file system" in run.stderr
        assert "A40CONSOLE_HOME" in run.stderr
        assert "Traceback" not in run.stderr
    assert console("status", command=command).returncode == Exit.NO_SERVICE


def test_a_full_home_is_named(console: Run, paths: Paths) -> None:
    fill = (
        f"mount -t tmpfs -o size=16k,nr_inodes=2 none {paths.home} && mkdir {paths.state} && exec "
    )
    command = ("unshare", "-m", "sh", "-c", fill + '"$@"', "sh", *CONSOLE)
    run = console("ask", "x", command=command)
    assert run.returncode == Exit.REFUSED, run.stderr
    assert "No space left on device" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_full_disk_behind_the_output(environment: dict[str, str], service: Service) -> None:
    service(state="serving")
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [*CONSOLE, "status"], env=environment, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert run.returncode == Exit.REFUSED
    assert run.stderr.count(b"\n") <= 2
    assert b"No space left" in run.stderr


def test_a_reader_that_goes_away_ends_it_quietly(
    environment: dict[str, str], service: Service
) -> None:
    service(state="serving", interval_s=0.02)
    shell = f"{' '.join(CONSOLE)} watch --json | head -1; echo ${{PIPESTATUS[0]}}"
    run = subprocess.run(
        ["bash", "-c", shell], env=environment, capture_output=True, text=True, timeout=30
    )
    line, code = run.stdout.splitlines()
    assert json.loads(line)["engine"]["state"] == "serving"
    assert code == "141"
    assert not run.stderr


PRINTING = [
    *("status", "status --json", "status --line", "watch", "events --follow"),
    *("history --csv", "note hello", "profiles list", "--help", "--plain"),
]


@pytest.mark.parametrize(
    ("to", "why"), [(">&-", "it is closed"), (">/dev/full", "No space left on device")]
)
def test_output_that_cannot_be_written_ends_every_command_with_a_sentence(
    to: str, why: str, environment: dict[str, str], service: Service
) -> None:
    service(state="serving", interval_s=0.05)
    for command in PRINTING:
        run = subprocess.run(
            ["bash", "-c", f"exec {' '.join(CONSOLE)} {command} {to}"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
        )
        assert run.returncode == Exit.REFUSED, (command, run.stderr)
        assert f"Standard output cannot be written: {why}\n" in run.stderr, command
        assert "Send it elsewhere" in run.stderr
        assert "A40CONSOLE_HOME" not in run.stderr, "the home is not what is full"
        assert "Traceback" not in run.stderr


def test_full_output_that_does_not_wait_ends_a_command_with_a_sentence(
    environment: dict[str, str],
) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while os.write(writer, b"." * 4096):
            pass
    for command in ("--help", "--version", "profiles list", "profiles list --json"):
        run = subprocess.run(
            [*CONSOLE, *command.split()],
            env=environment,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
        )
        assert run.returncode == Exit.REFUSED, (command, run.stderr)
        assert "Standard output cannot be written: it is full, and set not to wait" in run.stderr
        assert len(run.stderr.splitlines()) == 2
    os.close(reader)
    os.close(writer)


HOMES = ("A40CONSOLE_HOME", "HOME", "XDG_STATE_HOME", "TMPDIR")


@pytest.mark.parametrize("variable", HOMES)
def test_a_home_whose_name_is_no_text_is_refused_by_every_command(
    variable: str, environment: dict[str, str], tmp_path: Path
) -> None:
    named = os.fsencode(tmp_path) + b"/caf\xe9"
    Path(os.fsdecode(named)).mkdir()
    kept = {name: value for name, value in environment.items() if name not in HOMES}
    if variable == "TMPDIR":
        kept["A40CONSOLE_HOME"] = str(tmp_path)
    for command in ("status", "serve --no-engine", "models list", "stop", "ask x"):
        run = subprocess.run(
            [*CONSOLE, *command.split()],
            env={os.fsencode(name): os.fsencode(value) for name, value in kept.items()}
            | {variable.encode(): named},
            capture_output=True,
            timeout=30,
        )
        assert run.returncode == Exit.USAGE, run.stderr
        assert b"is not valid UTF-8" in run.stderr
        assert b"caf\\xe9" in run.stderr
        assert b"Traceback" not in run.stderr


@pytest.mark.parametrize("to", ["2>&-", "2>/dev/full"])
def test_notes_that_cannot_be_written_end_nothing(
    to: str, environment: dict[str, str], service: Service
) -> None:
    service(state="serving")
    shell = f"{' '.join(CONSOLE)} status --line {to}; {' '.join(CONSOLE)} nonsense {to} || echo $?"
    run = subprocess.run(
        ["bash", "-c", shell], env=environment, capture_output=True, text=True, timeout=30
    )
    line, code = run.stdout.splitlines()
    assert line.startswith("SERVING") or "SERVING" in line
    assert code == str(int(Exit.USAGE))


@pytest.mark.parametrize("closed", ["2>&-", "<&-"])
def test_closed_standard_streams_do_not_matter(
    closed: str, environment: dict[str, str], service: Service
) -> None:
    service(state="serving")
    run = subprocess.run(
        ["bash", "-c", f"{' '.join(CONSOLE)} status {closed}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_ctrl_c_is_quiet(environment: dict[str, str], service: Service) -> None:
    service(state="serving")
    process = subprocess.Popen(
        [*CONSOLE, "watch"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert (process.returncode, stderr) == (130, b"")


def test_output_that_cannot_be_encoded_is_replaced(
    environment: dict[str, str], service: Service
) -> None:
    service(state="serving")
    run = subprocess.run(
        [*CONSOLE, "status", "--line"],
        env={**environment, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
        capture_output=True,
        timeout=30,
    )
    assert run.returncode == 0
    assert run.stdout.startswith(b"SERVING")


BUG = (
    "import sys; from a40console import cli; from a40console.commands import status\n"
    "def broken(*args): raise KeyError('secret')\n"
    "status.one_line = broken\n"
    "sys.argv = ['a40console', 'status', '--line']; sys.exit(cli.main())"
)


def test_a_bug_of_ours_is_one_line_and_a_file(
    environment: dict[str, str], service: Service, paths: Paths
) -> None:
    service(state="serving")
    run = subprocess.run(
        [sys.executable, "-c", BUG], env=environment, capture_output=True, text=True, timeout=30
    )
    assert run.returncode == Exit.BUG
    message, where, trace = run.stderr.splitlines()
    assert message.startswith(f"a40console {__version__} met a bug of its own: KeyError")
    assert where.startswith("at ")
    path = Path(trace.removeprefix("The trace is in "))
    assert path.parent == paths.state
    assert "Traceback" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_trace_finds_a_place_where_the_home_cannot_be_used(
    environment: dict[str, str], tmp_path: Path
) -> None:
    code = BUG.replace("status.one_line = broken", "cli.console.make_context = broken")
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "TMPDIR": str(tmp_path), "A40CONSOLE_HOME": "/dev/null/home"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert run.returncode == Exit.BUG
    assert str(tmp_path) in run.stderr.splitlines()[-1]


def test_a_home_of_nobody_is_a_usage_error(console: Run, environment: dict[str, str]) -> None:
    run = console("status", environment={**environment, "A40CONSOLE_HOME": "~nobody-here/x"})
    assert run.returncode == Exit.USAGE
    assert "A40CONSOLE_HOME" in run.stderr


def test_python_dash_m_and_the_script_are_the_same(environment: dict[str, str]) -> None:
    script = Path(sys.executable).with_name("a40console")
    if not script.exists():
        pytest.skip("not installed as a script")
    run = subprocess.run([script, "--version"], env=os.environ, capture_output=True, text=True)
    assert run.stdout == f"a40console {__version__}\n"
