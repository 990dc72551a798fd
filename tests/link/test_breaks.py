"""What can go wrong with a link, through a real ssh and a real sshd."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from a40console.errors import ConsoleError, NoServiceError, RefusedError
from a40console.link.connection import Connection
from a40console.link.opening import Link, close_link, open_link
from a40console.link.place import LinkPlace, LinkRecord
from a40console.link.target import parse_target
from a40console.model.snapshot import PROTOCOL_VERSION
from a40console.paths import Paths, locate
from tests.link.far_service import FarService, far_service
from tests.link.sshd import Sshd, sshd

# The holder outlives whoever started it.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


@dataclass
class Near:
    """The operator's machine, without a console of its own."""

    far: FarService
    paths: Paths
    environment: dict[str, str]
    opened: list[str] = field(default_factory=lambda: ["pod"])

    def open(self, target: str = "pod", *, needs_service: bool = True) -> Link:
        self.opened.append(target)
        return open_link(
            self.paths,
            parse_target(target),
            console=(str(self.far.command),),
            environment=self.environment,
            may_start=(lambda question: False) if needs_service else None,
        )

    def place(self, target: str = "pod") -> LinkPlace:
        return LinkPlace(self.paths, parse_target(target))

    def record(self, target: str = "pod") -> LinkRecord:
        found = self.place(target).record()
        assert found is not None
        return found

    def gateway(self, target: str = "pod") -> str:
        """Who answers at the gateway's port of this machine."""
        try:
            url = f"http://127.0.0.1:{self.record(target).gateway_port}/"
            name: str = httpx.get(url, timeout=2).json()["gateway"]
        except httpx.HTTPError:
            return ""
        return name

    def holder(self) -> psutil.Process:
        pid = self.place().holder_pid()
        assert pid is not None
        return psutil.Process(pid)

    def masters(self) -> list[psutil.Process]:
        """Every ssh of ours that holds a connection."""
        ours = str(self.place().folder)
        return [found for found in _processes("ssh") if f"{ours}/ssh" in " ".join(_words(found))]


@pytest.fixture(scope="module")
def machine() -> Iterator[Sshd]:
    with sshd() as made:
        yield made


@pytest.fixture
def near(machine: Sshd) -> Iterator[Near]:
    machine.mend()
    home = Path(tempfile.mkdtemp(prefix="a40 nr-", dir="/tmp"))
    environment = {**os.environ, **machine.variables, "A40CONSOLE_HOME": str(home)}
    with far_service() as far:
        made = Near(far, locate({"A40CONSOLE_HOME": str(home)}), environment)
        try:
            yield made
        finally:
            machine.mend()
            for target in set(made.opened):
                close_link(made.place(target), environment)
            shutil.rmtree(home, ignore_errors=True)
    until(lambda: made.masters() == [])


def test_what_a_login_shell_says_before_is_not_the_answer(near: Near) -> None:
    near.far.greet('Welcome to the pod!\n{"motd": no json}\n{"version": 1}\n')
    near.open()
    assert near.gateway() == "first"


def test_a_gateway_that_moves_is_followed_while_the_link_stands(near: Near) -> None:
    near.open()
    before = near.record()
    near.far.move_gateway("second")
    until(lambda: near.gateway() == "second")
    after = near.record()
    assert (after.gateway_port, after.drops) == (before.gateway_port, 0)
    assert after.gateway_there == near.far.gateway
    near.far.move_gateway("third")
    near.open()  # the next console finds it at once
    assert near.gateway() == "third"


def test_a_port_taken_while_the_link_was_down_is_replaced_and_told(
    near: Near, machine: Sshd
) -> None:
    near.open()
    port = near.record().gateway_port
    machine.cut()
    until(lambda: near.record().state == "down")
    with socket.create_server(("127.0.0.1", port)):
        machine.mend()
        until(lambda: near.record().state == "up")
        after = near.record()
        assert after.gateway_port != port
        assert f"port {port} of this machine was taken" in after.reason
        assert near.gateway() == "first"


def test_killed_masters_are_replaced_though_clients_were_connected(near: Near) -> None:
    near.open()
    port = near.record().gateway_port
    for drops in (1, 2):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert client.recv(10)
            near.masters()[0].kill()
            until(partial(_is_up, near, drops))
        assert near.record().gateway_port == port
        assert near.gateway() == "first"


def test_a_killed_holder_leaves_a_link_that_is_taken_over_or_closed(near: Near) -> None:
    near.open()
    port, master = near.record().gateway_port, near.masters()[0].pid
    near.holder().kill()
    until(lambda: not near.place().is_held())
    near.open()
    assert near.masters()[0].pid == master  # without another login
    assert near.record().gateway_port == port
    assert near.gateway() == "first"
    near.holder().kill()
    until(lambda: not near.place().is_held())
    assert close_link(near.place(), near.environment) is True
    until(lambda: near.masters() == [])
    assert not near.place().folder.exists()


