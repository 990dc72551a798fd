"""When a figure still speaks of the present. Pure."""

from __future__ import annotations

from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import Snapshot

MEASURED_STALE_S = 3_600.0
"""An older measurement is no more than a memory: a machine and its neighbours change."""


def present(figure: Figure, age_s: Figure, *, interval_s: float) -> Figure:
    """The figure while its source is fresh; missing, with the source's age, once it is old.

    Fresh is what was read within three intervals, and within 5 s at any rate.

    Args:
        figure: What is shown as of now.
        age_s: Seconds since its source was read.
        interval_s: Seconds between snapshots.
    """
    age = number(age_s)
    if age is None or age <= max(5.0, 3 * interval_s):
        return figure
    return Missing(f"its source is {age:.0f} s old")


def present_speed(snapshot: Snapshot) -> Figure:
    """Tokens generated a second, as a verdict may tell it of now."""
    speed = snapshot.throughput
    return present(speed.generation_tokens_per_s, speed.age_s, interval_s=snapshot.interval_s)


def speed_unit(snapshot: Snapshot) -> str:
    """What stands behind that speed: its window too, where nothing decodes any more.

    The rate is the mean of its window, so it goes on for as long after the last token.
    """
    speed, slots = number(present_speed(snapshot)), snapshot.slots
    if isinstance(slots, Missing):
        decodes = number(snapshot.requests.running) != 0
    else:
        decodes = any(slot.phase == "decode" for slot in slots)
    if decodes or not speed:
        return "tok/s"
    window_s = snapshot.throughput.window_s
    return f"tok/s ({window_s:.{0 if window_s >= 1 else 1}f} s)"
