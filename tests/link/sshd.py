"""A real sshd on loopback, with keys and a home of its own, and a client's configuration for it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

RELAY = Path(__file__).with_name("relay.py")
SERVER = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv A40CONSOLE_HOME={far}
"""
CLIENT = """
Host pod
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/user
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  StrictHostKeyChecking yes
  ServerAliveInterval 1
  ProxyCommand {proxy}
"""


class Sshd:
    """The other machine: it has a home of its own, and a link that can be cut."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.far_home = folder / "far"
        self.log = folder / "sshd.log"
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        for name in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)],
                check=True,
            )
        proxy = shlex.join([sys.executable, str(RELAY), "%h", "%p", str(folder)])
        user = os.environ.get("USER") or "root"
        self._write("sshd_config", SERVER)
        self._write("ssh_config", CLIENT, proxy=proxy, user=user)
        self.trust_host()
        config = self.far_home / "config" / "config.toml"
        config.parent.mkdir(parents=True)
        # Open: so it demands its token, which is then a secret.
        config.write_text('[gateway]\nport = 0\nhost = "0.0.0.0"\n[service]\ninterval_s = 0.3\n')

    @property
    def variables(self) -> dict[str, str]:
        """What the console here must know to get there; a dead link is given up after 3 s."""
        ssh = f"ssh -F {self.folder}/ssh_config -o ServerAliveInterval=1"
        return {"A40CONSOLE_SSH": ssh}

    def also(self, entry: str) -> None:
        """Add to the client's configuration, before what stands there."""
        config = self.folder / "ssh_config"
        config.write_text(entry.format(port=self.port, folder=self.folder) + config.read_text())

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """Inside the block nothing passes, and nobody is told."""
        relays = [
            process
            for process in psutil.process_iter()
            if str(RELAY) in (words := _words(process)) and str(self.folder) in words
        ]
        assert relays
        for relay in relays:
            relay.suspend()
        try:
            yield
        finally:
            for relay in relays:
                with suppress(psutil.NoSuchProcess):
                    relay.resume()

    def trust_host(self) -> None:
        """Know the host by its key."""
        key = " ".join((self.folder / "host.pub").read_text().split()[:2])
        (self.folder / "known").write_text(f"[127.0.0.1]:{self.port} {key}\npod {key}\n")

    def start(self) -> None:
        """Listen."""
        Path("/run/sshd").mkdir(exist_ok=True)
        server = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        assert server is not None
        words = [server, "-D", "-f", str(self.folder / "sshd_config"), "-E", str(self.log)]
        self._process = subprocess.Popen(words)
        deadline_s = time.monotonic() + 10
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert time.monotonic() < deadline_s, self.log.read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        """Listen no more, and hang up on everybody; what runs over there goes on."""
        if self._process is None:
            return
        sessions = [
            child
            for child in psutil.Process(self._process.pid).children(recursive=True)
            if child.name() in ("sshd", "sshd-session")
        ]
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(10)
        for session in sessions:
            with_suppressed_kill(session)
        self._process = None

    def cut(self) -> None:
        """Cut the link; new connections fail too."""
        (self.folder / "cut").touch()

    def mend(self) -> None:
        """Let the link carry again."""
        (self.folder / "cut").unlink(missing_ok=True)

    def delay(self, milliseconds: int) -> None:
        """Everything comes later by this from now on, each way."""
        (self.folder / "delay_ms").write_text(str(milliseconds))

    def _write(self, name: str, text: str, **more: str) -> None:
        filled = text.format(port=self.port, folder=self.folder, far=self.far_home, **more)
        (self.folder / name).write_text(filled)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def with_suppressed_kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def _free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


@contextmanager
def sshd() -> Iterator[Sshd]:
    """One that ends with the block; skips the test where OpenSSH is not there."""
    found = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None or shutil.which("ssh") is None or os.geteuid() != 0:
        pytest.skip("needs OpenSSH's client and server, and root")
    folder = Path(tempfile.mkdtemp(prefix="a40ssh-", dir="/tmp"))
    made = Sshd(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)
