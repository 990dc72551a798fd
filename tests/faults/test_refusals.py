"""What cannot be done: the message, what to do about it, the exit code; and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from a40console.engines.ports import who_holds
from tests.faults.console import FaultConsole, Watch, alive, fault_console, finding, kill
from tests.faults.namespaces import MountNamespace, mount_namespace

pytestmark = pytest.mark.slow


# --- Names that do not exist, files that are broken ------------------------------------------


def test_an_unknown_profile_is_named_with_its_nearest(serving: FaultConsole) -> None:
    before = serving.status()["engine"]
    for words in (("engine", "start", "fakw"), ("engine", "switch", "fakw")):
        said = serving.refused(2, *words)
        assert "there is no profile 'fakw'" in said
        assert "Nearest: fake" in said
    as_json = serving.run("engine", "switch", "fakw", "--json")
    error = json.loads(as_json.stdout)["error"]
    assert (as_json.returncode, error["exit_code"]) == (2, 2)
    assert "fake" in error["remedy"]
    after = serving.status()["engine"]
    assert (after["state"], after["pid"]) == ("serving", before["pid"])
    assert "wave" in serving.ask()


def test_a_service_for_an_unknown_profile_does_not_begin(console: FaultConsole) -> None:
    said = console.refused(2, "serve", "--profile", "fakw")
    assert "there is no profile 'fakw'" in said
    assert "Nearest: fake" in said
    console.refused(3, "status")


def test_an_unknown_profile_in_the_settings_is_in_the_journal(console: FaultConsole) -> None:
    settings = console.paths.config_file
    settings.write_text(f"profile = 'fakw'\n{settings.read_text()}")
    console.serve()
    console.wait_for(lambda: "engine.failed" in console.event_kinds(), 10)
    event = console.events()[-1]
    assert "there is no profile 'fakw'" in event["text"]
    assert "Nearest: fake" in event["data"]["remedy"]
    engine = console.status()["engine"]
    assert engine["state"] == "failed"
    assert "there is no profile 'fakw'" in engine["exit"]["cause"]
    console.succeed("engine", "start", "fake")


def test_a_profile_that_is_no_toml_hides_no_other(serving: FaultConsole) -> None:
    broken = serving.paths.profiles / "broken.toml"
    broken.write_text('kind = "vllm\nmodel = 3\n')
    said = serving.refused(2, "engine", "switch", "broken")
    assert str(broken) in said
    assert "not valid TOML" in said
    assert "line 1" in said
    broken.write_text('kind = "vllm"\nmodel = "m"\nmax_model_length = 3\n')
    said = serving.refused(2, "engine", "switch", "broken")
    assert "max_model_length is not a setting; did you mean max_model_len?" in said
    serving.succeed("profiles", "show", "fake")
    broken.unlink()


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("[gateway\nport = 1\n", "line 1"),
        ("[gateway]\nprot = 1\n", "gateway.prot"),
        ("[service]\ninterval_s = 'often'\n", "service.interval_s"),
        ("[gateway]\nport = 1\n\udcff", "utf-8"),
    ],
)
def test_broken_settings_are_refused_by_name(
    console: FaultConsole, text: str, evidence: str
) -> None:
    console.paths.config_file.write_bytes(text.encode(errors="surrogateescape"))
    for words in (("serve",), ("engine", "start", "fake"), ("ask", "hello")):
        said = console.refused(2, *words)
        assert str(console.paths.config_file) in said
        assert evidence in said
    said = console.refused(3, "status")
    assert "a40console serve" in said


def test_settings_that_break_later_cost_nothing_that_runs(console: FaultConsole) -> None:
    console.serve("--profile", "fake")
    engine = console.until_state("serving")["engine"]
    console.paths.config_file.write_text("[gateway\n")
    worker = console.status()["service"]["pid"]
    kill(worker)
    console.wait_for(lambda: console.run("status", "--check").returncode == 0, 15)
    after = console.status()
    assert after["service"]["pid"] != worker
    assert after["engine"]["pid"] == engine["pid"]
    assert "wave" in console.ask()
    console.settings()


# --- Addresses that are taken ----------------------------------------------------------------


def test_a_gateway_port_that_is_taken_is_refused_with_its_holder(console: FaultConsole) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        said = console.refused(5, "serve", "--port", str(port))
        assert f"127.0.0.1:{port}" in said
        assert f"(pid {os.getpid()})" in said
        assert "a40console serve --port N" in said
        # Other commands start the service by themselves: the same words, the same code.
        console.configure(f"[gateway]\nport = {port}\n")
        said = console.refused(5, "engine", "start", "fake")
        assert f"(pid {os.getpid()})" in said
        assert "a40console serve --port N" in said
    console.refused(3, "status")
    console.settings()
    console.succeed("engine", "start", "fake")


def test_a_gateway_comes_back_on_a_port_with_closed_connections(console: FaultConsole) -> None:
    console.serve("--no-engine")
    with socket.create_connection(("127.0.0.1", gateway_port(console))) as client:
        port = gateway_port(console)
        console.succeed("stop")  # the gateway closes first, so the kernel remembers its side
        assert client.recv(1) == b""
    holder = who_holds(port)
    assert holder is not None
    assert holder.use == "time_wait"
    console.serve("--no-engine", "--port", str(port))
    assert gateway_port(console) == port


def gateway_port(console: FaultConsole) -> int:
    return int(console.gateway.rpartition(":")[2])


def test_an_address_that_is_not_ours_is_refused(console: FaultConsole) -> None:
    said = console.refused(5, "serve", "--host", "192.0.2.1")
    assert "cannot listen on 192.0.2.1" in said


def test_a_second_service_is_refused_and_harms_nothing(serving: FaultConsole) -> None:
    before = serving.status()
    said = serving.refused(5, "serve", "--port", "0")
    assert "A service already runs for this home" in said
    assert serving.service is not None
    assert f"process {serving.service.pid}" in said
    assert "a40console stop" in said
    after = serving.status()
    assert after["service"]["pid"] == before["service"]["pid"]
    assert after["engine"]["pid"] == before["engine"]["pid"]
    assert "wave" in serving.ask()


def test_a_stale_control_socket_is_no_obstacle(console: FaultConsole) -> None:
    """The service was killed, and its socket file stayed."""
    console.serve("--profile", "fake")
    before = console.until_state("serving")
    assert console.service is not None
    console.service.send_signal(signal.SIGKILL)
    console.service.wait(20)
    console.service = None
    kill(before["service"]["pid"])
    console.wait_for(lambda: not alive(before["service"]["pid"]), 10)
    assert stat.S_ISSOCK(console.paths.control_socket.stat().st_mode)
    said = console.refused(3, "status")
    assert "No service answers" in said
    assert "a40console serve" in said
    assert alive(before["engine"]["pid"])
    # Taken over even by a service that is to start nothing.
    console.serve("--no-engine")
    after = console.until_state("serving")
    assert after["engine"]["pid"] == before["engine"]["pid"]
    assert "wave" in console.ask()


def test_something_else_in_the_place_of_the_control_socket(console: FaultConsole) -> None:
    place = console.paths.control_socket
    place.mkdir(parents=True)
    (place / "kept").touch()
    said = console.refused(5, "serve")
    assert f"The control socket {place} cannot be made" in said
    assert (place / "kept").exists()
    (place / "kept").unlink()
    place.rmdir()
    place.write_text("nothing listens behind a file")
    console.serve("--no-engine")


def test_a_runtime_folder_of_somebody_else_is_refused(console: FaultConsole) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    console.paths.runtime.mkdir()
    os.chown(console.paths.runtime, 12345, 12345)
    said = console.refused(5, "serve")
    assert f"{console.paths.runtime} belongs to somebody else" in said
    assert "A40CONSOLE_HOME" in said
    os.chown(console.paths.runtime, 0, 0)
    console.serve("--no-engine")


def test_a_service_whose_socket_was_swept_away_can_be_stopped(console: FaultConsole) -> None:
    """A cleaner of temporary files removed the socket under a running service."""
    console.serve("--profile", "fake")
    engine = console.until_state("serving")["engine"]["pid"]
    console.paths.control_socket.unlink()
    console.refused(3, "status")
    said = console.refused(5, "serve")
    assert "A service already runs for this home" in said
    console.succeed("stop")
    assert alive(engine)
    console.serve()
    assert console.until_state("serving")["engine"]["pid"] == engine


# --- Disks -----------------------------------------------------------------------------------


@dataclass
class Disk:
    """A console whose home is a small disk of its own."""

    console: FaultConsole
    space: MountNamespace

    def file(self, path: Path) -> Path:
        return self.space.inside(path)

    def fill(self) -> None:
        self.space.run("sh", "-c", f"cat /dev/zero > {self.console.home}/filler || true")

    def free(self) -> None:
        self.space.run("rm", f"{self.console.home}/filler")

    def remount(self, how: str) -> None:
        self.space.run("mount", "-o", f"remount,{how}", str(self.console.home))


@pytest.fixture
def disk() -> Iterator[Disk]:
    with mount_namespace() as space, fault_console(space.prefix) as console:
        home = str(console.home)
        space.run("sh", "-c", f"cp -a {home} {home}-copy")
        space.run("mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", home)
        space.run("sh", "-c", f"cp -a {home}-copy/. {home} && rm -r {home}-copy")
        yield Disk(console, space)


def test_a_start_on_a_full_disk_says_so(disk: Disk) -> None:
    disk.fill()
    console = disk.console
    said = console.refused(5, "engine", "start", "fake")
    assert "No space left on device" in said
    assert "Free space there, or set A40CONSOLE_HOME to another disk." in said
    # The service itself runs without a byte of its own.
    snapshot = console.status()
    assert snapshot["service"]["read_only"] is True
    assert snapshot["engine"]["state"] in ("absent", "failed")
    disk.free()
    console.succeed("engine", "start", "fake")
    assert "wave" in console.ask()


def test_a_disk_that_fills_up_stops_nothing_and_loses_nothing(disk: Disk) -> None:
    console = disk.console
    console.succeed("engine", "start", "fake")
    before = console.status()["engine"]["pid"]
    disk.fill()
    assert "wave" in console.ask()
    said = console.refused(5, "engine", "restart")
    assert "No space left on device" in said
    # What happens meanwhile is kept, and written once there is room.
    for _ in range(2):  # more than is left of the journal's last page
        console.refused(2, "engine", "start", "x" * 4000)
    snapshot = console.until(lambda s: s["service"]["read_only"], 10)
    assert snapshot["engine"]["state"] == "serving", "not stopped for a start that cannot be"
    assert snapshot["engine"]["pid"] == before
    assert "wave" in console.ask()
    disk.free()
    console.until(lambda s: not s["service"]["read_only"], 10)
    console.succeed("engine", "restart")
    lines = disk.file(console.paths.events).read_text().splitlines()
    events = [json.loads(line) for line in lines]
    ids = [event["id"] for event in events]
    assert ids == list(range(1, len(ids) + 1))
    assert any("No space left" in str(event["data"]) for event in events)
    assert len([event for event in events if "xxx" in event["text"]]) == 2


def test_an_engine_that_dies_on_a_full_disk_is_not_lost(disk: Disk) -> None:
    console = disk.console
    console.settings(restart_engine="false")
    console.succeed("engine", "start", "fake")
    engine = console.status()["engine"]["pid"]
    disk.fill()
    kill(engine)
    snapshot = console.until_state("orphaned")
    assert finding(snapshot, "engine-orphaned") is not None
    assert "no process is left" in console.succeed("engine", "clean")
    disk.free()
    console.succeed("engine", "start", "fake")


def test_a_read_only_home_starts_nothing(disk: Disk) -> None:
    disk.remount("ro")
    console = disk.console
    for words in (("serve",), ("engine", "start", "fake"), ("ask", "hello")):
        said = console.refused(5, *words)
        assert "Read-only file system" in said
        assert "A40CONSOLE_HOME" in said
    console.refused(3, "status")
    console.succeed("profiles", "list")
    disk.remount("rw")
    console.succeed("engine", "start", "fake")


def test_a_home_that_becomes_read_only_stops_nothing(disk: Disk) -> None:
    console = disk.console
    console.succeed("engine", "start", "fake")
    engine = console.status()["engine"]["pid"]
    # The engine's output and the journal are open: the kernel refuses to remount a busy disk,
    # but a lazy one over it shows the same to every new file.
    disk.space.run("mount", "--bind", str(console.home), str(console.home))
    disk.space.run("mount", "-o", "remount,bind,ro", str(console.home))
    assert "wave" in console.ask()
    said = console.refused(5, "engine", "restart")
    assert "Read-only file system" in said
    snapshot = console.until(lambda s: s["service"]["read_only"], 10)
    assert snapshot["engine"]["state"] == "serving"
    assert snapshot["engine"]["pid"] == engine
    assert "wave" in console.ask()
    with Watch(console) as watch:
        pass
    assert all(s["engine"]["state"] == "serving" for s in watch.snapshots)
    disk.space.run("umount", str(console.home))
    console.succeed("engine", "restart")
    assert console.status()["service"]["read_only"] is False
