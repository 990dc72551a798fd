"""Changes one key of a profile's TOML text and leaves everything else as it stands. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from a40console.model.toml_text import parse_toml

Setting = str | int | float | bool | tuple[str, ...]

_HEADER = re.compile(r"\s*\[")
_MARK = "\ufeff"


class NotEditableError(ValueError):
    """The text is written in a way in which one key cannot be changed alone; says why."""


def with_setting(text: str, key: str, value: Setting | None) -> str:
    """The text with a key set to a value, or taken out for None; comments stay.

    Args:
        text: A profile.
        key: Dotted where it belongs to a table: `speculation.enabled`.
        value: What it is set to.

    Raises:
        NotEditableError: If that cannot be done without changing anything else.
    """
    try:
        wanted = _changed(parse_toml(text), key.split("."), value)
        edited = _edited(text, key, value)
        same = parse_toml(edited) == wanted
    except ValueError as error:
        raise NotEditableError(f"{key} cannot be set in this file: {error}") from error
    if not same:
        raise NotEditableError(f"{key} cannot be set in this file without changing more")
    return edited


def toml_value(value: Setting) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False)
        case tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case _:
            return repr(value)


@dataclass(frozen=True, slots=True)
class _Statement:
    """Consecutive lines that set one thing."""

    begin: int
    end: int
    """The first line after it."""

    document: dict[str, Any]


def _changed(document: Mapping[str, Any], path: list[str], value: Setting | None) -> dict[str, Any]:
    changed = deepcopy(dict(document))
    table = changed
    for name in path[:-1]:
        table = table.setdefault(name, {})
    if value is None:
        table.pop(path[-1], None)
    else:
        table[path[-1]] = list(value) if isinstance(value, tuple) else value
    return changed


def _edited(text: str, key: str, value: Setting | None) -> str:
    mark = _MARK if text.startswith(_MARK) else ""
    lines = text.removeprefix(_MARK).splitlines(keepends=True)
    table, _, name = key.rpartition(".")
    begin, end = _region(lines, table)
    found = _find(lines, begin, end, [name])
    if found is None and table:
        found = _find(lines, *_region(lines, ""), key.split("."))
    if found is not None:
        old = lines[found.begin : found.end]
        lines[found.begin : found.end] = _left_of(old) if value is None else _replaced(old, value)
    elif value is not None:
        _insert(lines, table, f"{name} = {toml_value(value)}")
    return mark + "".join(lines)


def _region(lines: list[str], table: str) -> tuple[int, int]:
    """The lines of a table, without its header; those before the first header for the top."""
    headers = [index for index, line in enumerate(lines) if _is_header(line)]
    if not table:
        return 0, headers[0] if headers else len(lines)
    own = re.compile(rf"\s*\[\s*{re.escape(table)}\s*\]")
    for index in headers:
        if own.match(lines[index]):
            return index + 1, next((other for other in headers if other > index), len(lines))
    return 0, 0


def _is_header(line: str) -> bool:
    """Whether a line begins a table; one within an array of several lines begins with [ too."""
    if not _HEADER.match(line):
        return False
    try:
        tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _statements(lines: list[str], begin: int, end: int) -> Iterator[_Statement]:
    """What the lines of one table set; a value may go on over several."""
    at = begin
    while at < end:
        words = lines[at].strip()
        if not words or words.startswith("#"):
            at += 1
            continue
        for stop in range(at + 1, end + 1):
            try:
                document = tomllib.loads("".join(lines[at:stop]))
            except tomllib.TOMLDecodeError:
                continue
            yield _Statement(at, stop, document)
            at = stop
            break
        else:
            raise NotEditableError(f"line {at + 1} cannot be read alone")


def _find(lines: list[str], begin: int, end: int, path: list[str]) -> _Statement | None:
    for statement in _statements(lines, begin, end):
        inner: Any = statement.document
        for name in path:
            inner = inner.get(name) if isinstance(inner, dict) else None
        if inner is not None:
            return statement
    return None


def _replaced(old: list[str], value: Setting) -> list[str]:
    """The lines of a statement with another value; the comment behind it stays in its column."""
    if isinstance(value, tuple) and (kept := _without_words("".join(old), value)) is not None:
        return [kept]
    last = old[-1].rstrip("\r\n")
    ending = old[-1][len(last) :]
    code, comment = _split_comment(old[:-1], last)
    if any("#" in line for line in old[:-1]):
        raise NotEditableError("its value has comments within")
    head = old[0][: old[0].index("=") + 1]
    fresh = f"{head} {toml_value(value)}"
    if comment:
        column = len(code) if len(old) == 1 else 0
        fresh = fresh.ljust(column)
        fresh += comment if fresh.endswith(" ") else f" {comment}"
    return [fresh + ending]


def _left_of(old: list[str]) -> list[str]:
    """The comments of a statement that is taken out, each a line of its own."""
    last = old[-1].rstrip("\r\n")
    indent = old[0][: len(old[0]) - len(old[0].lstrip())]
    inner = [_comment_of(line) for line in old[:-1]] if _is_array(old) else []
    comments = [*inner, _split_comment(old[:-1], last)[1]]
    return [f"{indent}{comment}{old[-1][len(last) :]}" for comment in comments if comment]


def _is_array(lines: list[str]) -> bool:
    """Whether a statement sets an array; a string of several lines holds no comments."""
    return isinstance(next(iter(tomllib.loads("".join(lines)).values())), list)


def _comment_of(line: str) -> str:
    """The comment behind words of an array on one of its lines; empty without one."""
    line = line.strip()
    head = "" if re.match(r"[\w.\"'-]+\s*=", line) else "words = ["
    for place in (index for index, character in enumerate(line) if character == "#"):
        try:
            tomllib.loads(f"{head}{line[:place]}]")
        except tomllib.TOMLDecodeError:
            continue
        return line[place:]
    return ""


def _split_comment(before: list[str], last: str) -> tuple[str, str]:
    """The last line of a statement up to its comment, and the comment."""
    whole = tomllib.loads("".join(before) + last)
    for place in (index for index, character in enumerate(last) if character == "#"):
        try:
            if tomllib.loads("".join(before) + last[:place]) == whole:
                return last[:place], last[place:]
        except tomllib.TOMLDecodeError:
            continue
    return last, ""


def _without_words(text: str, value: tuple[str, ...]) -> str | None:
    """An array with words taken out where they stand; None where that does not lead to the value.

    So an array of several lines keeps its form and its comments.
    """
    old = next(iter(tomllib.loads(text).values()))
    if not isinstance(old, list) or len(value) >= len(old):
        return None
    left = list(value)
    for word in old:
        if left and left[0] == word:
            left.pop(0)
            continue
        text = _without_word(text, str(word))
    try:
        agrees = next(iter(tomllib.loads(text).values())) == list(value)
    except tomllib.TOMLDecodeError:
        return None
    return text if agrees else None


def _without_word(text: str, word: str) -> str:
    """An array's text without the first such word; a line of its own goes with its comment."""
    spelt = "|".join(re.escape(form) for form in (toml_value(word), f"'{word}'"))
    found = re.search(rf"(?:{spelt})[ \t]*,[ \t]*", text) or re.search(rf",?\s*(?:{spelt})", text)
    if found is None:
        return text
    before, after = text[: found.start()], text[found.end() :]
    line, newline, below = after.partition("\n")
    alone = not before.rpartition("\n")[2].strip() and line.strip()[:1] in ("", "#")
    if alone and newline and "\n" in before:
        return before.rstrip(" \t") + below
    return before + after


def _insert(lines: list[str], table: str, statement: str) -> None:
    begin, end = _region(lines, table)
    newline = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    if table and not begin:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += newline
        lines += [newline, f"[{table}]{newline}", f"{statement}{newline}"]
        return
    last = max((found.end for found in _statements(lines, begin, end)), default=begin)
    if last and not lines[last - 1].endswith("\n"):
        lines[last - 1] += newline
    lines.insert(last, f"{statement}{newline}")
