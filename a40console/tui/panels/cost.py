"""The cost screen's text: the rate, the three prices a million tokens, and the day by the hour."""

from __future__ import annotations

from collections.abc import Iterable

from a40console.model.control import SpendingHour, SpendingReport
from a40console.model.figures import Figure, Missing, number, ratio
from a40console.model.instants import iso_utc
from a40console.model.snapshot import Cost, Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import DASH, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, line, pad, wrap
from a40console.tui.panels.frame import heading
from a40console.tui.panels.moments import day_of, when_s

HOUR_S = 3600.0
_NAME = 12
_VALUE = 10
_TWO_COLUMNS = 100
_GAP = 4
_TOKENS = 12
_BUSY = 7
_CLOCK = 12
_LONGEST_BAR = 110
_WORD = 12
"""Cells kept free for `29 m seen`."""

_PRICE = 'usd_per_hour in the profile, or under "[rent]" in config.toml'
_BEGIN = '"since" under "[rent]" in config.toml'
_NEEDS_RATE = Missing("needs the rate")
_RENT = "rent"
"""What `since` names where the begin of the rent is known."""

_EDGE = "  "


def cost_facts(snapshot: Snapshot, report: SpendingReport | None, width: int) -> list[Line]:
    """What is paid, and what a million tokens comes to, by three spans."""
    if width < 30:
        return []
    if snapshot.cost.kind == "per_token":
        return _paid(snapshot, report, width)
    if width < _TWO_COLUMNS:
        return [*_paid(snapshot, report, width), *_million(snapshot, width)]
    left = (width - _GAP) * 2 // 5
    right = width - _GAP - left
    sides = _paid(snapshot, report, left), _million(snapshot, right)
    rows = max(map(len, sides))
    paid, million = ([*side, *[()] * (rows - len(side))] for side in sides)
    return [line(pad(a, left), " " * _GAP, b) for a, b in zip(paid, million, strict=True)]


def _paid(snapshot: Snapshot, report: SpendingReport | None, width: int) -> list[Line]:
    cost = snapshot.cost
    if cost.kind == "per_token":
        return _paid_by_token(snapshot, width)
    includes = "with disk" if cost.includes_disk else "without disk"
    tail = "SIMULATED, not counted below" if snapshot.simulated else ""
    lines = [heading("Paid", tail, width)]
    lines += _row("rate", cost.usd_per_hour, "/h", includes, _unpriced(cost), width)
    since = f"since {clean(cost.since)}" if cost.since else ""
    lines += _row("so far", _priced(cost, cost.usd_so_far), "", since, "", width)
    if report is not None:
        room = width - len(_EDGE) - _NAME - _VALUE
        lines += _row("by the hour", _priced(cost, report.usd), "", _span(report, room), "", width)
    return lines


def _paid_by_token(snapshot: Snapshot, width: int) -> list[Line]:
    """What an endpoint charged, and what that comes to by the tokens that it wrote."""
    cost = snapshot.cost
    since = f"since {clean(cost.since)}" if cost.since else ""
    lines = [heading("Paid by the token", "prompts too", width)]
    lines += _row("so far", cost.usd_so_far, "", since, "", width)
    price = cost.usd_per_million
    detail = "of the last minute's answers ÷ their tokens"
    lines += _row("1M now", price.now, "", detail, "", width)
    detail = "all that was charged ÷ generated tokens"
    return [*lines, *_row("a million", price.since_rent, "", detail, "", width)]


def _span(report: SpendingReport, room: int) -> str:
    """Since when, how long that is and how much of it was not seen: what fits, the last first."""
    whole, seen = _since(report), _seen(report)
    begin, _, length = whole.rpartition(", ")
    told = [f"since {whole}, {seen}", f"since {begin}, {seen}", f"{length}, {seen}", seen]
    if not seen:
        told = [f"since {whole}", f"since {begin}", begin]
    return next((text for text in told if len(text) <= room), told[-1])


