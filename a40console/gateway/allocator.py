"""Memory that large bodies took goes back to the machine."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_M_TRIM_THRESHOLD = -1  # malloc.h of glibc
_TRIM_THRESHOLD_BYTES = 128 * 1024


def return_freed_memory() -> None:
    """Have glibc return the free end of its heap once it exceeds 128 KiB, its documented default.

    Left alone it raises that threshold with the largest block ever freed: after a few bodies of
    32 MiB, hundreds of megabytes stay with the process. Other C libraries do not have the switch.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)
