"""Numbers, times, sizes and dollars as text: pure, and never a 0 for what is not known."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from a40console.model import wording
from a40console.model.figures import Estimated, Figure, Missing, Text

DASH = "–"
"""Stands for what is not known; its reason is shown on focus."""

ESTIMATE = "≈"
"""Marks what was derived rather than counted."""

GIB = 2**30

Formatter = Callable[[float], str]

dollars, duration = wording.dollars, wording.duration


def shown(figure: Figure, formatter: Formatter) -> str:
    """A figure as text: a dash where it is missing, ≈ before an estimate."""
    match figure:
        case Missing():
            return DASH
        case Estimated(value):
            return ESTIMATE + formatter(value)
        case _:
            return formatter(figure)


def known(text: Text, unknown: str = DASH) -> str:
    """A text, or a dash where it is missing."""
    return unknown if isinstance(text, Missing) else text


def count(value: float) -> str:
    """A whole number with thousands separated; what is not quite nothing stays visible."""
    return "<1" if 0 < value <= 0.5 else f"{value:,.0f}"


def short_count(value: float) -> str:
    """A whole number in at most four characters: `31k`, `1.2M`."""
    if value < 999.5:
        return count(value)
    for unit in "kMGT":
        value /= 1000
        if value < 9.95:
            return f"{value:.1f}{unit}"
        if value < 999.5:
            return f"{value:.0f}{unit}"
    return f"{value:.0f}T"


def rate(value: float) -> str:
    """A number with three significant digits, whole from a hundred up."""
    if value == 0:
        return "0"
    if value < 0.005:
        return "<0.01"
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def tenths(value: float) -> str:
    """A number with one decimal, whole from a hundred up."""
    if 0 < value < 0.05:
        return "<0.1"
    return f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def two_digits(value: float) -> str:
    """A number with two significant digits, whole from ten up; what is nearly nothing says so."""
    if value == 0:
        return "0"
    if value < 0.005:
        return "<0.01"
    if value < 0.995:
        return f"{value:.2f}" if value < 0.0995 else f"{value:.2g}"
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


def plain(value: float) -> str:
    """A number without decimals where it is whole, with one where it is not."""
    return count(value) if value == round(value) else tenths(value)


def percent(ratio: float) -> str:
    """A ratio of 0 to 1 in per cent; only nothing is 0 % and only the whole is 100 %."""
    if 0 < ratio <= 0.005:
        return "<1 %"
    if 0.995 <= ratio < 1:
        return ">99 %"
    return f"{ratio * 100:.0f} %"


def age(seconds: float) -> str:
    """A time span in one unit, at most four characters: `4 s`, `12 m`, `3 h`, `2 d`."""
    for limit, size, unit in ((59.5, 1, "s"), (3570, 60, "m"), (84600, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def window(seconds: float) -> str:
    """The span that figures were taken over: `60 s`."""
    return f"{seconds:.0f} s" if seconds < 120 else duration(seconds)


def latency(seconds: float) -> str:
    """A latency with its unit: `44 ms`, `0.31 s`, `12.3 s`."""
    if 0 < seconds <= 0.0005:
        return "<1 ms"
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    return f"{rate(seconds)} s"


def spent(seconds: float) -> str:
    """A phase's time, in seconds up to a minute: phases side by side have one unit."""
    if 0 < seconds < 0.005:
        return "<0.01 s"
    if seconds < 1:
        return f"{seconds:.2f} s"
    return f"{rate(seconds)} s" if seconds < 59.5 else duration(seconds)


def gibibytes(value: float) -> str:
    """Bytes as GiB without the unit: `41.9`."""
    return tenths(value / GIB)


def size(value: float) -> str:
    """Bytes with the unit that keeps two or three digits: `1.2 GiB`, `61 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 999.5:
            return f"{count(value) if unit == 'B' or value >= 9.95 else tenths(value)} {unit}"
        value /= 1024
    return f"{tenths(value)} TiB"


def clock(at: str) -> str:
    """The local time of day of an ISO 8601 instant; the text itself where it is none."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%H:%M:%S")
    except ValueError:
        return at


def clock_of(at_s: float) -> str:
    """The local time of day of a Unix time."""
    return datetime.fromtimestamp(at_s).astimezone().strftime("%H:%M:%S")


def unix_seconds(at: str) -> float | None:
    """The Unix time of an ISO 8601 instant."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None


def plural(number: float, noun: str) -> str:
    """`1 prompt`, `2 prompts`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"
