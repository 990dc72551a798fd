"""What the console remembers between snapshots, all bounded: speeds, sparks, marks, phases."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from a40console.model.control import HistoryPoint
from a40console.model.event import Event
from a40console.model.figures import Figure, Missing, number
from a40console.model.freshness import present
from a40console.model.snapshot import Session, Snapshot
from a40console.tui.format import unix_seconds

SPEED_SPAN_S = 900.0
SPARK_SPAN_S = 60.0
_SPEED_POINTS = 1000
_EVENTS = 500
_PHASES = 32
_FORGET_AFTER_S = 120.0
_MARKED = "engine."


@dataclass(slots=True)
class Track:
    """One row's recent speed, and when it was last seen."""

    place: int
    """Order of first appearance: rows keep their place."""

    seen_s: float
    points: deque[tuple[float, float | None]] = field(default_factory=lambda: deque(maxlen=120))


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


def session_key(session: Session) -> str:
    """What identifies the row of a session whose client has the turn; a request has its id."""
    return f"session {session.session}"


class Past:
    """Remembers what charts and sparks need; `observe` takes each snapshot once."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.speed: deque[HistoryPoint] = deque(maxlen=_SPEED_POINTS)
        self.tracks: dict[str, Track] = {}
        self.marks: deque[Mark] = deque(maxlen=_EVENTS)
        self.phases: deque[PhaseSpan] = deque(maxlen=_PHASES)
        self._engine_id = ""
        self._places = 0
        self._last_event = 0
        self._highest = 0.0

    def observe(self, snapshot: Snapshot) -> None:
        """Add what one snapshot says."""
        self.now_s = unix_seconds(snapshot.at) or self.now_s
        if not self.speed or self.now_s > self.speed[-1].at_s:
            self.speed.append(_point(snapshot, self.now_s))
        self._observe_slots(snapshot)
        self._observe_phase(snapshot)

    def recall(self, points: Iterable[HistoryPoint]) -> None:
        """Put the service's history before what was seen here."""
        known = {round(point.at_s): point for point in self.speed}
        merged = {round(point.at_s): point for point in points} | known
        self.speed.clear()
        self.speed.extend(merged[second] for second in sorted(merged))

    def mark(self, events: Iterable[Event]) -> None:
        """Put events that explain a change of speed on the time axis."""
        for event in events:
            at_s = unix_seconds(event.at)
            if event.id <= self._last_event or at_s is None:
                continue
            self._last_event = event.id
            if event.severity != "info" or event.kind.startswith(_MARKED):
                self.marks.append(Mark(at_s, _label(event.kind), event.severity))

    @property
    def highest_slot_speed(self) -> float:
        """The highest speed of any row in the span of the sparks, for their common scale."""
        return self._highest

    def _observe_slots(self, snapshot: Snapshot) -> None:
        if not isinstance(snapshot.slots, Missing):
            for slot in snapshot.slots:
                speed = number(slot.window_tokens_per_s)
                self._track(slot.request_id).points.append((self.now_s, speed))
        if not isinstance(snapshot.sessions, Missing):
            for session in snapshot.sessions:
                self._track(session_key(session))
        gone = [
            key for key, track in self.tracks.items() if self.now_s - track.seen_s > _FORGET_AFTER_S
        ]
        for key in gone:
            del self.tracks[key]
        since_s = self.now_s - SPARK_SPAN_S
        self._highest = max(
            (
                speed
                for track in self.tracks.values()
                for at_s, speed in track.points
                if speed is not None and at_s >= since_s
            ),
            default=0.0,
        )

    def _track(self, key: str) -> Track:
        track = self.tracks.get(key)
        if track is None:
            self._places += 1
            track = self.tracks[key] = Track(self._places, self.now_s)
        track.seen_s = self.now_s
        return track

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


def _point(snapshot: Snapshot, at_s: float) -> HistoryPoint:
    """A snapshot's rates; a gap, not the last value, where their source has grown old."""
    speed, requests = snapshot.throughput, snapshot.requests
    now = partial(present, interval_s=snapshot.interval_s)
    return HistoryPoint(
        at_s=at_s,
        generation_tokens_per_s=now(speed.generation_tokens_per_s, speed.age_s),
        prefill_tokens_per_s=now(speed.prefill_tokens_per_s, speed.age_s),
        running=now(requests.running, requests.age_s),
        waiting=now(requests.waiting, requests.age_s),
    )


def _label(kind: str) -> str:
    """A few words for the time axis: `engine.rolled_back` → `rolled back`."""
    return kind.removeprefix(_MARKED).replace(".", " ").replace("_", " ")
