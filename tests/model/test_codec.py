"""Model values survive the trip through JSON, and what does not follow the contract is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.codec import DecodeError, decode, decode_as, encode
from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Figure, Missing, Text


@dataclass(frozen=True, slots=True)
class Part:
    name: Text
    figure: Figure


@dataclass(frozen=True, slots=True)
class Whole:
    state: EngineState
    parts: tuple[Part, ...] | Missing
    by_name: dict[str, Figure]
    price: Decimal | None
    note: str | None = None


numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
figures = st.one_of(numbers, st.builds(Missing, st.text()), st.builds(Estimated, numbers))
parts = st.builds(Part, name=st.one_of(st.text(), st.builds(Missing, st.text())), figure=figures)
wholes = st.builds(
    Whole,
    state=st.sampled_from(EngineState),
    parts=st.one_of(st.lists(parts).map(tuple), st.builds(Missing, st.text())),
    by_name=st.dictionaries(st.text(), figures),
    price=st.one_of(st.none(), st.floats(0, 1e6).map(lambda value: Decimal(str(value)))),
    note=st.one_of(st.none(), st.text()),
)


@given(wholes)
def test_round_trip(whole: Whole) -> None:
    assert decode(Whole, json.loads(json.dumps(encode(whole)))) == whole


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"name": "a"}, "Part: key figure is missing"),
        ({"name": "a", "figure": 1, "extra": 2}, "Part: unknown key extra"),
        ({"name": 1, "figure": 1}, "Part.name"),
        ({"name": "a", "figure": None}, "Part.figure"),
        ({"name": "a", "figure": True}, "Part.figure"),
        ({"name": "a", "figure": {"missing": 3}}, "Part.figure"),
        ({"name": "a", "figure": {"value": 1, "estimated": False}}, "Part.figure"),
        ([], "Part: expected an object"),
    ],
)
def test_what_breaks_the_contract_is_refused_and_named(data: object, place: str) -> None:
    with pytest.raises(DecodeError, match=place.replace(".", r"\.")):
        decode(Part, data)


def test_one_reason_is_one_object_however_often_it_is_read() -> None:
    one, other = (decode(Part, {"name": "n", "figure": {"missing": "no GPU"}}) for _ in range(2))
    assert one.figure == Missing("no GPU")
    assert one.figure is other.figure


anything = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.floats(),
        st.decimals(allow_nan=True),
        st.sampled_from([Decimal("1e400"), Decimal("-1e999999"), Decimal("NaN")]),
        st.floats().map(Estimated),
        st.text(),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
)


@given(anything)
def test_whatever_is_written_is_json(value: object) -> None:
    plain = encode(value)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


@pytest.mark.parametrize("figure", [float("inf"), float("-inf"), float("nan"), Estimated(1e999)])
def test_a_number_without_end_is_not_known(figure: Figure) -> None:
    told = decode(Part, encode(Part("speed", figure)))
    assert told.figure == Missing("it is no finite number")


@pytest.mark.parametrize("text", ["Infinity", "-Infinity", "NaN", "1e999"])
def test_a_number_without_end_is_refused_where_it_is_read(text: str) -> None:
    with pytest.raises(DecodeError, match="finite"):
        decode(float, json.loads(text))
    with pytest.raises(DecodeError):
        decode(Part, json.loads(f'{{"name": "a", "figure": {text}}}'))


@pytest.mark.parametrize("text", ["Infinity", "NaN", "sNaN", "x", ""])
def test_a_price_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        decode(Decimal, text)


def test_what_could_not_be_written_again_is_not_read() -> None:
    """Half a character is replaced; a number that nothing computes with is no number."""
    assert decode_as(str, "a\ud800é", "text") == "a?é"
    assert decode_as(dict[str, str], {"\ud800": "\udfff"}, "table") == {"?": "?"}
    assert decode_as(Missing, {"missing": "\ud800"}, "figure") == Missing("?")
    for kind, value in (
        (int, 10**400),
        (float, -(10**400)),
        (Estimated, {"value": 10**400, "estimated": True}),
        (Estimated, {"value": "<b>", "estimated": True}),
        (Estimated, {"value": float("nan"), "estimated": True}),
    ):
        with pytest.raises(DecodeError):
            decode_as(kind, value, "figure")
