"""What a console sent to its terminal, taken apart."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["truecolor", "256", "16", "default"]

_SGR = re.compile(rb"\x1b\[([\d;]*)m")
_ANY = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|P.*?\x1b\\|[ -/]*[0-~])", re.DOTALL
)


def colours(output: bytes) -> set[Kind]:
    """The kinds of colour that were asked for: attributes such as bold are none."""
    found: set[Kind] = set()
    for match in _SGR.finditer(output):
        numbers = [int(part or 0) for part in match[1].split(b";")]
        while numbers:
            number = numbers.pop(0)
            if number in (38, 48):
                deep = numbers[0] == 2
                found.add("truecolor" if deep else "256")
                del numbers[: 4 if deep else 2]
            elif number in (39, 49):
                found.add("default")
            elif number // 10 in (3, 4, 9, 10):
                found.add("16")
    return found


def text(output: bytes) -> bytes:
    """The output without its control sequences."""
    return _ANY.sub(b"", output)
