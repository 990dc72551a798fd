"""What the console remembers between snapshots, all bounded: speeds, rows, marks, phases."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import attrgetter

from a40console.model.control import HistoryPoint
from a40console.model.event import Event
from a40console.model.figures import Figure, Missing, number
from a40console.model.history import history_point
from a40console.model.lasting import Endings, begun
from a40console.model.snapshot import RecentRequest, Session, Slot, Snapshot
from a40console.tui.bins import Bins, Kind
from a40console.tui.engine_kinds import NO_KINDS, Kinds, kinds, speaks, value_of
from a40console.tui.format import unix_seconds
from a40console.tui.timeline import SPEED_SPAN_S, Timeline, TimeView
from a40console.tui.track import SPARK_SPAN_S, Track

__all__ = ["SPARK_SPAN_S", "SPEED_SPAN_S", "Mark", "Past", "PhaseSpan", "session_key"]

_SPEED_POINTS = 1000
_SPEED_STEP_S = 0.5
"""Readings that come faster are not all kept: the points must reach back as far as the chart."""

_MARKS = 1000
_PHASES = 32
_REQUESTS = 128
_FORGET_AFTER_S = 120.0
_APART_STEPS = 1.5
"""Points of the history further apart, in steps, have a gap between them."""

_APART_READINGS = 3.5
"""The same for readings, in intervals: a late timer skips one or two."""

_NOTE = "note.added"
_LABEL = 24


@dataclass(slots=True)
class PhaseSpan:
    """A phase of the engine that this console watched."""

    name: str
    seconds: Figure


@dataclass(frozen=True, slots=True)
class Mark:
    """An event on the time axis."""

    at_s: float
    label: str
    severity: str
    text: str
    note: bool = False
    """Whether the operator wrote it."""

    over: bool = False
    """Whether it told of something that lasted, and has ended: no warning any more."""


def session_key(session: Session) -> str:
    """What identifies the row of a session whose client has the turn; a request has its id."""
    return f"session {session.session}"


class Past:
    """Remembers what charts and sparks need; `observe` takes each snapshot once."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.speed: deque[HistoryPoint] = deque(maxlen=_SPEED_POINTS)
        """Every second of the last quarter of an hour, oldest first: as the service's history has
        it, the newest few as their snapshots had them until they are fetched."""

        self.timeline = Timeline()
        self.tracks: dict[str, Track] = {}
        self.marks: tuple[Mark, ...] = ()
        """In the order of their time."""

        self.phases: deque[PhaseSpan] = deque(maxlen=_PHASES)
        self.oldest_event: Event | None = None
        """How far back the journal was read."""

        self._marked: dict[tuple[int, str], Mark] = {}
        self._lasting: dict[tuple[int, str], Event] = {}
        self._endings = Endings()
        self._engine_id = ""
        self._places = 0
        self._highest = 0.0
        self._interval_s = 1.0
        self._recalls = 0
        self._bins: dict[tuple[str, float], Bins] = {}
        self._bins_of: object = None
        self._pretends = False
        self._kinds = NO_KINDS
        self._kinds_of: object = None

    def frozen(self) -> Past:
        """The same memory as it is now: what comes later does not move it."""
        still = copy(self)
        still.speed = self.speed.copy()
        still.tracks = {key: track.frozen() for key, track in self.tracks.items()}
        still.phases = deque(map(copy, self.phases))
        still._bins, still._bins_of = {}, None  # noqa: SLF001
        return still

    def observe(self, snapshot: Snapshot) -> None:
        """Add what one snapshot says."""
        self.now_s = unix_seconds(snapshot.at) or self.now_s
        self._interval_s = snapshot.interval_s
        if not self.speed or self.now_s >= self.speed[-1].at_s + _SPEED_STEP_S:
            self.speed.append(history_point(snapshot, self.now_s))
            if speaks(self.speed[-1]):
                self._pretends = snapshot.simulated
        self._observe_rows(snapshot)
        self._observe_phase(snapshot)

    def recall(self, points: Iterable[HistoryPoint]) -> None:
        """Put the service's history in the place of what was seen here of the same time.

        A snapshot's speed is the mean of its last 5 s; the history has each second's own.

        Args:
            points: Of every second, oldest first.
        """
        told = tuple(points)
        if not told:
            return
        first_s, end_s = told[0].at_s, told[-1].at_s + 1
        before = [point for point in self.speed if point.at_s < first_s]
        after = [point for point in self.speed if point.at_s >= end_s]
        self.speed.clear()
        self.speed.extend((*before, *told, *after))
        self._recalls += 1

    def mark(self, events: Iterable[Event]) -> None:
        """Put events that explain a change of speed on the time axis."""
        before = len(self._marked)
        for event in events:
            at_s = unix_seconds(event.at)
            if at_s is None:
                continue
            if self.oldest_event is None or event.id < self.oldest_event.id:
                self.oldest_event = event
            self._endings.take(event)
            if event.marked:
                self._marked[event.id, event.at] = _mark(event, at_s)
                if begun(event) is not None:
                    self._lasting[event.id, event.at] = event
        if self._end_marks() or len(self._marked) > before:
            newest = sorted(self._marked)[-_MARKS:]
            self._marked = {key: self._marked[key] for key in newest}
            self.marks = tuple(sorted(self._marked.values(), key=attrgetter("at_s")))

    def _end_marks(self) -> bool:
        """Let marks of what is over warn no more; whether there are any that did."""
        over = [key for key, event in self._lasting.items() if self._endings.over(event)]
        for key in over:
            del self._lasting[key]
            if (mark := self._marked.get(key)) is not None:
                self._marked[key] = replace(mark, severity="info", over=True)
        return bool(over)

    def visible_marks(self, view: TimeView) -> list[Mark]:
        """The marks in the span that is looked at, oldest first."""
        since_s, end_s = view.window(self.now_s)
        return [mark for mark in self.marks if since_s <= mark.at_s <= end_s + 1]

    @property
    def known_from_s(self) -> float | None:
        """Unix time from which on every second is here."""
        return self.speed[0].at_s if self.speed else None

    def points(self, view: TimeView) -> Iterator[HistoryPoint]:
        """What is known of the span that is looked at, oldest first."""
        since_s, end_s = view.window(self.now_s)
        known_from_s = self.known_from_s
        for point in self.timeline.points(view, self.now_s):
            if known_from_s is None or point.at_s < known_from_s:
                yield point
        for point in self.speed:
            if since_s <= point.at_s <= end_s:
                yield point

    def kind(self, view: TimeView) -> Kinds:
        """Whether what charts draw of a span is a simulated engine's, and what they leave out."""
        state = (view, self._recalls, self.timeline.version, self._pretends)
        if state != self._kinds_of:
            self._kinds_of, self._kinds = state, kinds(self.points(view))
        return self._kinds

    def series(
        self, name: str, view: TimeView, cells: int, kind: Kind = "mean"
    ) -> list[float | None]:
        """One figure of the history over the span that is looked at, a value or None a cell."""
        if cells < 1:
            return []
        pretends = self.kind(view).simulated
        state = (view, self._recalls, self.timeline.version, pretends)
        if state != self._bins_of:
            self._bins.clear()
            self._bins_of = state
        width_s = view.span_s / cells
        bins = self._bins.get((name, width_s))
        if bins is None:
            bins = self._bins[name, width_s] = Bins(width_s)
            for point in self.points(view):
                bins.add(point.at_s, value_of(point, name, simulated=pretends))
        seen_s = bins.last_s
        new = takewhile(lambda point: point.at_s > seen_s, reversed(self.speed))
        for point in reversed([*new]):
            bins.add(point.at_s, value_of(point, name, simulated=pretends))
        step_s = self.timeline.step_s(view, self.now_s)
        reach_s = max(_APART_STEPS * step_s, _APART_READINGS * self._interval_s)
        _, end_s = view.window(self.now_s)
        return bins.bridged(end_s, cells, reach_s, kind)

    def point_at(self, view: TimeView) -> HistoryPoint | None:
        """What is known of the instant at which the span that is looked at ends."""
        _, end_s = view.window(self.now_s)
        last = None
        for point in self.points(view):
            last = point
        reach_s = 2 * self.timeline.step_s(view, self.now_s) + 3
        return last if last is not None and end_s - last.at_s <= reach_s else None

    @property
    def highest_slot_speed(self) -> float:
        """The highest speed of any live row in the span of the sparks, for their common scale."""
        return self._highest

    def ended_within(self, view: TimeView) -> list[RecentRequest]:
        """Requests known here that ended in the span that is looked at, newest first."""
        since_s, end_s = view.window(self.now_s)
        ended = [
            track.ended
            for track in self.tracks.values()
            if track.ended is not None
            and since_s <= (unix_seconds(track.ended.ended_at) or 0.0) <= end_s
        ]
        return sorted(ended, key=attrgetter("ended_at"), reverse=True)

    def _observe_rows(self, snapshot: Snapshot) -> None:
        if not isinstance(snapshot.slots, Missing):
            for slot in snapshot.slots:
                self._request(slot).see(slot, self.now_s)
        if not isinstance(snapshot.sessions, Missing):
            for session in snapshot.sessions:
                self._track(session_key(session))
        for ended in snapshot.recent:
            self._track(ended.request_id).end(ended)
        self._forget()
        live = (track for track in self.tracks.values() if track.seen_s >= self.now_s)
        self._highest = max((track.recent_peak for track in live if not track.ended), default=0.0)

    def _request(self, slot: Slot) -> Track:
        """Its track; a client may give a second request the id of one that is over."""
        known, age_s = self.tracks.get(slot.request_id), number(slot.age_s)
        if known is not None and known.ended is not None and age_s is not None:
            began_s = self.now_s - age_s
            if began_s > known.last_live_s:
                del self.tracks[slot.request_id]
        return self._track(slot.request_id)

    def _track(self, key: str) -> Track:
        track = self.tracks.get(key)
        if track is None:
            self._places += 1
            track = self.tracks[key] = Track(self._places, self.now_s)
        track.seen_s = self.now_s
        return track

    def _forget(self) -> None:
        """Sessions that are gone, and beyond a bound the requests that ended longest ago."""
        gone = [
            (track.seen_s, track.place, key)
            for key, track in self.tracks.items()
            if track.seen_s < self.now_s
        ]
        spare = len(self.tracks) - _REQUESTS
        for index, (seen_s, _, key) in enumerate(sorted(gone)):
            session = self.tracks[key].slot is None and self.tracks[key].ended is None
            if index < spare or (session and self.now_s - seen_s > _FORGET_AFTER_S):
                del self.tracks[key]

    def _observe_phase(self, snapshot: Snapshot) -> None:
        engine = snapshot.engine
        if isinstance(engine.id, Missing) or isinstance(engine.phase, Missing):
            return
        if engine.id != self._engine_id:
            self._engine_id = engine.id
            self.phases.clear()
        if not self.phases or self.phases[-1].name != engine.phase:
            self.phases.append(PhaseSpan(engine.phase, engine.phase_s))
        self.phases[-1].seconds = engine.phase_s


def _mark(event: Event, at_s: float) -> Mark:
    """A few words for the time axis: `engine.rolled_back` → `rolled back`; a note's own words."""
    if event.kind == _NOTE:
        words = event.text if len(event.text) <= _LABEL else event.text[: _LABEL - 1] + "…"
        return Mark(at_s, words, event.severity, event.text, note=True)
    label = event.kind.removeprefix("engine.").replace(".", " ").replace("_", " ")
    return Mark(at_s, label, event.severity, event.text)
