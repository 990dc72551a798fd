"""A warning that lasted warns no more once what it told of has ended: every kind of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Size

from a40console.model.event import Event
from a40console.model.instants import iso_utc
from a40console.model.lasting import Endings
from a40console.tui.ink import Role
from a40console.tui.keymap import resolve
from a40console.tui.panels.recent_events import newest_events
from a40console.tui.panels.speed import compact_speed, glyph_of, role_of
from a40console.tui.past import Past
from a40console.tui.reading import Link, Reading
from tests import make_snapshot as make
from tests.tui.drawing import text as text_of

NOW_S = 1_790_000_000.0

CAPTURE = ("session.capture", "The text of session 7f3a is written to /captures/7f3a", "warn")
WRITTEN_NO_MORE = ("session.capture", "The text of session 7f3a is written no more", "info")
FINDING = ("finding.began", "the KV cache is full", "warn")
SOURCE = ("source.failed", "vllm.metrics: HTTP 500", "warn")
MEMORY = ("engine.waiting_for_memory", "the GPU's memory is in use", "warn")
"""Kind, text and severity of what begins something that lasts."""


def event(number: int, told: tuple[str, str, str], **data: str) -> Event:
    kind, text, severity = told
    at = iso_utc(NOW_S - 300 + number)
    return Event(number, at, kind, text, severity, data)  # type: ignore[arg-type]


PAIRS = {
    "a capture": (
        event(1, CAPTURE, session="7f3a"),
        event(9, WRITTEN_NO_MORE, session="7f3a"),
        event(9, WRITTEN_NO_MORE, session="beef"),
    ),
    "a capture, by another service": (
        event(1, CAPTURE, session="7f3a"),
        event(9, ("service.started", "the service is back", "warn")),
        event(9, ("service.stopped", "the service stops", "info")),
    ),
    "a finding": (
        event(1, FINDING, code="kv-full"),
        event(9, ("finding.ended", "no longer: the KV cache is full", "info"), code="kv-full"),
        event(9, ("finding.ended", "no longer: a disk is slow", "info"), code="disk-slow"),
    ),
    "a source": (
        event(1, SOURCE),
        event(9, ("source.restored", "vllm.metrics is read again", "info")),
        event(9, ("source.restored", "vllm.plugin is read again", "info")),
    ),
    "a source of an engine that is gone": (
        event(1, SOURCE),
        event(9, ("engine.stopped", "stopped", "info")),
        event(9, ("engine.messages", "native", "info")),
    ),
    "a start that waits": (
        event(1, MEMORY),
        event(9, ("engine.serving", "serves", "info")),
        event(9, ("note.added", "coffee", "info")),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("backwards", [False, True])
def test_what_has_ended_warns_no_more_and_what_lasts_does(name: str, backwards: bool) -> None:
    began, ended, other = PAIRS[name]
    past = Past()
    snapshot = make.snapshot(at=iso_utc(NOW_S))
    past.observe(snapshot)
    for page in ([other], [began]) if backwards else ([began], [other]):
        past.mark(page)
    [mark] = [mark for mark in past.marks if mark.text == began.text]
    assert (glyph_of(mark), role_of(mark)) == ("▲", Role.WARN)
    past.mark([ended])
    [mark] = [mark for mark in past.marks if mark.text == began.text]
    assert (mark.over, glyph_of(mark), role_of(mark)) == (True, "·", Role.MUTED)
    reading = Reading(
        snapshot=snapshot, age_s=0.0, link=Link("live"), past=past, keymap=resolve({}), unread=0
    )
    told = text_of(newest_events(reading, Size(160, 8)))
    assert f"· {began.text}, over" in told
    assert f"▲ {began.text}" not in told
    label = began.kind.removeprefix("engine.").replace(".", " ").replace("_", " ")
    assert f"▲ {label}" not in text_of([compact_speed(reading, 120)])


def test_what_begins_again_after_its_end_warns_again() -> None:
    began, ended, _ = PAIRS["a capture"]
    endings = Endings()
    endings.take(ended)
    assert endings.over(began)
    assert not endings.over(event(10, CAPTURE, session="7f3a"))


@pytest.mark.parametrize("name", PAIRS)
def test_ids_that_begin_again_with_another_journal_end_nothing(name: str) -> None:
    began, ended, _ = PAIRS[name]
    endings = Endings()
    endings.take(replace(ended, id=501))
    later = replace(began, id=3, at=iso_utc(NOW_S + 3600))
    assert not endings.over(later)
    endings.take(replace(ended, id=4, at=iso_utc(NOW_S + 3700)))
    assert endings.over(later)


@given(st.permutations([1, 9]), st.sampled_from(sorted(PAIRS)))
def test_the_order_in_which_pages_of_the_journal_come_makes_no_difference(
    order: list[int], name: str
) -> None:
    began, ended, _ = PAIRS[name]
    past = Past()
    for number in order:
        past.mark([began if number == 1 else ended])
    assert [mark.over for mark in past.marks if mark.text == began.text] == [True]
