"""Numbers inside the advisor's sentences: two significant digits, and the unit written out."""

from __future__ import annotations

from collections.abc import Iterable

from a40console.model import wording

short_name = wording.short_name


def brief(value: float) -> str:
    """A number as an operator reads it: `1,240`, `5.9`, `0.034`; tiny is `<0.001`, never 0."""
    size = abs(value)
    if size == 0:
        return "0"
    if size < 0.001:
        return "<0.001"
    if size < 0.995:
        return f"{value:.2g}"
    return f"{value:,.1f}" if size < 9.95 else f"{value:,.0f}"


def whole(number: float) -> str:
    """A count without a noun: `1,240`."""
    return f"{number:,.0f}"


def percent(ratio: float) -> str:
    """A ratio as a percentage; a full 100 % only where it is one."""
    value = 100 * ratio
    return "<100 %" if 99.5 <= value < 100 else f"{brief(value)} %"


def threshold(ratio: float) -> str:
    """A threshold of ours as a percentage: round, as it was chosen."""
    return f"{100 * ratio:.0f} %"


def count(number: float, noun: str, plural: str = "") -> str:
    """A count with its noun: `1 request`, `3 requests`; a plural without a mere s is given."""
    return f"{whole(number)} {noun if number == 1 else plural or f'{noun}s'}"


def duration(seconds: float) -> str:
    """Seconds as an operator reads them: `1.4 s`, `43 s`, `3 m 10 s`."""
    if seconds >= 9.95 or seconds == round(seconds):
        return wording.duration(seconds)
    return f"{brief(seconds)} s"


def gibibytes(size_bytes: float) -> str:
    """Memory: `41.9 GiB`."""
    return f"{size_bytes / 2**30:.1f} GiB"


def gigabytes(size_bytes: float) -> str:
    """Room on a disk: `61.0 GB`."""
    return f"{size_bytes / 1e9:,.1f} GB"


def sentence(parts: Iterable[str]) -> str:
    """Pieces of evidence on one line."""
    return " · ".join(part for part in parts if part)
