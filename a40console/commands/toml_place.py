"""The line of a key in a TOML text: the parser keeps none, and whoever mends a file needs it."""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*\[\[?\s*([A-Za-z0-9_.-]+)\s*\]")
_KEY = re.compile(r"\s*[\"']?([A-Za-z0-9_-]+)[\"']?\s*(?:[=.])")


def line_of(text: str, key: str) -> int | None:
    """The line, from 1, where a dotted key is set, else where its table begins; None if nowhere.

    A number in the key counts the tables of an array: `known_issues.1.reason`.
    """
    table, _, rest = key.partition(".")
    index, _, name = rest.partition(".") if rest[:1].isdigit() else ("0", "", rest)
    lines = text.splitlines()
    header = _header_line(lines, table, int(index))
    if not name:
        return header or _key_line(lines, 0, table)
    if header is None:
        return _key_line(lines, 0, table)
    return _key_line(lines, header, name.partition(".")[0]) or header


def _header_line(lines: list[str], table: str, index: int) -> int | None:
    headers = [
        number
        for number, line in enumerate(lines, start=1)
        if (match := _HEADER.match(line)) and match[1] == table
    ]
    return headers[index] if index < len(headers) else None


def _key_line(lines: list[str], begin: int, key: str) -> int | None:
    """The line of a key from a line on, up to the next table."""
    for number, line in enumerate(lines[begin:], start=begin + 1):
        if _HEADER.match(line):
            return None
        if (match := _KEY.match(line)) and match[1] == key:
            return number
    return None
