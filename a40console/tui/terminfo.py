"""How many colours the terminal database knows of a terminal."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

FOLDERS = (
    Path("~/.terminfo").expanduser(),
    Path("/etc/terminfo"),
    Path("/lib/terminfo"),
    Path("/usr/share/terminfo"),
    Path("/usr/lib/terminfo"),
)
"""Where compiled descriptions lie, in the order in which ncurses looks."""

_HEADER = struct.Struct("<6h")
_WIDE = 0o1036
"""Magic of the newer format, whose numbers take four bytes (term(5))."""

_MAX_COLORS = 13
"""Place of `max_colors` among the numbers (term.h)."""


def colours(term: str, folders: Iterable[Path] = FOLDERS) -> int | None:
    """Colours of a terminal by its name, 0 for none; None where it is not listed.

    Read here rather than through curses, whose `setupterm` serves one name a process.
    """
    if not term or "/" in term:
        return None
    for folder in folders:
        for part in (term[0], f"{ord(term[0]):x}"):
            try:
                data = (folder / part / term).read_bytes()
            except OSError:
                continue
            try:
                return _max_colors(data)
            except struct.error:
                return None
    return None


def _max_colors(data: bytes) -> int:
    magic, names, flags, numbers, _, _ = _HEADER.unpack_from(data)
    if numbers <= _MAX_COLORS:
        return 0
    place = _HEADER.size + names + flags
    place += place % 2
    size, kind = (4, "<i") if magic == _WIDE else (2, "<h")
    value: int = struct.unpack_from(kind, data, place + size * _MAX_COLORS)[0]
    return max(0, value)
