"""What is set of a run: rows, options, values that cannot be, and the spec that comes of it."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from a40console.model.experiment import settle
from a40console.model.run import RunTarget
from a40console.tui.ink import width_of
from a40console.tui.panels.run_form import form_lines
from a40console.tui.run_form import RunForm
from tests.tui.fake_runs import ARMS, experiments

COMPACTION, SWEEP = experiments()


def value(form: RunForm, key: str) -> str:
    return next(row.value for row in form.rows() if row.key == key)


def at(form: RunForm, key: str) -> RunForm:
    form.cursor = [row.key for row in form.rows()].index(key)
    return form


def test_a_preset_brings_its_values_and_none_is_the_operators() -> None:
    form = RunForm(COMPACTION)
    assert value(form, "turns") == "120"
    at(form, "preset").turn(-1)
    assert (value(form, "preset"), value(form, "turns")) == ("quick", "12")
    assert form.spec().parameters == {}
    assert "no verdict" in form.row.help


def test_what_the_operator_set_stands_over_every_preset() -> None:
    form = RunForm(COMPACTION)
    form.put("turns", "60")
    at(form, "preset").turn(1)
    assert form.spec().parameters == {"turns": "60"}
    form.put("turns", "120")
    assert form.spec().parameters == {}


def test_choices_are_turned_on_and_off_in_their_order() -> None:
    form = at(RunForm(COMPACTION), "arms")
    form.turn(1)
    form.toggle()
    assert value(form, "arms") == "cc-auto,per-turn,block,none"
    form.toggle()
    assert form.spec().parameters == {}


def test_no_choice_at_all_is_a_problem() -> None:
    form = at(RunForm(COMPACTION), "arms")
    for _ in ARMS:
        form.toggle()
        form.turn(1)
    assert "at least one value" in form.problem()


def test_an_address_has_rows_of_its_own() -> None:
    form = at(RunForm(SWEEP), "target")
    assert "url" not in [row.key for row in form.rows()]
    form.turn(-1)
    assert "an address" in form.problem()
    form.put("url", "https://example.org")
    form.put("model", "m")
    form.put("key", "sesame")
    assert not form.problem()
    assert form.spec().target == RunTarget(kind="url", url="https://example.org", model="m")
    assert form.key == "sesame"
    assert "sesame" not in "".join(s.text for row in form_lines(form, 80)[0] for s in row)
    form.turn(1)
    assert form.spec().target == RunTarget()
    assert form.key == ""


def test_bounds_are_numbers_above_nothing() -> None:
    form = RunForm(SWEEP)
    for text in ("x", "-1", "0", "nan", "inf"):
        form.put("max_usd", text)
        assert form.problem(), text
    form.put("max_usd", "0.50")
    form.put("max_minutes", "7.5")
    assert not form.problem()
    assert (form.spec().max_usd, form.spec().max_minutes) == (Decimal("0.50"), 7.5)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["move", "turn", "toggle", "put"]), st.integers(-3, 3), st.text()
        ),
        max_size=30,
    )
)
def test_whatever_is_pressed_the_form_stands(presses: list[tuple[str, int, str]]) -> None:
    form = RunForm(COMPACTION)
    for what, number, text in presses:
        match what:
            case "move":
                form.move(number)
            case "turn":
                form.turn(number)
            case "toggle":
                form.toggle()
            case _:
                form.put(form.row.key, text)
        lines, here = form_lines(form, 60)
        assert 0 <= here < len(lines)
        assert all(width_of(row) <= 60 for row in lines)
    if not form.problem():
        spec = form.spec()
        settle(COMPACTION, spec.preset, spec.parameters)
