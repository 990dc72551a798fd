"""What the feed tells the application."""

from __future__ import annotations

from collections.abc import Sequence

from textual.message import Message

from a40console.model.control import Hello, HistoryPoint, ReadMark, Trouble
from a40console.model.event import Event
from a40console.model.snapshot import Snapshot


class SnapshotArrived(Message):
    """The service sent a snapshot; one that waits is replaced by a newer one."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot

    def can_replace(self, message: Message) -> bool:
        """A newer snapshot says all that an older one said."""
        return isinstance(message, SnapshotArrived)


class ServiceFound(Message):
    """A service answers; its past came with it."""

    def __init__(
        self,
        hello: Hello,
        history: Sequence[HistoryPoint],
        events: Sequence[Event],
        read: ReadMark,
    ) -> None:
        super().__init__()
        self.hello = hello
        self.read = read
        self.history = history
        self.events = events


class HistoryArrived(Message):
    """Seconds of the past as the service has them, oldest first."""

    def __init__(self, points: Sequence[HistoryPoint]) -> None:
        super().__init__()
        self.points = points


class EventsArrived(Message):
    """New entries of the journal."""

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__()
        self.events = events


class ServiceLost(Message):
    """No service answers, and why."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self.trouble = trouble
