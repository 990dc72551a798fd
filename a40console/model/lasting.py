"""Events that tell of something that lasts, and those that tell that it is over. Pure."""

from __future__ import annotations

from a40console.model.event import Event

_ENGINE_MOVES = frozenset(
    {
        "engine.adopted",
        "engine.ended",
        "engine.failed",
        "engine.rolled_back",
        "engine.serving",
        "engine.starting",
        "engine.stopped",
    }
)
"""Another engine, or none: what a former one's sources and its start waited for is over."""

_OF_AN_ENGINE = ("source", "wait")


def begun(event: Event) -> tuple[str, str] | None:
    """What lasts from this event on, as its kind and its name; None for what only happened."""
    match event.kind:
        case "finding.began":
            return "finding", event.data.get("code", "")
        case "session.capture" if event.severity != "info":
            return "capture", event.data.get("session", "")
        case "source.failed":
            return "source", _source(event)
        case "engine.waiting_for_memory" | "engine.waiting_for_port":
            return "wait", ""
    return None


def ended(event: Event) -> tuple[tuple[str, str], ...]:
    """What is over by this event: kinds and names, an empty name for all of a kind."""
    match event.kind:
        case "finding.ended":
            return (("finding", event.data.get("code", "")),)
        case "session.capture" if event.severity == "info":
            return (("capture", event.data.get("session", "")),)
        case "source.restored":
            return (("source", _source(event)),)
        case "service.started":
            return (("capture", ""),)  # no capture outlives its service
        case kind if kind in _ENGINE_MOVES:
            return tuple((kind, "") for kind in _OF_AN_ENGINE)
    return ()


def _source(event: Event) -> str:
    """`vllm.metrics`, which both events begin with."""
    return event.text.replace(":", " ").partition(" ")[0]


_NEVER = ("", 0)


class Endings:
    """Knows of each lasting thing when it was last told to be over.

    By the instant first: ids begin again with another journal.
    """

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str], tuple[str, int]] = {}

    def take(self, event: Event) -> None:
        """Note what is over by an event."""
        for name in ended(event):
            self._newest[name] = max((event.at, event.id), self._newest.get(name, _NEVER))

    def over(self, event: Event) -> bool:
        """Whether what this event began is over; false for what only happened."""
        name = begun(event)
        if name is None:
            return False
        whole_kind = name[0], ""
        newest = max(self._newest.get(name, _NEVER), self._newest.get(whole_kind, _NEVER))
        return newest > (event.at, event.id)
