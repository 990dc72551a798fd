"""Points of history as rows of bytes, and several rows put together as one. Pure.

A row is small enough that a day of them fits into memory beside the disk's copy: for each series a
number, a byte that says whether it is exact, estimated or why it is missing, and how many of its
readings knew it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from a40console.model.control import HistoryPoint
from a40console.model.figures import Estimated, Figure, Missing

How = Literal["mean", "max", "last"]

SERIES: dict[str, How] = {
    "generation_tokens_per_s": "mean",
    "generation_peak_tokens_per_s": "max",
    "prefill_tokens_per_s": "mean",
    "passes_per_s": "mean",
    "tokens_per_pass": "mean",
    "running": "mean",
    "waiting": "max",
    "held": "max",
    "cache_hit_ratio": "mean",
    "kv_held_ratio": "max",
    "acceptance_ratio": "mean",
    "ttft_s": "max",
    "cpu_used_vcpu": "mean",
    "throttled_ms_per_s": "max",
    "gpu_memory_used_bytes": "max",
    "gpu_utilization_ratio": "mean",
    "gpu_power_w": "mean",
    "usd_so_far": "last",
    "simulated": "max",
}
"""Every series that is kept, and what stands for a span of it."""

NAMES = tuple(SERIES)
GENERATION = NAMES.index("generation_tokens_per_s")
SIMULATED = NAMES.index("simulated")
EXACT, ESTIMATED = 0, 1
FIRST_REASON = 2
MOST_REASONS = 200
LARGEST_COUNT = 255
OTHER_REASON = "not known"
LATEST_S = 253_402_300_800.0
"""The year 10000 in Unix time: later is no instant."""

_WIDTH = len(NAMES)
_FORMAT = struct.Struct(f"<d{_WIDTH}d{_WIDTH}B{_WIDTH}B")


class Row(NamedTuple):
    """One span: when it begins, and by series its value, its code and its known readings."""

    at_s: float
    values: tuple[float, ...]
    codes: tuple[int, ...]
    counts: tuple[int, ...]


class Reasons:
    """Why figures were missing, by number; a new one beyond 200 is only `not known`."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = [OTHER_REASON]
        self._codes = {OTHER_REASON: 0}
        for text in texts:
            self.code(text)

    @property
    def texts(self) -> tuple[str, ...]:
        """All of them, by number."""
        return tuple(self._texts)

    def code(self, text: str) -> int:
        """The number of a reason."""
        if text not in self._codes:
            if len(self._texts) >= MOST_REASONS:
                return 0
            self._codes[text] = len(self._texts)
            self._texts.append(text)
        return self._codes[text]

    def text(self, code: int) -> str:
        """The reason with a number."""
        return self._texts[code] if code < len(self._texts) else OTHER_REASON


def row_of(point: HistoryPoint, reasons: Reasons) -> Row:
    """A point as a row of one reading."""
    values, codes = [], []
    for name in NAMES:
        value, code = _split(getattr(point, name), reasons)
        values.append(value)
        codes.append(code)
    counts = tuple(1 if code < FIRST_REASON else 0 for code in codes)
    return Row(point.at_s, tuple(values), tuple(codes), counts)


def _split(figure: Figure, reasons: Reasons) -> tuple[float, int]:
    match figure:
        case Missing(reason):
            return 0.0, FIRST_REASON + reasons.code(reason)
        case Estimated(value):
            return float(value), ESTIMATED
        case _:
            return float(figure), EXACT


def pack(row: Row) -> bytes:
    """The row's bytes."""
    counts = (min(count, LARGEST_COUNT) for count in row.counts)
    return _FORMAT.pack(row.at_s, *row.values, *row.codes, *counts)


def unpack(data: bytes) -> Row:
    """The row of bytes.

    Raises:
        struct.error: If they are no row.
    """
    at_s, *rest = _FORMAT.unpack(data)
    return Row(
        at_s,
        tuple(rest[:_WIDTH]),
        tuple(rest[_WIDTH : 2 * _WIDTH]),
        tuple(rest[2 * _WIDTH :]),
    )


def is_row(data: object) -> bool:
    """Whether it is a row's bytes, with an instant, figures and counts that can be."""
    if not isinstance(data, bytes) or len(data) != _FORMAT.size:
        return False
    row = unpack(data)
    counted = all(
        count for code, count in zip(row.codes, row.counts, strict=True) if code < FIRST_REASON
    )
    return 0.0 <= row.at_s < LATEST_S and all(map(math.isfinite, row.values)) and counted


def packed_at_s(data: bytes) -> float:
    """When a packed row begins."""
    at_s: float = struct.unpack_from("<d", data)[0]
    return at_s


def merge(rows: Sequence[Row], at_s: float) -> Row:
    """Several rows as one that begins at an instant; what none of them knew stays missing.

    A mean is weighted by how many readings knew it; a series that some did not know is what the
    others say.
    """
    columns = [_merged(SERIES[name], rows, index) for index, name in enumerate(NAMES)]
    values, codes, counts = zip(*columns, strict=True)
    return Row(at_s, values, codes, counts)


def _merged(how: How, rows: Sequence[Row], index: int) -> tuple[float, int, int]:
    known = [
        (row.values[index], row.codes[index], row.counts[index])
        for row in rows
        if row.codes[index] < FIRST_REASON
    ]
    if not known:
        return 0.0, rows[-1].codes[index], 0
    count = sum(number for _, _, number in known)
    if how == "mean":
        value = _mean([(value, number) for value, _, number in known])
        code = max(code for _, code, _ in known)
    elif how == "max":
        value, code, _ = max(known)
    else:
        value, code, _ = known[-1]
    return value, code, count


def _mean(weighted: Sequence[tuple[float, int]]) -> float:
    """Between the least and the greatest, whatever rounding does."""
    values = [value for value, _ in weighted]
    mean = sum(value * count for value, count in weighted) / sum(count for _, count in weighted)
    return min(max(values), max(min(values), mean))


def recoded(row: Row, before: Reasons, after: Reasons) -> Row:
    """The row with its reasons under the numbers that another list gives them."""
    codes = (
        code if code < FIRST_REASON else FIRST_REASON + after.code(before.text(code - FIRST_REASON))
        for code in row.codes
    )
    return row._replace(codes=tuple(codes))


def point_of(row: Row, reasons: Reasons, *, readings: float) -> HistoryPoint:
    """A row as a point.

    Args:
        row: The row.
        reasons: What its codes mean.
        readings: How many readings its span would have had without a gap.
    """
    figures = {
        name: _figure(row.values[index], row.codes[index], reasons)
        for index, name in enumerate(NAMES)
    }
    del figures["simulated"]
    known = min(1.0, row.counts[GENERATION] / readings) if readings else 0.0
    return HistoryPoint(
        at_s=row.at_s,
        known_ratio=round(known, 4),
        simulated=bool(row.values[SIMULATED]),
        **figures,
    )


def _figure(value: float, code: int, reasons: Reasons) -> Figure:
    if code >= FIRST_REASON:
        return Missing(reasons.text(code - FIRST_REASON))
    return Estimated(value) if code == ESTIMATED else value


def gap(at_s: float, reason: str) -> HistoryPoint:
    """A point of which nothing is known."""
    why = Missing(reason)
    figures: dict[str, Figure] = dict.fromkeys(NAMES, why)
    del figures["simulated"]
    return HistoryPoint(at_s=at_s, known_ratio=0.0, simulated=False, **figures)
