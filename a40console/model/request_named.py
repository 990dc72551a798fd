"""The running request that an operator names, by its slot's number or its id. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.model.snapshot import Slot


def request_named(slots: Sequence[Slot], named: str) -> Slot | None:
    """The request of that id, else the one in the slot of that number; None where there is none."""
    by_id = (slot for slot in slots if named and slot.request_id == named)
    by_number = (slot for slot in slots if named == str(slot.slot))
    return next(by_id, None) or next(by_number, None)


def none_named(slots: Sequence[Slot], named: str) -> tuple[str, str]:
    """That there is none, and which run instead."""
    listed = ", ".join(f"{slot.slot}: {slot.request_id}" for slot in slots)
    what = f"slot {named[:60]} holds no request" if named.isdecimal() else f"no {named[:60]!r} runs"
    message = f"{what[0].upper()}{what[1:]}" if named else "No request is named"
    return message, f"running: {listed}" if listed else "no request is running"
