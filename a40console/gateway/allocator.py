"""Memory that large bodies took goes back to the machine."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_M_MMAP_THRESHOLD = -3  # malloc.h of glibc
_MAPPED_FROM_BYTES = 64 * 1024


def return_freed_memory() -> None:
    """Have glibc map blocks of 64 KiB and more one by one, so that each goes back when freed.

    Left alone it raises that threshold with the largest block ever freed: after a few bodies of
    32 MiB, the pieces of the next ones lie in the heap and 250 MiB of it stay with the process.
    Other C libraries do not have the switch.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)
