"""Which runs are on one machine alone, and how that is told."""

from __future__ import annotations

from dataclasses import dataclass

MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCopied:
    """The runs measured here that no other machine has as they are, and what to do about it."""

    ids: tuple[str, ...]
    """Newest first."""

    passing: bool
    """Whether this machine will be gone with all that is on it: a rented pod."""

    pull: str
    """The command that copies them, for another machine."""

    volume: str = ""
    """A folder on a volume that has them too, and may outlive this machine; empty without one."""


def told(left: NotCopied) -> tuple[str, ...]:
    """What is lost with the machine, and the command that saves it; nothing where nothing is."""
    if not left.passing or not left.ids:
        return ()
    more = len(left.ids) - MOST_NAMED
    names = ", ".join(left.ids[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    runs = "1 run is" if len(left.ids) == 1 else f"{len(left.ids)} runs are"
    sentences = (
        f"{runs} on this machine alone, and lost with it: {names}.",
        f"From your own machine: {left.pull}",
    )
    if not left.volume:
        return sentences
    volume = (
        f"A second copy is in {left.volume}: a network volume outlives the pod, a volume disk "
        "is deleted with it."
    )
    return (*sentences, volume)
