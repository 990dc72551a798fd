"""TOML as an operator's editor leaves it, and as the format's own limits have it."""

from __future__ import annotations

import tomllib
from typing import Any

_BYTE_ORDER_MARK = "\ufeff"
_LARGEST = 2**63
"""TOML's integers have 64 bits, which Python's reader does not hold them to."""

_DEEPEST = 32
"""Tables and lists within each other; nothing that is ours has more than four."""


def parse_toml(text: str) -> dict[str, Any]:
    """The document; a byte order mark before it is passed over.

    Raises:
        ValueError: If it is not TOML, nested too deeply, or holds an integer of more than 64 bits;
            it says which key, where that can be told.
    """
    try:
        document = tomllib.loads(text.removeprefix(_BYTE_ORDER_MARK))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not valid TOML: {error}") from error
    except ValueError as error:  # Python turns no text of thousands of digits into a number
        raise ValueError("an integer has more than 64 bits") from error
    if _depth(document) > _DEEPEST:
        raise ValueError("nested too deeply")
    if (key := _too_large(document, "")) is not None:
        raise ValueError(f"{key}: an integer of more than 64 bits")
    return document


def _depth(document: dict[str, Any]) -> int:
    """How many tables and lists lie within each other: a dotted key is read without recursion."""
    depth = 0
    level: list[Any] = [document]
    while level:
        depth += 1
        within = [item.values() if isinstance(item, dict) else item for item in level]
        level = [item for items in within for item in items if isinstance(item, dict | list)]
    return depth


def _too_large(value: object, key: str) -> str | None:
    match value:
        case int():
            return None if -_LARGEST <= value < _LARGEST else key
        case dict():
            places = ((f"{key}.{name}" if key else str(name), item) for name, item in value.items())
        case list():
            places = ((key, item) for item in value)
        case _:
            return None
    return next((found for place, item in places if (found := _too_large(item, place))), None)
