"""The page of a request that ended before this console was opened: all that the service knows."""

from __future__ import annotations

from a40console.model.figures import Missing
from a40console.model.snapshot import RecentRequest
from a40console.tui.keymap import resolve
from a40console.tui.panels.slot_detail import request_detail
from a40console.tui.past import Past
from a40console.tui.reading import Link, Reading
from tests import make_snapshot as make


def page(done: RecentRequest) -> str:
    snapshot, past = make.snapshot(slots=(), recent=(done,)), Past()
    past.observe(snapshot)
    reading = Reading(
        snapshot=snapshot, link=Link("live"), age_s=0.0, unread=0, past=past, keymap=resolve({})
    )
    lines = request_detail(reading, done.request_id, 80)
    return "\n".join("".join(span.text for span in entry) for entry in lines)


def test_who_asked_which_model_and_how_long_each_phase_took() -> None:
    done = make.recent(queue_s=0.5, prefill_s=2.25, decode_s=1.61)
    words = " ".join(page(done).split())
    assert "client claude-code" in words
    assert "model qwen3-coder-30b" in words
    assert "phases queue 0.50 s → prefill 2.25 s → decode 1.61 s" in words


def test_phases_that_nobody_told_are_a_dash() -> None:
    untold = Missing("only our plugin in vLLM tells when a request was begun")
    words = " ".join(page(make.recent(queue_s=untold, prefill_s=untold)).split())
    assert "phases – this console never saw it run" in words
    assert "client claude-code" in words


def test_a_request_that_was_never_sent_only_waited() -> None:
    never = Missing("it was never sent to the engine")
    words = " ".join(page(make.recent(queue_s=12.0, prefill_s=never, decode_s=never)).split())
    assert "phases queue 12.0 s" in words
    assert "prefill" not in words
