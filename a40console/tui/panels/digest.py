"""What happened while nobody looked, in one calm page: pure."""

from __future__ import annotations

from collections.abc import Iterable

from a40console.model.control import Digest, EngineStart, FindingSpan
from a40console.model.event import Event
from a40console.model.figures import Figure, Missing, Text, number
from a40console.model.instants import iso_utc, unix_s
from a40console.tui import format as fmt
from a40console.tui.format import shown
from a40console.tui.ink import Line, Role, Span, clean, fit, line, wrap
from a40console.tui.panels.findings import GLYPHS
from a40console.tui.panels.moments import WIDEST, day_of, when, when_s
from a40console.tui.panels.starts import ended_as_asked

_NAME = WIDEST + 1
_JUST_NOW_S = 60.0
_COUNTED_WITHIN_S = 60.0
_LISTED = 40
"""Happenings told one by one; the journal has the others."""


def weighty(digest: Digest) -> bool:
    """Whether something happened that an operator should be told of unasked."""
    started = any(_earlier(start, digest) for start in digest.starts)
    happened = started or digest.ends or digest.findings
    return bool(happened) or digest.warnings > 0 or digest.errors > 0


def _earlier(start: EngineStart, digest: Digest) -> bool:
    """Whether it was started before now, as opposed to what the operator has just begun."""
    at_s = unix_s(start.started_at)
    return at_s is None or digest.until_s - at_s > _JUST_NOW_S


def worked(digest: Digest) -> bool:
    """Whether requests were answered meanwhile."""
    return bool(number(digest.requests_finished))


def new_events(digest: Digest) -> int:
    """Events in the journal after the one it begins with: what the console counts as new."""
    return max(0, digest.until_event - digest.since_event)


def span_of(digest: Digest) -> str:
    """How long it was: `8 h`."""
    return fmt.duration(max(0.0, digest.until_s - digest.since_s))


def digest_text(digest: Digest, width: int) -> list[Line]:
    """The figures of the time away, then what happened in it, oldest first."""
    today = day_of(iso_utc(digest.until_s))
    facts = [("span", _span(digest, today)), *_figures(digest, today)]
    lines = _simulated(digest, width)
    lines += [fit(line(Span(f"{name:<{_NAME}}", Role.LABEL), body), width) for name, body in facts]
    happened = sorted(_happenings(digest, today), key=lambda entry: entry[0])
    if happened:
        lines.append(())
    for _, at, mark, text in happened[-_LISTED:]:
        lines += [
            line(
                Span(f"{at if index == 0 else '':<{WIDEST}} ", Role.MUTED),
                Span(f"{mark[0]} " if index == 0 else "  ", mark[1]),
                part,
            )
            for index, part in enumerate(wrap(text, width - WIDEST - 3))
        ]
    return [*lines, *_rest(digest, len(happened), width)]


def _simulated(digest: Digest, width: int) -> list[Line]:
    if not digest.simulated:
        return []
    said = line(Span("SIMULATED ", Role.WARN), "an engine that only pretends ran in this time;")
    rest = "its tokens, requests and dollars are not counted"
    return [fit(said, width), fit(line(Span(rest, Role.MUTED)), width)]


def _span(digest: Digest, today: str) -> Line:
    begin, end = when_s(digest.since_s, today), when_s(digest.until_s, today)
    told = line(Span(span_of(digest), Role.STRONG), f"  {begin} to {end}")
    if digest.since_s - digest.counted_since_s <= _COUNTED_WITHIN_S:
        return told
    counted = when_s(digest.counted_since_s, today)
    return line(told, Span(f"  sums count from {counted}", Role.MUTED))


def _figures(digest: Digest, today: str) -> Iterable[tuple[str, Line]]:
    yield "requests", _requests(digest)
    yield "generated", _generated(digest)
    peak_at = _at(digest.peak_at_s, today)
    yield "peak", _peak(digest, peak_at)
    yield "spent", _figure(digest.usd_spent, fmt.dollars, "")
    gap = number(digest.longest_gap_s)
    if gap:
        where = _at(digest.longest_gap_at_s, today)
        text = f"no engine's speed was known for {fmt.duration(gap)}{where}"
        yield "gap", line(Span(text, Role.WARN if gap > 60 else Role.MUTED))


