"""Where a link keeps its sockets, its record and its lock on this machine."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

from a40console.errors import RefusedError
from a40console.files import read_json, write_private
from a40console.link.target import Target
from a40console.paths import Paths, make_private

State = Literal["connecting", "up", "down", "refused", "ended"]
LOCK_TRIES, LOCK_REST_S = 5, 0.05
TURN_TIMEOUT_S = 60.0
_STATES = ("connecting", "up", "down", "refused", "ended")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecord:
    """How a link stands, as its holder wrote it last."""

    target: str
    state: State
    since: str
    """ISO 8601, UTC."""

    reason: str = ""
    """Why it is not up, in ssh's own words."""

    console: str = ""
    """The console's command on the other machine."""

    control_there: str = ""
    """The service's control socket on the other machine."""

    gateway_there: str = ""
    """`host:port` of the gateway on the other machine."""

    gateway_port: int = 0
    """The port of this machine that leads to it."""

    drops: int = 0
    """How often the link was lost and found again."""

    runs_copied: int = 0
    """Runs of the other machine that came here while the link was held."""

    runs_left: int = 0
    """Runs that have ended over there and are still to come."""

    runs_trouble: str = ""
    """Why they do not come; empty where nothing is in the way."""


class LinkPlace:
    """The folder of one link, and what lies in it."""

    def __init__(self, paths: Paths, target: Target) -> None:
        self.target = target
        digest = hashlib.sha256(f"{paths.home}\0{target}".encode()).hexdigest()[:10]
        self.folder = Path(tempfile.gettempdir()) / f"a40-ssh-{os.getuid()}-{digest}"
        """Short, 0700: OpenSSH adds 17 characters to its socket's name, and some systems have long
        temporary folders and paths of 104 bytes."""

        self.record_file = paths.state / "links" / f"{digest}.json"
        self.log = paths.state / "links" / f"{digest}.log"
        self.output = paths.state / "links" / f"{digest}.out"
        """What the holder says where nobody listens."""

        self._lock = paths.state / "links" / f"{digest}.lock"
        self._turn = paths.state / "links" / f"{digest}.turn"

    @property
    def control(self) -> Path:
        """The forwarded control socket, under the name that `Paths` gives it."""
        return self.folder / "control.sock"

    @property
    def master(self) -> Path:
        """The master connection's own socket."""
        return self.folder / "ssh"

    def make(self) -> None:
        """Create the folders, for this user alone.

        Raises:
            RefusedError: If they cannot be, or are somebody else's.
        """
        make_private(self.folder, link=False)
        make_private(self.record_file.parent)

    def record(self) -> LinkRecord | None:
        """How the link stands; None where there is no record, or none that can be read."""
        try:
            return _record(read_json(self.record_file))
        except (OSError, ValueError):
            return None

    def write(self, record: LinkRecord) -> None:
        """Keep how the link stands."""
        write_private(self.record_file, json.dumps(asdict(record)))

    def is_held(self) -> bool:
        """Whether a holder lives that keeps this link."""
        try:
            fd = os.open(self._lock, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
        return False

    def holder_pid(self) -> int | None:
        """The process that holds it, by its own word; None where nobody does."""
        try:
            return int(self._lock.read_text(encoding="ascii")) if self.is_held() else None
        except (OSError, ValueError):
            return None

    def forget(self) -> None:
        """Remove what a link that has ended left here."""
        for file in (self.record_file, self.log, self.output, self.control, self.master):
            file.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    @contextmanager
    def being_made(self) -> Iterator[None]:
        """Be the only one who opens this link or leads it elsewhere; waits for the one who is.

        Raises:
            RefusedError: If that one takes more than a minute.
        """
        fd = os.open(self._turn, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _take_turn(fd, self.target)
            yield
        finally:
            os.close(fd)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the one holder of this link.

        Raises:
            RefusedError: If another process is.
        """
        fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(fd, self.target)
            os.ftruncate(fd, 0)
            os.write(fd, str(os.getpid()).encode())
            yield
        finally:
            os.close(fd)


def _lock(fd: int, target: Target) -> None:
    for _ in range(LOCK_TRIES):  # whoever only asks whether it is held, holds it for a moment
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(LOCK_REST_S)
        else:
            return
    raise RefusedError(f"Another process holds the link to {target}")


def _take_turn(fd: int, target: Target) -> None:
    deadline_s = time.monotonic() + TURN_TIMEOUT_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if time.monotonic() > deadline_s:
                raise RefusedError(
                    f"Another console has been opening the link to {target} "
                    f"for {TURN_TIMEOUT_S:.0f} s",
                    remedy="It hangs: end it, then try again.",
                ) from error
            time.sleep(LOCK_REST_S)
        else:
            return


def records(paths: Paths) -> list[LinkRecord]:
    """Every link that this user made, newest word first."""
    found = []
    for file in sorted((paths.state / "links").glob("*.json")):
        try:
            found.append(_record(read_json(file)))
        except (OSError, ValueError):
            continue
    return sorted(found, key=lambda record: record.since, reverse=True)


def _record(data: object) -> LinkRecord:
    if not isinstance(data, dict):
        raise ValueError("not an object")
    named = {field.name: data[field.name] for field in fields(LinkRecord) if field.name in data}
    try:
        record = LinkRecord(**named)
    except TypeError as error:
        raise ValueError(str(error)) from error
    if record.state not in _STATES or not isinstance(record.gateway_port, int):
        raise ValueError("not a record of a link")
    return record
