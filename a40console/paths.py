"""Every path of the console, in one place; `A40CONSOLE_HOME` moves all of them under one folder."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from a40console.errors import RefusedError, UsageError

DEMO_MARK = "a40console-demo"
"""A file of this name says that a home is a demo's, and may be removed; it names the owner."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Where configuration, state, data and the runtime sockets live."""

    home: Path
    """What the operator calls our home; the socket's name is derived from it."""

    config: Path
    state: Path
    data: Path
    runtime: Path
    """Short, 0700: sockets only."""

    remote: str = ""
    """The machine whose service `runtime` leads to; empty for this one."""

    forbidden: str = ""
    """Who forbade to act from here, in words; empty where nobody did."""

    @property
    def config_file(self) -> Path:
        """The operator's settings."""
        return self.config / "config.toml"

    @property
    def profiles(self) -> Path:
        """The operator's own profiles."""
        return self.config / "profiles"

    @property
    def themes(self) -> Path:
        """The operator's own themes."""
        return self.config / "themes"

    @property
    def control_socket(self) -> Path:
        """Where the service listens."""
        return self.runtime / "control.sock"

    @property
    def service_log(self) -> Path:
        """The service's own log."""
        return self.state / "service.log"

    @property
    def service_lock(self) -> Path:
        """Locked by the one service that runs here."""
        return self.state / "service.lock"

    @property
    def events(self) -> Path:
        """The journal, one JSON object a line."""
        return self.state / "events.jsonl"

    @property
    def captures(self) -> Path:
        """What was captured of sessions, a folder each."""
        return self.state / "captures"

    @property
    def desired(self) -> Path:
        """What the operator asked to run, for a service that comes back."""
        return self.state / "desired.json"

    @property
    def fallback(self) -> Path:
        """What served before a switch that is not over."""
        return self.state / "fallback.json"

    @property
    def turned(self) -> Path:
        """What the running profile's file says of what a command turned since."""
        return self.state / "turned.json"

    @property
    def gateway_token(self) -> Path:
        """The gateway's token, 0600."""
        return self.state / "gateway.token"

    @property
    def engine_runs(self) -> Path:
        """One folder an engine start: output, identity, end."""
        return self.state / "engines"

    @property
    def engine_plugin(self) -> Path:
        """Folders that go on a vLLM's path."""
        return self.data / "engine-plugin"

    @property
    def engine_flags(self) -> Path:
        """What installed engines said of the flags that they take."""
        return self.data / "engine-flags"

    @property
    def runs(self) -> Path:
        """One folder a controlled experiment: order, records, end."""
        return self.state / "runs"

    @property
    def pulled(self) -> Path:
        """Runs that came from other machines, until the ledger has them."""
        return self.state / "pulled"

    @property
    def ledger(self) -> Path:
        """Every run that has ended, in one database."""
        return self.state / "ledger.sqlite"

    @property
    def models(self) -> Path:
        """Model files that we fetched."""
        return self.data / "models"

    @property
    def environments(self) -> Path:
        """Environments that vLLM was installed into."""
        return self.data / "engines"

    def engine_socket(self, run_id: str) -> Path:
        """A fresh socket for one engine start: a stale file can never block it."""
        return self.runtime / f"{hashlib.sha256(run_id.encode()).hexdigest()[:10]}.sock"


def locate(environment: dict[str, str] | os._Environ[str] = os.environ) -> Paths:
    """The paths for this environment; nothing is created.

    Raises:
        UsageError: If one is not valid UTF-8: no JSON answer and no database could name it.
    """
    if moved := environment.get("A40CONSOLE_HOME"):
        home = Path(moved).expanduser().absolute()
        config, state, data = home / "config", home / "state", home / "data"
    else:
        config = platformdirs.user_config_path("a40console")
        state = platformdirs.user_state_path("a40console")
        data = platformdirs.user_data_path("a40console")
        home = state
    paths = Paths(home=home, config=config, state=state, data=data, runtime=_runtime(home))
    for path in (home, config, state, data, paths.runtime):
        _refuse_no_text(path)
    return paths


def _refuse_no_text(path: Path) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            "The name of the folder that our files belong in is not valid UTF-8",
            evidence=repr(os.fsencode(path))[1:],
            remedy="Set A40CONSOLE_HOME to a folder whose name is.",
        ) from error


def _runtime(home: Path) -> Path:
    """A short folder of this user, told apart by home, so that the path limit is never met."""
    name = f"a40console-{os.getuid()}-{hashlib.sha256(os.fsencode(home)).hexdigest()[:10]}"
    return Path(tempfile.gettempdir()) / name


def make_private(folder: Path, *, link: bool = True) -> Path:
    """Create the folder 0700 where it is not there yet.

    A link of ours to a folder of ours will do: homes lie on a mounted volume that way. `link=False`
    refuses any: in a folder that everybody may write to, its name could be somebody else's trap.

    Raises:
        RefusedError: If it cannot be made, belongs to somebody else, or is a link that may not be.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_foreign(folder, link=link)
        status = folder.stat()
        if status.st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise RefusedError(
            f"{folder} cannot be used",
            evidence=str(error),
            remedy="Free space or permission there, or set A40CONSOLE_HOME to a writable folder.",
        ) from error
    return folder


def check_control_socket(path: Path) -> None:
    """See that whoever listens on the control socket is this user; no socket at all is no harm.

    Its folder has a name that everybody can guess, in a place where everybody may make one.

    Raises:
        RefusedError: If the folder or the socket belongs to somebody else.
    """
    with suppress(FileNotFoundError):
        _refuse_foreign(path.parent, link=False)
        _refuse_foreign(path, link=False)


def _refuse_foreign(path: Path, *, link: bool) -> None:
    status, ours = path.lstat(), os.getuid()
    if stat.S_ISLNK(status.st_mode):
        if not link:
            raise RefusedError(
                f"{path} is a symbolic link",
                evidence=f"it leads to {path.resolve()}; owner uid {status.st_uid}, ours {ours}",
                remedy="Remove the link.",
            )
        if status.st_uid in (0, ours):
            status = path.stat()
    if status.st_uid != ours:
        raise RefusedError(
            f"{path} belongs to somebody else",
            evidence=f"owner uid {status.st_uid}, ours {ours}",
            remedy="Remove it, or set A40CONSOLE_HOME to a folder of your own.",
        )
