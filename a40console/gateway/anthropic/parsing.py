"""Bodies as JSON, strictly enough that whatever is read can be written again."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from a40console.gateway.refusals import Refusal

DEPTH_LIMIT = 100
"""Levels of nesting; schemas and arguments of tools have a dozen."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def parse_object(raw: bytes) -> dict[str, Any]:
    """The JSON object that a body is: numbers finite, texts whole, nesting bounded.

    Half of a character outside the basic plane, as a client leaves it that cuts a text by UTF-16
    units, becomes U+FFFD: no engine takes it, and the text around it is worth reading.

    Raises:
        Refusal: If it is none.
    """
    try:
        read = json.loads(raw.decode(), parse_constant=_no_number, parse_float=_finite)
    except RecursionError as error:
        raise too_deep() from error
    except UnicodeDecodeError as error:
        raise Refusal(400, f"The request's body is not UTF-8 at byte {error.start}.") from error
    except ValueError as error:
        raise Refusal(400, f"The request's body is not JSON: {_reason(error)}.") from error
    if not isinstance(read, dict):
        raise Refusal(400, "The request's body must be a JSON object.")
    _check_depth(read)
    if _ESCAPED_SURROGATE.search(raw):
        mended: dict[str, Any] = _mended(read)
        return mended
    return read


def too_deep() -> Refusal:
    """The refusal of a body that is nested beyond what can be followed."""
    return Refusal(400, "The request's body is nested too deeply.")


def _check_depth(read: dict[str, Any]) -> None:
    level: list[Any] = [read]
    for _ in range(DEPTH_LIMIT):
        below: list[Any] = []
        for one in level:
            values = one.values() if isinstance(one, dict) else one
            below.extend([value for value in values if isinstance(value, dict | list)])
        if not below:
            return
        level = below
    raise too_deep()


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_mended(key): _mended(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_mended(one) for one in value]
    return value


def _reason(error: ValueError) -> str:
    """What is wrong and where, without a character of the body."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    return "a number in it is too long or not finite"


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _no_number(name: str) -> float:
    raise ValueError(name)
