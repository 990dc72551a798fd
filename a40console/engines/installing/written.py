"""What an installation has written so far, from the kernel's counters of the process at work."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from a40console.engines.installing.environments import size_on_disk
from a40console.engines.installing.step import Phase, Report, Step
from a40console.model.figures import Estimated, Figure, Missing

PERIOD_S = 0.5
_BEGUN = re.compile(r"^\s*Downloading (?P<name>\S+)(?: \((?P<size>[^)]*)\))?")
_DONE = re.compile(r"^\s*Downloaded (?P<name>\S+)")
_PREPARED = re.compile(r"^\s*Prepared \d+ packages? in")


class Written:
    """Follows uv: its lines for the phase and the package, `/proc/PID/io` for the bytes.

    uv unpacks each wheel as it arrives, so what is counted are bytes of the disk, and the total is
    about what the environment takes.
    """

    def __init__(self, downloads: Path, total_bytes: int, report: Report) -> None:
        self._report = report
        self._total_bytes = total_bytes
        self._before_bytes = size_on_disk(downloads)
        self._pid: int | None = None
        self._phase: Phase = "download"
        self._packages: dict[str, str] = {}
        """Under way, with the size that uv gives; the one begun last comes last."""

    def follow(self, pid: int) -> None:
        """The process at work."""
        self._pid = pid

    def take_line(self, line: str) -> None:
        """A line that uv wrote."""
        if begun := _BEGUN.match(line):
            size = f" ({begun['size']})" if begun["size"] else ""
            self._packages[begun["name"]] = begun["name"] + size
        elif done := _DONE.match(line):
            self._packages.pop(done["name"], None)
        elif _PREPARED.match(line):
            self._phase = "install"
            self._packages.clear()

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Report twice a second while the block runs."""
        task = asyncio.create_task(self._for_ever())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _for_ever(self) -> None:
        while True:
            self._report(self._step())
            await asyncio.sleep(PERIOD_S)

    def _step(self) -> Step:
        detail = next(reversed(self._packages.values()), "")
        if len(self._packages) > 1:
            detail += f" and {len(self._packages) - 1} more"
        written = self._before_bytes + self._counted()
        # Once the estimate is passed, nothing is known of what is left.
        whole: Figure = Missing("it takes more than was estimated")
        if written < self._total_bytes:
            whole = Estimated(self._total_bytes)
        return Step(phase=self._phase, detail=detail, written_bytes=written, total_bytes=whole)

    def _counted(self) -> int:
        """`wchar`: what the process has written, from `proc(5)`."""
        with suppress(OSError, ValueError):
            text = Path(f"/proc/{self._pid}/io").read_text(encoding="ascii")
            if found := re.search(r"^wchar: (\d+)", text, re.MULTILINE):
                return int(found[1])
        return 0
