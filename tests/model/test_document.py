"""A document that does not fit says all that is wrong, each with its key; one that fits is read."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.document import DocumentError, DocumentFault, Within, read_document


def shouted(value: object) -> object:
    if value == "":
        raise ValueError("must not be empty")
    return value.upper() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    size: Annotated[int, Within(least=1, most=30)]
    spare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cart:
    name: Annotated[str, shouted]
    load: Annotated[float, Within(least=0, below=100)] = 0.0
    price: Annotated[Decimal, Within(least=0)] | None = None
    kind: Literal["hand", "ox"] = "hand"
    wheel: Wheel | None = None
    wheels: tuple[Wheel, ...] = ()
    words: tuple[str, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)


def test_a_whole_document() -> None:
    cart = read_document(
        Cart,
        {
            "name": "red",
            "load": 3,
            "price": 0.44,
            "kind": "ox",
            "wheel": {"size": 3},
            "wheels": [{"size": 1, "spare": True}],
            "words": ["a", "b"],
            "notes": {"x": "y"},
        },
    )
    assert cart == Cart(
        name="RED",
        load=3.0,
        price=Decimal("0.44"),
        kind="ox",
        wheel=Wheel(size=3),
        wheels=(Wheel(size=1, spare=True),),
        words=("a", "b"),
        notes={"x": "y"},
    )


def test_unknown_keys_are_told_in_the_order_of_the_file() -> None:
    with pytest.raises(DocumentError) as refused:
        read_document(Cart, {"name": "red", "gamma": 1, "alpha": 1, "beta": 1})
    assert [fault.place for fault in refused.value.faults] == [("gamma",), ("alpha",), ("beta",)]


def test_every_fault_is_told_at_once() -> None:
    with pytest.raises(DocumentError) as refused:
        read_document(
            Cart,
            {
                "nmae": "red",
                "load": 100,
                "price": "dear",
                "kind": "cat",
                "wheel": {"size": 31, "spare": 1},
                "wheels": [{"size": 1}, {}],
                "words": ["a", 7],
                "notes": {"x": 1},
            },
        )
    assert {".".join(fault.place): fault.text for fault in refused.value.faults} == {
        "nmae": "nmae is not a setting; did you mean name?",
        "name": "name is missing",
        "load": "load: must be at least 0 and less than 100",
        "price": "price: 'dear' is no number",
        "kind": "kind: 'cat' is none of 'hand', 'ox'",
        "wheel.size": "wheel.size: must be at least 1 and at most 30",
        "wheel.spare": "wheel.spare: expected true or false, got a whole number",
        "wheels.1.size": "wheels.1.size is missing",
        "words.1": "words.1: expected a text, got a whole number",
        "notes.x": "notes.x: expected a text, got a whole number",
    }


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("key", ["load", "price"])
def test_what_is_no_finite_number_lies_outside_all_bounds(key: str, number: str) -> None:
    for value in (float(number), number):
        with pytest.raises(DocumentError, match=key):
            read_document(Cart, {"name": "red", key: value})


def test_a_rule_says_why_in_its_own_words() -> None:
    with pytest.raises(DocumentError, match=r"^name: must not be empty$"):
        read_document(Cart, {"name": ""})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KEYS = st.sampled_from([each.name for each in fields(Cart)]) | st.text(max_size=5)


@given(st.dictionaries(KEYS, ANYTHING, max_size=6))
def test_whatever_a_file_holds_is_read_or_its_keys_are_named(document: dict[str, Any]) -> None:
    faults: tuple[DocumentFault, ...] = ()
    cart = None
    try:
        cart = read_document(Cart, document)
    except DocumentError as error:
        faults = error.faults
    assert (cart is None) == bool(faults)
    assert all(fault.place[0] in {*document, "name"} for fault in faults)
    assert all(fault.text.startswith(".".join(fault.place)) for fault in faults)
    if cart is not None:
        assert document.keys() <= {each.name for each in fields(Cart)}
        assert isinstance(cart.name, str)
        assert 0 <= cart.load < 100
