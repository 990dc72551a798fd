"""The words that the system's ssh is called with. Pure.

One connection (OpenSSH's master) carries everything: the questions to the other side, the control
socket and the gateway. The operator's configuration, agent, host keys and jump hosts hold as usual.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from a40console.link.target import Target

SSH_VARIABLE = "A40CONSOLE_SSH"
"""The ssh to call, with its first arguments; `ssh` where it is not set."""

CONNECT_TIMEOUT_S = 15
ALIVE_PERIOD_S = 5
ALIVE_MISSED = 3
"""A link is given up that has said nothing for 15 s."""

_CALL = "A40CONSOLE_CALL"
_UNSAFE = frozenset("\\'\"!%$`\n\r\t")
"""What one of the shells, or printf, would not leave as it is."""

_LOG_IN = (
    'case "${SHELL##*/}" in *csh) set -- -c;; *) set -- -lc;; esac; '  # csh takes -l alone
    f'exec "${{SHELL:-/bin/sh}}" "$@" \'exec sh -c \'"\'"\'eval "${_CALL}"\'"\'"'
)

_OPTIONS = {
    "ConnectTimeout": CONNECT_TIMEOUT_S,
    "ServerAliveInterval": ALIVE_PERIOD_S,
    "ServerAliveCountMax": ALIVE_MISSED,
    # What the operator's configuration forwards for his own sessions is not ours to hold open.
    "ClearAllForwardings": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
    "ControlPersist": "no",
    "LogLevel": "ERROR",
    # What an earlier link left behind is no reason not to listen there again.
    "StreamLocalBindUnlink": "yes",
    "StreamLocalBindMask": "0177",
}


@dataclass(frozen=True, slots=True)
class Forward:
    """One listener of this machine, and where it leads on the other."""

    here: str
    there: str

    @property
    def argument(self) -> str:
        """As `-L` takes it."""
        return f"{self.here}:{self.there}"


@dataclass(frozen=True, slots=True)
class Ssh:
    """ssh to one target, through one master connection."""

    target: Target
    master: Path
    """The master's own socket."""

    log: Path
    """What the master says: its terminal is the console's, which is drawn on."""

    program: tuple[str, ...] = ("ssh",)

    def open_master(self, *, ask: bool) -> list[str]:
        """Log in, and hold the connection.

        Args:
            ask: With the operator at the terminal: passwords and host keys may be asked for, and
                ssh goes to the background by itself. Without him it stays in the foreground.
        """
        options = _OPTIONS | {"ControlMaster": "yes", "BatchMode": "no" if ask else "yes"}
        background = ["-f"] if ask else []
        call = [*self._call(options), "-E", str(self.log), "-N", *background]
        return [*call, *self.target.arguments]

    def control(self, verb: str, *forwards: Forward) -> list[str]:
        """Tell the master: `check`, `exit`, `forward` or `cancel`.

        The configuration has no part in it: its own forwards would be asked for as well.
        """
        words = [word for forward in forwards for word in ("-L", forward.argument)]
        call = [*self.program, "-F", "none", "-S", str(self.master), "-O", verb]
        return [*call, *words, *self.target.arguments]

    def run(self, command: str, *, terminal: bool = False) -> list[str]:
        """Run a command of the other side's shell over the connection that is there.

        Without the master ssh would log in anew; here that counts as a failure.
        """
        options = {"ControlMaster": "no", "ProxyCommand": "false", "BatchMode": "yes"}
        options |= {"ForwardAgent": "no", "ForwardX11": "no", "ClearAllForwardings": "yes"}
        # The operator's own command for this host would stand in the way of ours.
        options |= {"RemoteCommand": "none", "LogLevel": "ERROR"}
        tty = "-t" if terminal else "-T"
        return [*self._call(options), tty, *self.target.arguments, command]

    def _call(self, options: Mapping[str, object]) -> list[str]:
        words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        return [*self.program, "-S", str(self.master), *words]


def program_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The ssh to call, as the environment names it."""
    return tuple(shlex.split(environment.get(SSH_VARIABLE, ""))) or ("ssh",)


def through_login_shell(words: Sequence[str]) -> str:
    """A command line for the other side, with the PATH that its user has when he logs in.

    Two shells that we do not know read it: the one that sshd starts, and that of the login. fish
    and csh are no `sh`, so either gets only what all of them read alike: one text in single
    quotes, in which are no quote, no backslash before either, no line's end and no `!`.
    """
    call = shlex.quote(f"unset {_CALL}; exec {shlex.join(words)}")
    script = f"{_CALL}={call}; export {_CALL}; {_LOG_IN}"
    told = "".join(f"\\{ord(char):03o}" if char in _UNSAFE else char for char in script)
    return f'exec sh -c \'eval "$(printf "{told}")"\''
