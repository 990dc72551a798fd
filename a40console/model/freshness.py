"""When a figure still speaks of the present. Pure."""

from __future__ import annotations

from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import Snapshot


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
