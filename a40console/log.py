"""The service's log: one file, rotated, never the terminal."""

from __future__ import annotations

import logging
import logging.handlers
from pathlib import Path

LOG_LIMIT_BYTES = 5 * 1024 * 1024


def log_to_file(path: Path, *, level: int = logging.INFO) -> None:
    """Send this process's log to a file of at most 5 MiB and one older one.

    A full disk costs log lines, never the process: errors of the handler are dropped.
    """
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=LOG_LIMIT_BYTES, backupCount=1, encoding="utf-8", delay=True
    )
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
    )
    logging.raiseExceptions = False
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger("httpx").setLevel(logging.WARNING)
