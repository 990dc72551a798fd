"""Words for spans of time and amounts that every part of the console writes alike. Pure."""

from __future__ import annotations

LONGEST_NAME, SHOWN_OF_LONG = 16, 8

_SPANS = ((60, 1, "s"), (3600, 60, "m"), (86400, 3600, "h"))


def duration(seconds: float) -> str:
    """A time span in its two largest units: `43 s`, `3 m 10 s`, `3 h 12 m`."""
    rest, small, small_unit = round(seconds), 1, "s"
    for limit, size, unit in _SPANS:
        if rest < limit:
            return _two(rest, size, unit, small, small_unit)
        small, small_unit = size, unit
    return _two(rest, 86400, "d", small, small_unit)


def dollars(value: float) -> str:
    """Dollars with cents, and three significant digits below one dollar."""
    if value == 0:
        return "$0"
    if value < 0.00005:
        return "<$0.0001"
    if value >= 0.9995:
        return f"${value:,.2f}"
    text = f"{value:.3f}" if value >= 0.0995 else f"{value:.4f}"
    while text.endswith("0") and len(text) > len("0.00"):
        text = text[:-1]
    return f"${text}"


def short_name(name: str) -> str:
    """A session's or an agent's name: of a long one, such as a UUID, its beginning."""
    return name if len(name) <= LONGEST_NAME else name[:SHOWN_OF_LONG]


def size(size_bytes: float) -> str:
    """Bytes of a disk or a network, by thousands as both are sold: `98 MB`, `2.1 GB`."""
    if size_bytes >= 1e9:
        return f"{size_bytes / 1e9:.1f} GB"
    if size_bytes >= 1e6:
        return f"{size_bytes / 1e6:.0f} MB"
    return f"{size_bytes / 1e3:.0f} kB" if size_bytes else "0 B"


def memory_size(size_bytes: float) -> str:
    """Bytes of memory, by powers of two as it is built: `41.9 GiB`."""
    return f"{size_bytes / 2**30:.1f} GiB"


def _two(whole_s: int, size: int, unit: str, small: int, small_unit: str) -> str:
    large, rest = divmod(whole_s, size)
    less = rest // small
    return f"{large:,} {unit} {less} {small_unit}" if less else f"{large:,} {unit}"
