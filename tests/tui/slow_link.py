"""A terminal behind a slow, distant link: so many bytes a second, each of them so late."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

from tests.bench.on_terminal import ANSWER, QUESTION

_CLOCK = re.compile(rb"live (\d\d):(\d\d):(\d\d)")
_TICK_S = 0.01


class SlowLink:
    """A command on a pty that is read at a rate; what was read arrives after the delay."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        bytes_per_s: float,
        delay_s: float,
        size: tuple[int, int] = (120, 40),
        answers: bool = True,
    ) -> None:
        self.bytes_per_s = bytes_per_s
        """What it carries from now on."""

        self._delay_s = delay_s
        self._answers = answers
        self._to_us: deque[tuple[float, bytes]] = deque()
        self._to_it: deque[tuple[float, bytes]] = deque()
        self.output = bytearray()
        self.arrivals: list[tuple[float, int]] = []
        """When how many bytes had arrived in all."""

        self.lags_s: list[float] = []
        """How old the time of day was that the screen showed, each time it arrived."""

        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            columns, rows = size
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(command[0], list(command), dict(environment))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._fd)

    def press(self, key: str) -> None:
        """Type a key; it is there after the delay."""
        self._to_it.append((time.monotonic() + self._delay_s, key.encode()))

    def run(self, seconds: float, until: bytes | None = None) -> float:
        """Let time pass, until a text arrives if one is given; answers the seconds it took."""
        begun_s = last_s = time.monotonic()
        mark, room = len(self.output), 0.0
        while (now_s := time.monotonic()) - begun_s < seconds:
            room = min(room + (now_s - last_s) * self.bytes_per_s, self.bytes_per_s / 10)
            last_s = now_s
            room -= self._read(int(room), now_s)
            self._deliver(now_s)
            if until is not None and until in self.output[mark:]:
                break
            time.sleep(_TICK_S)
        return time.monotonic() - begun_s

    def _read(self, room: int, now_s: float) -> int:
        if room < 1 or not select.select([self._fd], [], [], 0)[0]:
            return 0
        data = os.read(self._fd, room)
        self._to_us.append((now_s + self._delay_s, data))
        return len(data)

    def _deliver(self, now_s: float) -> None:
        while self._to_us and self._to_us[0][0] <= now_s:
            _, data = self._to_us.popleft()
            before = len(self.output)
            self.output += data
            self.arrivals.append((now_s, len(self.output)))
            new = bytes(self.output[max(0, before - 16) :])
            for match in _CLOCK.finditer(new):
                if match.end() > min(before, 16):
                    self._note_lag(match)
            asked = bytes(self.output[max(0, before - 3) :]).count(QUESTION)
            if self._answers:
                self._to_it.extend([(now_s + self._delay_s, ANSWER)] * asked)
        while self._to_it and self._to_it[0][0] <= now_s:
            os.write(self._fd, self._to_it.popleft()[1])

    def _note_lag(self, match: re.Match[bytes]) -> None:
        hours, minutes, seconds = map(int, match.groups())
        now = datetime.now().astimezone()
        shown_s = hours * 3600 + minutes * 60 + seconds
        now_s = now.hour * 3600 + now.minute * 60 + now.second + now.microsecond / 1e6
        self.lags_s.append((now_s - shown_s) % 86400)