def _requests(digest: Digest) -> Line:
    finished = digest.requests_finished
    if isinstance(finished, Missing):
        return _missing(finished)
    parts = [line(f"{shown(finished, fmt.count)} finished")]
    for figure, word in ((digest.requests_failed, "failed"), (digest.requests_aborted, "aborted")):
        if number(figure):
            role = Role.WARN if word == "failed" else Role.MUTED
            parts.append(line(Span(f"  {shown(figure, fmt.count)} {word}", role)))
    return line(*parts)


def _generated(digest: Digest) -> Line:
    if isinstance(digest.generated_tokens, Missing):
        return _missing(digest.generated_tokens)
    busy = digest.busy_s
    took = "" if isinstance(busy, Missing) else f"  busy for {shown(busy, fmt.duration)} of it"
    return line(f"{shown(digest.generated_tokens, fmt.count)} tokens", Span(took, Role.MUTED))


def _figure(figure: Figure, formatter: fmt.Formatter, unit: str) -> Line:
    if isinstance(figure, Missing):
        return _missing(figure)
    return line(shown(figure, formatter), unit)


def _peak(digest: Digest, at: str) -> Line:
    """The peak; a simulated engine's counts among the speeds, though its tokens do not."""
    told = _figure(digest.peak_tokens_per_s, fmt.rate, f" tok/s{at}")
    if not digest.simulated or isinstance(digest.peak_tokens_per_s, Missing):
        return told
    own = number(digest.generated_tokens)
    return line(told, Span("  perhaps SIMULATED" if own else "  SIMULATED", Role.WARN))


def _missing(figure: Missing) -> Line:
    return line(Span(f"{fmt.DASH} {clean(figure.reason)}", Role.MUTED))


def _at(figure: Figure, today: str) -> str:
    at_s = number(figure)
    return "" if at_s is None else f" at {when_s(at_s, today)}"


_Happening = tuple[str, str, tuple[str, Role], str]
"""Its instant for the order, the time as it is shown, its glyph, its words."""


def _happenings(digest: Digest, today: str) -> Iterable[_Happening]:
    for start in digest.starts:
        yield _happening(start.started_at, today, ("●", Role.GOOD), _started(start))
    for end in digest.ends:
        at = end.ended_at
        yield _happening(at, today, _end_mark(end), _ended(end))
    for finding in digest.findings:
        yield _happening(finding.began_at, today, GLYPHS[finding.severity], _found(finding, today))
    for note in digest.notes:
        yield _happening(note.at, today, ("◆", Role.KEY), _noted(note))


def _happening(at: Text, today: str, mark: tuple[str, Role], text: str) -> _Happening:
    known = "" if isinstance(at, Missing) else at
    return known, when(known, today) if known else fmt.DASH, mark, text


def _named(start: EngineStart) -> str:
    return f"SIMULATED {start.profile}" if start.simulated else start.profile


def _started(start: EngineStart) -> str:
    ready = start.ready_after_s
    if isinstance(ready, Missing):
        return f"{_named(start)} was started, {ready.reason}"
    return f"{_named(start)} was started, served {shown(ready, fmt.duration)} later"


def _ended(start: EngineStart) -> str:
    served = number(start.served_s)
    after = f" after serving for {fmt.duration(served)}" if served else ""
    cause = start.end.reason if isinstance(start.end, Missing) else start.end.cause
    return f"{_named(start)} ended{after}: {cause}"


def _end_mark(start: EngineStart) -> tuple[str, Role]:
    """A stop that was asked for is no failure, whatever signal it took."""
    return ("○", Role.MUTED) if ended_as_asked(start) else GLYPHS["error"]


def _found(finding: FindingSpan, today: str) -> str:
    if isinstance(finding.ended_at, Missing):
        return f"{finding.title}, still so"
    return f"{finding.title}, until {when(finding.ended_at, today)}"


def _noted(note: Event) -> str:
    return f"note: {note.text}"


def _rest(digest: Digest, told: int, width: int) -> list[Line]:
    """What the page leaves out."""
    words = []
    if told > _LISTED:
        words.append(f"{told - _LISTED} earlier ones are in the journal.")
    if new := new_events(digest):
        grave = ((digest.errors, "error"), (digest.warnings, "warning"))
        counted = [fmt.plural(some, word) for some, word in grave if some]
        words.append(f"In the journal: {', '.join([fmt.plural(new, 'event'), *counted])}.")
    if not digest.complete:
        words.append("What is kept does not reach back to the begin of this time.")
    lines = wrap(" ".join(words), width, Role.MUTED)
    return [(), *lines] if lines else []
