"""Cuts a member out of a small JSON object without touching any other character of it."""

from __future__ import annotations

import json
import re

_SPACE = re.compile(r"[ \t\n\r]*").match
_READ = json.JSONDecoder().raw_decode


def without(text: str, key: str) -> str:
    """The text of a JSON object that has this member, without it.

    Raises:
        ValueError: If the text is not one JSON object with such a member.
    """
    start, end = _place(text, key)
    after = _skip(text, end)
    if text[after : after + 1] == ",":
        end = _skip(text, after + 1)
    elif "," in text[:start]:
        start = text.rindex(",", 0, start)
    return text[:start] + text[end:]


def _place(text: str, key: str) -> tuple[int, int]:
    """From the key's quote to the end of the value.

    A name that stands in the text once, as a key, is the member: quotes inside of strings are
    escaped. That is the rule, and a third of the work of walking the object.
    """
    quoted = f'"{key}"'
    start = text.find(quoted)
    if start > 0 and text[start - 1] != "\\" and text.find(quoted, start + 1) < 0:
        colon = _skip(text, start + len(quoted))
        if text[colon : colon + 1] == ":":
            _, end = _READ(text, _skip(text, colon + 1))
            return start, end
    return _walk(text, key)


def _walk(text: str, key: str) -> tuple[int, int]:
    """The place of the top-level member; of a repeated one the last, as parsers take it."""
    place: tuple[int, int] | None = None
    sign, at = "{", 0
    while sign != "}":
        start = _after(text, at, sign)
        name, at = _READ(text, start)
        _, at = _READ(text, _after(text, at, ":"))
        if name == key:
            place = (start, at)
        at = _skip(text, at)
        sign = "}" if text[at : at + 1] == "}" else ","
    if place is None:
        raise ValueError(f"the object has no member {key!r}")
    return place


def _skip(text: str, at: int) -> int:
    """The first character from here that is not white space."""
    if text[at : at + 1] > " ":
        return at
    match = _SPACE(text, at)
    return match.end() if match else at


def _after(text: str, at: int, expected: str) -> int:
    """Past white space, the expected character and white space."""
    at = _skip(text, at)
    if text[at : at + 1] != expected:
        raise ValueError(f"{expected!r} is missing at {at}")
    return _skip(text, at + 1)