def _since(report: SpendingReport) -> str:
    """When the report begins, and how long ago that is: it is no longer than what is known."""
    begin = when_s(report.since_s, day_of(iso_utc(report.until_s)))
    begin = begin if len(begin) > len("14:00:00") else begin[:5]
    return f"{begin}, {fmt.duration(report.until_s - report.since_s)}"


def _seen(report: SpendingReport) -> str:
    """How much of that time is not accounted for, where it is not all of it."""
    seen_s = sum(hour.observed_s for hour in report.hours)
    missing_s = report.until_s - report.since_s - seen_s
    return "" if missing_s < 60 else f"{fmt.duration(missing_s)} not seen"


def _row(
    name: str, figure: Figure, unit: str, detail: str, known_with: str, width: int
) -> list[Line]:
    """A figure with what it is of; where it is missing, why, and what would make it known."""
    head = Span(f"{_EDGE}{name:<{_NAME}}", Role.LABEL)
    if not isinstance(figure, Missing):
        value = Span(f"{shown(figure, fmt.dollars) + unit:<{_VALUE - 1}} ", Role.STRONG)
        blank = " " * (len(_EDGE) + _NAME + _VALUE)
        rest = wrap(detail, width - len(blank), Role.MUTED) or [()]
        return [
            fit(line(head, value, rest[0]), width),
            *(fit(line(blank, part), width) for part in rest[1:]),
        ]
    reason = f"{figure.reason}; known with {known_with}" if known_with else figure.reason
    parts = wrap(reason, width - _NAME - len(_EDGE) - 2, Role.MUTED)
    blank = " " * (_NAME + len(_EDGE) + 2)
    return [
        line(head, Span(f"{DASH} ", Role.MUTED), part) if index == 0 else line(blank, part)
        for index, part in enumerate(parts)
    ]


def _million(snapshot: Snapshot, width: int) -> list[Line]:
    """The three prices, each with what is divided by what: never one of them alone."""
    cost, price = snapshot.cost, snapshot.cost.usd_per_million
    speed = shown(snapshot.throughput.generation_tokens_per_s, fmt.rate)
    counted = "prompts counted too" if cost.counted == "all" else "generated ones counted"
    lines = [heading("A million tokens", counted, width)]
    now = f"the present rate ÷ {speed} tok/s"
    lines += _row("now", _priced(cost, price.now), "", now, "", width)
    session = "busiest: its seconds at the rate ÷ its tokens"
    lines += _row("session", _priced(cost, price.session), "", session, "", width)
    rent = "all dollars, idle ones too ÷ all tokens"
    known_with = "" if _RENT in cost.since or _unpriced(cost) else _BEGIN
    lines += _row("since rent", _priced(cost, price.since_rent), "", rent, known_with, width)
    return lines


def _priced(cost: Cost, figure: Figure) -> Figure:
    """The figure; where it is missing for want of a price, that is said of the rate alone."""
    if isinstance(figure, Missing) and figure == cost.usd_per_hour:
        return _NEEDS_RATE
    return figure


def _unpriced(cost: Cost) -> str:
    """What would make the price known, where it is not."""
    if cost.kind == "per_token":
        return ""
    return _PRICE if isinstance(cost.usd_per_hour, Missing) else ""


def hours_heading(report: SpendingReport | None, width: int) -> list[Line]:
    """The rule above the table: since when it counts, and the sums."""
    if report is None:
        return [heading("By the hour", "", width)]
    parts = [
        f"{shown(report.usd, fmt.dollars)}",
        f"{shown(report.generated_tokens, fmt.count)} tokens",
        f"busy {shown(report.busy_s, fmt.duration)}",
        f"{shown(report.usd_per_million, fmt.dollars)}/1M{_of_what(report)}",
    ]
    since = f"since {_since(report)}"
    begin = since.rpartition(", ")[0]
    told = (
        f"{first}: {'  '.join(parts[:some])}" for some in (4, 3, 2, 1) for first in (since, begin)
    )
    room = width - len("─ By the hour   ─")
    return [heading("By the hour", next((t for t in told if len(t) <= room), begin), width)]


