"""What panels draw of a snapshot, as text."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.model.snapshot import Snapshot
from a40console.tui.ink import Line
from a40console.tui.keymap import resolve
from a40console.tui.panels import slots
from a40console.tui.panels.slot_columns import layout
from a40console.tui.past import Past
from a40console.tui.reading import Link, Reading
from tests import make_snapshot as make


def read(snapshot: Snapshot, *, link: Link | None = None, age_s: float = 0.0) -> Reading:
    past = Past()
    past.recall(make.history())
    past.mark(make.events())
    past.observe(snapshot)
    return Reading(
        snapshot=snapshot,
        link=link or Link("live"),
        age_s=age_s,
        unread=3,
        past=past,
        keymap=resolve({}),
    )


def table(reading: Reading, width: int) -> list[Line]:
    form = layout(width)
    body = [slots.draw(row, form, reading) for row in slots.rows(reading)]
    return [slots.header(form), *body, slots.sum_line(reading, form)]


def text(lines: Sequence[Line]) -> str:
    return "\n".join("".join(span.text for span in entry) for entry in lines)
