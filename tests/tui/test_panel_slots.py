"""The table of requests: its rows, their sum, and why a dash is a dash."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from textual.geometry import Size

from a40console.model.figures import Estimated, Missing
from a40console.tui.panels import slots
from a40console.tui.panels.slot_columns import CURSOR, layout
from a40console.tui.panels.slot_notes import row_notes
from a40console.tui.panels.verdict import verdict
from a40console.tui.past import Past
from tests import make_snapshot as make
from tests.make_session import session
from tests.tui.drawing import read, table, text


def test_a_decoding_row_has_its_figures() -> None:
    row = text(table(read(make.snapshot()), 120)).split("\n")[1]
    assert re.search(
        r"7f3a +claude-code +decode +31,204 +96 % +– +1,204 +413 = +22\.7 × 18\.2", row
    )


def test_figures_stand_under_their_titles() -> None:
    for width in (80, 100, 120, 160, 200):
        head, first, *_ = text(table(read(make.snapshot()), width)).split("\n")
        cursor = 2
        assert head.index("gen") + 3 - cursor == first.index(" 1,204") + 6
        assert head.index("tok/s") + 5 - cursor == first.index("413") + 3


def test_a_prefill_shows_its_progress_and_a_dash_for_each_speed() -> None:
    row = text(table(read(make.snapshot()), 120)).split("\n")[2]
    assert "▓" in row
    assert "71 %" in row
    assert row.count("–") == 2  # re-read, first token


def test_estimates_are_marked_one_by_one() -> None:
    row = text(table(read(make.snapshot()), 120)).split("\n")[3]
    assert "≈96.4 =  ≈22.7 × ≈4.25" in row


def test_a_session_whose_client_has_the_turn_is_a_row() -> None:
    waiting = session(session="a91c")
    drawn = text(table(read(make.snapshot(sessions=(waiting,))), 120))
    assert re.search(r"a91c +claude-code +client's turn: Bash running 3 m", drawn)


def test_what_did_not_come_through_the_gateway_is_called_direct() -> None:
    assert re.search(r"direct +– +queued", text(table(read(make.snapshot()), 120)))


def test_rows_keep_their_place_when_others_end() -> None:
    past = Past()
    first = make.snapshot(slots=make.many_slots(6))
    past.observe(first)
    second = replace(first, slots=tuple(reversed(make.many_slots(6)[2:])))
    past.observe(second)
    reading = replace(read(second), past=past)
    live = [row for row in slots.rows(reading) if slots.is_live(row)]
    assert [slots.key_of(row) for row in live] == [
        slot.request_id for slot in make.many_slots(6)[2:]
    ]


def test_parallel_requests_of_one_session_are_rows_of_their_own() -> None:
    pair = (make.slot(request_id="a"), make.slot(request_id="b", slot=1))
    keys = [slots.key_of(row) for row in slots.rows(read(make.snapshot(slots=pair)))]
    assert keys[:2] == ["a", "b"]


@pytest.mark.parametrize(
    ("counter", "said"),
    [
        (509.0, "Σ ≈509 ✓ counter"),
        (600.0, "Σ ≈509 ≠ counter 600: 91.0 not in a row"),
        (400.0, "Σ ≈509 ≠ counter 400: 109 too many"),
        (Estimated(509.4), "Σ ≈509 ✓ counter"),
        (Missing("the counter was reset"), "Σ ≈509 counter –"),
    ],
)
def test_the_sum_is_checked_against_the_counter(counter: float, said: str) -> None:
    snapshot = make.snapshot(throughput=make.throughput(counter))
    assert said in text(table(read(snapshot), 120))


def test_tokens_of_a_request_that_just_ended_are_no_mismatch() -> None:
    lately = make.snapshot(
        throughput=make.throughput(600.0), recent=(make.recent(ended_at=make.at(2)),)
    )
    assert "+ ≈91.0 just ended" in text(table(read(lately), 120))


def test_rows_without_a_count_are_named_beside_the_sum() -> None:
    blind = make.slot(window_tokens_per_s=Missing("no plugin"))
    snapshot = make.snapshot(slots=(*make.four_slots(), blind))
    assert "Σ ≈509 ✓ counter (1 row not counted)" in text(table(read(snapshot), 120))


def test_a_missing_list_of_slots_says_why() -> None:
    snapshot = make.snapshot(slots=Missing("llama-server sleeps"))
    reading = read(snapshot)
    assert "Σ – llama-server sleeps" in text(table(reading, 120))
    assert "3 running · 1 queued" in text(verdict(reading, Size(120, 3)))


def test_the_row_note_names_the_reason_of_each_dash() -> None:
    note = row_notes(make.prefill_slot())
    assert "TTFT –: no token yet" in note
    assert "tok/s, pass/s, tok/pass –: in prefill" in note


def test_an_ended_request_is_not_said_to_wait_for_a_token() -> None:
    [ended, *_] = make.snapshot().recent
    note = row_notes(replace(ended, ttft_s=Missing("no token yet")))
    assert "TTFT –: not known: it was not streamed" in note


@pytest.mark.parametrize(("waited_s", "told"), [(4, "≈4.00"), (38, "≈38.0"), (162, "≈162")])
def test_the_column_of_the_queue_is_in_seconds(waited_s: int, told: str) -> None:
    past = Past()
    for age_s in range(waited_s + 1):
        row = make.slot(request_id="a", phase="held", age_s=float(age_s))
        past.observe(make.snapshot(at=make.at(waited_s - age_s), slots=(row,), recent=()))
    drawn = slots.draw(row, layout(200), replace(read(make.snapshot()), past=past))
    title = text([slots.header(layout(200))])
    end = title.index("queue s") + len("queue s") - CURSOR
    assert text([drawn])[:end].endswith(f" {told}")
    assert past.tracks["a"].waited_s == Estimated(float(waited_s))
