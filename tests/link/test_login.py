"""What ssh asks for is asked at the terminal, and without one it is told."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from a40console.errors import Exit
from tests.link.far_service import FarService, far_service
from tests.link.sshd import Sshd, sshd
from tests.live.console import Console
from tests.live.terminal import Tmux

PASSPHRASE = "correct horse"


@pytest.fixture(scope="module")
def machine() -> Iterator[Sshd]:
    """A machine whose key has a passphrase, and whose host key nobody knows yet."""
    with sshd() as made:
        words = ["ssh-keygen", "-q", "-p", "-P", "", "-N", PASSPHRASE, "-f", f"{made.folder}/user"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        config = made.folder / "ssh_config"
        asks = config.read_text().replace("StrictHostKeyChecking yes", "StrictHostKeyChecking ask")
        config.write_text(asks)
        yield made


@pytest.fixture
def far() -> Iterator[FarService]:
    with far_service() as made:
        yield made


@pytest.fixture
def near(machine: Sshd) -> Iterator[Console]:
    (machine.folder / "known").write_text("")
    home = Path(tempfile.mkdtemp(prefix="a40nr-", dir="/tmp"))
    made = Console(home, **machine.variables)
    made.environment.pop("SSH_AUTH_SOCK", None)
    made.environment.pop("DISPLAY", None)
    try:
        yield made
    finally:
        made.run("links", "close", "pod")
        shutil.rmtree(home, ignore_errors=True)


def opened(near: Console, far: FarService) -> Tmux:
    call = f"{sys.executable} -m a40console --ssh pod --there {far.command} status"
    words = ["sh", "-c", f"trap : INT; {call}; echo its code is $?; sleep 60"]
    return Tmux(words, near.environment, folder=near.home)


def test_host_key_and_passphrase_are_asked_for_where_the_operator_sits(
    near: Console, far: FarService
) -> None:
    with opened(near, far) as terminal:
        terminal.wait_for("Are you sure you want to continue connecting")
        terminal.type("yes")
        terminal.press("Enter")
        terminal.wait_for("Enter passphrase for key")
        terminal.type(PASSPHRASE)
        terminal.press("Enter")
        screen = terminal.wait_for("its code is 0")
    assert PASSPHRASE not in screen
    assert far.called()[-1] == "status"
    assert "up since" in near.succeed("links")


def test_a_console_at_its_password_prompt_keeps_no_other_waiting(
    near: Console, far: FarService, machine: Sshd
) -> None:
    machine.trust_host()
    with opened(near, far) as first:
        first.wait_for("Enter passphrase for key")
        with opened(near, far) as second:
            second.wait_for("Enter passphrase for key")
            second.type(PASSPHRASE)
            second.press("Enter")
            second.wait_for("its code is 0")
        held = near.succeed("links")
        first.type(PASSPHRASE)
        first.press("Enter")
        first.wait_for("its code is 0")
    assert "up since" in held
    assert near.succeed("links") == held
    assert far.called().count("status") == 2
    assert masters(machine) == 1


@pytest.mark.parametrize("mend", ["links close", "the next opening"])
def test_a_console_that_is_killed_in_its_opening_leaves_no_login(
    near: Console, far: FarService, machine: Sshd, mend: str
) -> None:
    machine.trust_host()
    slow = near.home / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o700)
    console = [sys.executable, "-m", "a40console"]
    opening = [*console, "--ssh", "pod", "--there", str(slow), "status"]
    with Tmux(opening, near.environment, folder=near.home) as terminal:
        terminal.wait_for("Enter passphrase for key")
        terminal.type(PASSPHRASE)
        terminal.press("Enter")
        opener = next(p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == opening)
        folders = Path(tempfile.gettempdir())
        until(lambda: any(folders.glob(f"a40-ssh-*/ssh-{opener.pid:x}-*")))
        opener.kill()
        psutil.wait_procs([opener], 5)
    assert masters(machine) == 1
    if mend == "links close":
        near.succeed("links", "close", "pod")
        until(lambda: masters(machine) == 0)
    else:
        words = [*console, "--ssh", "pod", "--there", str(far.command), "status"]
        with Tmux(words, near.environment, folder=near.home) as terminal:
            terminal.wait_for("Enter passphrase for key")
            until(lambda: masters(machine) == 1)  # its own


def masters(machine: Sshd) -> int:
    """How many connections to it stand."""
    words = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
    return sum(f"{machine.folder}/ssh_config" in one and "-N" in one for one in words)


def test_ctrl_c_at_the_login_ends_it_and_leaves_nothing(near: Console, far: FarService) -> None:
    with opened(near, far) as terminal:
        terminal.wait_for("Are you sure you want to continue connecting")
        terminal.press("C-c")
        screen = terminal.wait_for("its code is 130")
    assert "Traceback" not in screen
    assert near.succeed("links").startswith("No links")


def test_where_nobody_can_be_asked_sshs_own_words_are_told(
    near: Console, far: FarService, machine: Sshd
) -> None:
    machine.trust_host()
    done = subprocess.run(
        [sys.executable, "-m", "a40console", "--ssh", "pod", "--there", str(far.command), "env"],
        env=near.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,  # no terminal at all
        timeout=60,
        check=False,
    )
    assert done.returncode == Exit.NO_SERVICE
    assert "ssh does not reach pod" in done.stderr
    assert "Permission denied" in done.stderr
    assert "Try it alone: ssh -F" in done.stderr


def until(condition: Callable[[], object], timeout_s: float = 20) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen in time"
        time.sleep(0.05)
