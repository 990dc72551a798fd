"""A bug of ours: a few lines for the operator, the traceback for the log."""

from __future__ import annotations

import contextlib
import time
import traceback
from pathlib import Path


def report_crash(error: BaseException | None, log: Path | None) -> list[str]:
    """What the operator reads after a crash; the traceback is appended to the log, if there is one.

    A full disk is no reason to fail twice: what cannot be written is not.
    """
    lines = ["The console met a bug and closed. The service and the engine keep running."]
    if error is None:
        return lines
    lines.append(f"  {type(error).__name__}: {error}")
    if log is not None:
        with contextlib.suppress(OSError):
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("a", encoding="utf-8") as file:
                file.write(time.strftime("%Y-%m-%dT%H:%M:%S%z console\n"))
                file.writelines(traceback.format_exception(error))
            lines.append(f"  Details: {log}")
    return lines