def _of_what(report: SpendingReport) -> str:
    """Which of the dollars and tokens beside it a price is of, where it is not of all of them."""
    usd, tokens = number(report.priced_usd), number(report.priced_tokens)
    if usd is None or tokens is None:
        return ""
    if usd == number(report.usd) and tokens == number(report.generated_tokens):
        return ""
    paid = shown(report.priced_usd, fmt.dollars)
    return f" (of {paid} for {shown(report.priced_tokens, fmt.count)} of them)"


def hours(report: SpendingReport | None, trouble: str, width: int, now: str) -> list[Line]:
    """The hours, the present one first."""
    if trouble:
        return [fit(line(_EDGE, Span(f"✖ {clean(trouble)}", Role.BAD)), width)]
    if report is None:
        return [line(_EDGE, Span("the hours are fetched", Role.MUTED))]
    today = day_of(now)
    return [
        _columns(width),
        *(_hour(hour, report, width, today) for hour in reversed(report.hours)),
    ]


def _bar_width(width: int) -> int:
    """Cells for the bars: what the figures, and a word behind them, leave."""
    room = width - len(_EDGE) - _CLOCK - 2 * _VALUE - _TOKENS - len(_EDGE) - _BUSY
    return max(0, min(_LONGEST_BAR, room - _WORD))


def _columns(width: int) -> Line:
    bar = _bar_width(width)
    return fit(
        line(
            Span(f"{_EDGE}{'hour from':>{_CLOCK}}{'$':>{_VALUE}}{'tokens':>{_TOKENS}}", Role.LABEL),
            Span(f"  {'':<{bar}}{'busy':>{_BUSY}}{'$/1M':>{_VALUE}}", Role.LABEL),
        ),
        width,
    )


def _hour(hour: SpendingHour, report: SpendingReport, width: int, today: str) -> Line:
    at = when_s(hour.at_s, today)
    at = at if len(at) > len("14:00:00") else at[:5]
    head = line(Span(f"{_EDGE}{at:>{_CLOCK}}", Role.MUTED))
    if isinstance(hour.usd, Missing) and isinstance(hour.generated_tokens, Missing):
        gap = Span(f"{DASH:>{_VALUE}}", Role.MUTED)
        return fit(line(head, gap, Span(f"  {clean(hour.usd.reason)}", Role.MUTED)), width)
    busiest = max(_tokens(report.hours), default=0.0)
    share = (number(hour.generated_tokens) or 0.0) / busiest if busiest else 0.0
    busy = ratio(hour.busy_s, hour.observed_s or Missing("not seen"))
    bar = _bar_width(width)
    return fit(
        line(
            head,
            f"{shown(hour.usd, fmt.dollars):>{_VALUE}}",
            f"{shown(hour.generated_tokens, fmt.count):>{_TOKENS}}",
            "  ",
            Span(("━" * max(round(share * bar), share > 0)).ljust(bar), Role.SERIES),
            f"{shown(busy, fmt.percent):>{_BUSY}}",
            Span(f"{shown(hour.usd_per_million, fmt.dollars):>{_VALUE}}", Role.STRONG),
            Span(_partial(hour, report) or _unpaid(hour), Role.MUTED),
        ),
        width,
    )


def _tokens(listed: Iterable[SpendingHour]) -> Iterable[float]:
    for hour in listed:
        tokens = number(hour.generated_tokens)
        if tokens is not None:
            yield tokens


def _partial(hour: SpendingHour, report: SpendingReport) -> str:
    """How much of an hour was seen, where it is less than there was of it."""
    if not hour.observed_s and isinstance(hour.generated_tokens, Missing):
        return f"  {clean(hour.generated_tokens.reason)}"
    passed_s = min(HOUR_S, report.until_s - hour.at_s)
    if hour.observed_s >= passed_s - 60:
        return ""
    return f"  {fmt.duration(hour.observed_s)} seen"


def _unpaid(hour: SpendingHour) -> str:
    """How much of an hour's tokens its dollars paid for, where it is not all of them."""
    share = ratio(hour.priced_tokens, hour.generated_tokens)
    known = number(share)
    if known is None or known >= 1.0 or isinstance(hour.usd, Missing):
        return ""
    return f"  {shown(share, fmt.percent)} paid"