def test_two_consoles_that_open_at_once_share_one_link(near: Near) -> None:
    failures: list[ConsoleError] = []

    def opens() -> None:
        try:
            near.open()
        except ConsoleError as error:
            failures.append(error)

    both = [threading.Thread(target=opens) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(60)
    assert failures == []
    assert len(near.masters()) == 1
    assert near.gateway() == "first"


def test_a_machine_that_sleeps_is_found_again(near: Near, machine: Sshd) -> None:
    near.open()
    with machine.asleep():
        until(lambda: near.record().state == "up" and near.record().drops == 1, 30)
    assert near.gateway() == "first"


def test_cleaned_temporary_folders_cost_nothing(near: Near) -> None:
    near.open()
    near.place().control.unlink()
    near.open()
    assert near.place().control.is_socket()
    near.place().master.unlink()
    assert close_link(near.place(), near.environment) is True
    until(lambda: near.masters() == [])


def test_what_the_operators_configuration_says_of_the_host_does_not_get_in_the_way(
    near: Near, machine: Sshd
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        machine.also(
            f"Host busy {'x' * 180}\n"
            f"  LocalForward {taken.getsockname()[1]} 127.0.0.1:9\n"
            "  ExitOnForwardFailure yes\n"
            "  ControlMaster auto\n  ControlPath {folder}/own-%C\n  ControlPersist 60\n"
            "  RemoteCommand echo no; false\n  RequestTTY force\n"
            "  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentityFile {folder}/user\n"
            "  UserKnownHostsFile {folder}/known\n"
            "Host jumped\n"
            "  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentityFile {folder}/user\n"
            "  UserKnownHostsFile {folder}/known\n  ProxyJump pod\n"
        )
        for target in ("busy", "x" * 180, "jumped"):
            near.open(target)
            assert near.gateway(target) == "first"
    assert list(machine.folder.glob("own-*")) == []


def test_another_protocol_is_told_and_commands_run_all_the_same(near: Near) -> None:
    near.far.say(version="9.9.9", protocol=PROTOCOL_VERSION + 1)
    with pytest.raises(RefusedError) as caught:
        near.open()
    assert "pod is version 9.9.9 and speaks another protocol" in caught.value.message
    until(lambda: near.masters() == [])
    near.open(needs_service=False)
    assert near.record().state == "up"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"running": None, "gateway": 7}, "No service runs on pod"),
        ({"version": None, "protocol": "x"}, "another form than this version reads"),
        ({"error": {"message": "the home is gone", "exit_code": 5}}, "On pod: the home is gone"),
    ],
)
def test_odd_answers_are_told_and_leave_nothing(
    near: Near, answer: dict[str, Any], said: str
) -> None:
    near.far.say(**answer)
    with pytest.raises(ConsoleError, match=said):
        near.open()
    until(lambda: near.masters() == [])
    assert not near.place().is_held()


def test_a_record_that_cannot_be_written_is_told_and_leaves_nothing(near: Near) -> None:
    near.place().record_file.mkdir(parents=True)  # as good as a full disk
    with pytest.raises(OSError, match=near.place().record_file.name):
        near.open()
    until(lambda: near.masters() == [])
    near.place().record_file.rmdir()


def test_a_changed_host_key_is_told_and_waits_for_the_operator(near: Near, machine: Sshd) -> None:
    near.open()
    known = machine.folder / "known"
    host = " ".join((machine.folder / "user.pub").read_text().split()[:2])
    known.write_text(f"[127.0.0.1]:{machine.port} {host}\npod {host}\n")
    try:
        near.masters()[0].kill()
        until(lambda: near.record().state == "refused")
        assert "Host key verification failed" in near.record().reason
        until(lambda: not near.place().is_held())
        with pytest.raises(NoServiceError) as caught:
            near.open()
        assert "Host key verification failed" in caught.value.evidence
    finally:
        machine.trust_host()
    near.open()
    assert near.gateway() == "first"


def test_a_holder_that_is_ended_while_it_connects_leaves_no_ssh(near: Near, machine: Sshd) -> None:
    near.open()
    with machine.asleep():
        near.masters()[0].kill()
        until(lambda: near.record().state == "down")
        os.kill(near.holder().pid, signal.SIGTERM)
        until(lambda: not near.place().is_held())
    assert near.record().state == "ended"
    until(lambda: near.masters() == [])


def test_no_word_of_the_link_holds_a_secret(near: Near) -> None:
    """What is called and written names sockets and ports; the token goes through the socket."""
    link = near.open()
    words = [_words(near.holder()), *map(_words, near.masters()), link.there(["a"], terminal=False)]
    assert all("TOKEN" not in " ".join(call).upper() for call in words)
    assert near.place().record_file.stat().st_mode & 0o077 == 0
    assert near.place().record_file.parent.stat().st_mode & 0o077 == 0
    assert near.place().folder.stat().st_mode & 0o077 == 0


def test_a_master_that_does_not_answer_is_no_master(near: Near) -> None:
    link = near.open()
    connection = Connection(link.ssh, link.place, link.console)
    assert connection.master_pid() is not None
    connection.end()
    until(lambda: near.record().drops == 1 and near.record().state == "up")


def _is_up(near: Near, drops: int) -> bool:
    record = near.record()
    return (record.state, record.drops) == ("up", drops)


def _processes(name: str) -> list[psutil.Process]:
    return [
        found
        for found in psutil.process_iter(["name", "status"])
        if found.info["name"] == name and found.info["status"] != psutil.STATUS_ZOMBIE
    ]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def until(condition: Callable[[], Any], timeout_s: float = 20) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen in time"
        time.sleep(0.1)


def test_the_turn_is_free_while_the_operator_is_asked(near: Near) -> None:
    near.open()
    near.far.say(running=False)
    asked = []

    def may_start(question: str) -> bool:
        with near.place().being_made():  # as the holder does
            asked.append(question)
        return False

    with pytest.raises(NoServiceError):
        open_link(
            near.paths,
            parse_target("pod"),
            console=(str(near.far.command),),
            environment=near.environment,
            may_start=may_start,
        )
    assert asked == ["No service runs on pod. Start it there?"]
