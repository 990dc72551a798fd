"""TOML as an operator's editor leaves it, and numbers that nothing can hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.toml_text import parse_toml


def test_a_byte_order_mark_is_passed_over() -> None:
    assert parse_toml("\ufeffport = 1\n") == {"port": 1}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = [", "not valid TOML: "),
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        (".".join("a" * 3000) + " = 1", "nested too deeply"),
        (f"[{'.'.join('a' * 3000)}]", "nested too deeply"),
        ("a = " + "9" * 5000, "an integer has more than 64 bits"),
        ("[rent]\nusd_per_hour = " + "9" * 400, "rent.usd_per_hour: an integer of more than"),
        ("port = 0x" + "f" * 5000, "port: an integer of more than 64 bits"),
        ("a = [1, [2, {b = 9223372036854775808}]]", "a.b: an integer of more than 64 bits"),
    ],
)
def test_what_cannot_be_used_is_said_in_words(text: str, why: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the words are checked
        parse_toml(text)
    assert str(raised.value).startswith(why)


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_every_integer_of_64_bits_is_one(number: int) -> None:
    assert parse_toml(f"a = {number}") == {"a": number}
