"""One connection to the other machine: logged in once, asked, and told what to forward."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import subprocess
from dataclasses import dataclass
from typing import Any

from a40console.errors import ConsoleError, Exit, NoServiceError, RefusedError
from a40console.link.asking import run_asking
from a40console.link.place import LinkPlace
from a40console.link.ssh import Forward, Ssh, through_login_shell

CONTROL_TIMEOUT_S = 10.0
"""The master of this machine answers at once, or not at all."""

ASK_TIMEOUT_S = 60.0
"""A start of the service on a loaded machine takes seconds; what takes a minute hangs."""

SSH_FAILED = 255
MOST_LINES = 3
_NOT_FOUND = 127
_MASTER_PID = re.compile(r"pid=(\d+)")
_MARK = "{"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the other machine's service is reached there."""

    version: str
    protocol: int
    running: bool
    control_socket: str
    gateway: str
    """`host:port`; empty while the service does not run."""


class AnsweredError(ConsoleError):
    """What the console over there answered is an error of its own."""


class Connection:
    """The master connection of one link.

    Args:
        ssh: What to call.
        place: Where its sockets are.
        console: The console's command on the other machine.
    """

    def __init__(self, ssh: Ssh, place: LinkPlace, console: tuple[str, ...]) -> None:
        self._ssh = ssh
        self._place = place
        self.console = console

    def log_in(self) -> None:
        """Connect with the operator at the terminal, who may be asked for what ssh needs.

        Raises:
            NoServiceError: If ssh does not get there, with its own words.
            KeyboardInterrupt: If the operator ended it there.
        """
        self._prepare()
        try:
            code = run_asking(self._ssh.open_master(ask=True))
        except OSError as error:
            raise _no_ssh(self._ssh.program[0], error) from error
        if code == -signal.SIGINT:
            raise KeyboardInterrupt
        if code:
            alone = shlex.join((*self._ssh.program, *self._ssh.target.arguments))
            raise NoServiceError(
                f"ssh does not reach {self._ssh.target}",
                evidence=self.said() or f"its exit code is {code}",
                remedy=f"Try it alone: {alone}",
            )

    def connect(self) -> subprocess.Popen[bytes]:
        """Connect without the operator; the process ends with the connection.

        Raises:
            NoServiceError: If there is no ssh.
        """
        self._prepare()
        try:
            return subprocess.Popen(
                self._ssh.open_master(ask=False),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise _no_ssh(self._ssh.program[0], error) from error

    def said(self) -> str:
        """What ssh said of the last connection, without the frames that it draws around it."""
        try:
            lines = self._ssh.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        lines = [line.strip() for line in lines if line.strip() and set(line.strip()) != {"@"}]
        return " · ".join(lines[-MOST_LINES:])

    def _prepare(self) -> None:
        self._ssh.master.unlink(missing_ok=True)
        self._ssh.log.unlink(missing_ok=True)

    def master_pid(self) -> int | None:
        """The process that holds the connection; None where there is none."""
        done = self._control("check")
        found = _MASTER_PID.search(done.stderr + done.stdout)
        return int(found[1]) if done.returncode == 0 and found else None

    def end(self) -> None:
        """Close the connection, with all that goes through it."""
        self._control("exit")

    def endpoint(self, *, start: bool = False) -> Endpoint:
        """Ask the console over there where its service is.

        Args:
            start: Start it where it does not run.

        Raises:
            ConsoleError: If it is not there, cannot start, or speaks another protocol.
        """
        words = [*self.console, "endpoint", "--json", *(["--start"] if start else [])]
        try:
            done = subprocess.run(
                self._ssh.run(through_login_shell(words)),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=ASK_TIMEOUT_S,
                check=False,
            )
        except OSError as error:
            raise _no_ssh(self._ssh.program[0], error) from error
        except subprocess.TimeoutExpired as error:
            raise NoServiceError(
                f"{self._ssh.target} does not answer", evidence=f"within {ASK_TIMEOUT_S:.0f} s"
            ) from error
        return self._read(done)

    def forward(self, *forwards: Forward) -> None:
        """Listen here, and lead it there.

        Raises:
            RefusedError: If it cannot listen, or ssh over there may not forward.
        """
        for forward in forwards:
            if forward.here == str(self._place.control):
                self._place.control.unlink(missing_ok=True)
            done = self._control("forward", forward)
            if done.returncode:
                raise RefusedError(
                    f"ssh does not forward {forward.here}",
                    evidence=_last_line(done.stderr) or f"exit code {done.returncode}",
                    remedy="The other machine's sshd must allow forwarding: "
                    "AllowTcpForwarding yes, AllowStreamLocalForwarding yes.",
                )

    def cancel(self, *forwards: Forward) -> None:
        """Listen no longer; what goes through keeps its connection."""
        for forward in forwards:
            self._control("cancel", forward)

    def _control(self, verb: str, *forwards: Forward) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                self._ssh.control(verb, *forwards),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=CONTROL_TIMEOUT_S,
                check=False,
            )
        except OSError as error:
            raise _no_ssh(self._ssh.program[0], error) from error
        except subprocess.TimeoutExpired as error:
            said = f"ssh does not answer: {error}"
            return subprocess.CompletedProcess([], SSH_FAILED, "", said)

    def _read(self, done: subprocess.CompletedProcess[str]) -> Endpoint:
        target, said = self._ssh.target, _last_line(done.stderr)
        name = " ".join(self.console)
        if done.returncode == _NOT_FOUND:
            raise RefusedError(
                f"{target} has no command {name}",
                evidence=said,
                remedy=f"Install a40console there, or name its place: --there /path/to/{name}",
            )
        if done.returncode == SSH_FAILED:
            raise NoServiceError(f"The link to {target} broke", evidence=said)
        answer = _answer(done.stdout)
        if isinstance(answer.get("error"), dict):
            error = answer["error"]
            raise AnsweredError(
                f"On {target}: {error.get('message', 'an error without words')}",
                evidence=str(error.get("evidence", "")),
                remedy=str(error.get("remedy", "")),
                exit_code=_exit(error.get("exit_code")),
            )
        try:
            return Endpoint(
                version=str(answer["version"]),
                protocol=int(answer["protocol"]),
                running=bool(answer["running"]),
                control_socket=str(answer["control_socket"]),
                gateway=str(answer["gateway"] or ""),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise RefusedError(
                f"{name} on {target} answers in another form than this version reads",
                evidence=said or f"exit code {done.returncode}: {done.stdout[-200:]!r}",
                remedy="Bring both machines to the same version of a40console.",
            ) from error


def gateway_forward(port: int, there: str) -> Forward:
    """The gateway's forward: on loopback alone, whatever the operator's GatewayPorts says."""
    return Forward(f"127.0.0.1:{port}", there)


def free_port(wanted: int) -> int:
    """The port itself where nobody listens on it, else any that is free."""
    for port in (wanted, 0):
        with socket.socket() as door:
            # Connections that ended a moment ago, our own among them, keep nobody from it.
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                door.bind(("127.0.0.1", port))
            except (OSError, OverflowError):
                continue
            return int(door.getsockname()[1])
    raise RefusedError("This machine has no free port on loopback")


def _no_ssh(name: str, error: OSError) -> NoServiceError:
    return NoServiceError(
        f"{name} cannot be called",
        evidence=str(error),
        remedy="Install the OpenSSH client (Debian: apt-get install openssh-client).",
    )


def _answer(text: str) -> dict[str, Any]:
    """The JSON object of the last line that is one: login shells may greet before it."""
    for line in reversed(text.splitlines()):
        if line.startswith(_MARK):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
    return {}


def _exit(code: Any) -> Exit:
    """The exit code over there; one that we do not know is a refusal."""
    try:
        return Exit(code)
    except ValueError:
        return Exit.REFUSED


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
