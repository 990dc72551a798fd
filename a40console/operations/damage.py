"""Whether a text is what a model writes, or what a broken one does. Pure.

A small model may write nonsense and go round in circles: that is no damage. What is named here no
sound engine brings forth, whatever its model: nothing, bytes that are no text, one character or
word without end, and fragments that come out twice all over the text, as speculation leaves them
that accepts what it should not.
"""

from __future__ import annotations

import ast
import re
import warnings
from itertools import pairwise

LONGEST_RUN = 24
"""Of one character in a row, but for those that lines are drawn and code is indented with."""

MOST_WORDS_ALIKE = 10
STUTTER_WORDS = 3
MOST_STUTTERS = 3
"""Different fragments that are written twice in a row."""

_DRAWN = frozenset(" \t\n\r-=_#*.~+|/\\<>")
_RUN = re.compile(rf"(.)\1{{{LONGEST_RUN - 1},}}", re.DOTALL)
_WORD = re.compile(r"\w+|[^\w\s]")
_CODE = re.compile(r"[=(\[{]|:\s*$|^\s*(?:return|import|from|pass|else)\b")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffd]")


def damage(text: str) -> str:
    """What is wrong with the text, with the evidence; empty where nothing is."""
    if not text.strip():
        return "it wrote nothing"
    if broken := _UNPRINTABLE.findall(text):
        return f"{len(broken)} characters that are no text in {len(text)}"
    for run in _RUN.finditer(text):
        if run[1] not in _DRAWN:
            return f"{len(run[0])} times {run[1]!r} in a row"
    words = _WORD.findall(text)
    return _same_word(words) or _stutters(words)


def _same_word(words: list[str]) -> str:
    run = 1
    for before, word in pairwise(words):
        run = run + 1 if word == before and word.isalnum() else 1
        if run > MOST_WORDS_ALIKE:
            return f"more than {MOST_WORDS_ALIKE} times {word[:20]!r} in a row"
    return ""


def _stutters(words: list[str]) -> str:
    """Fragments written twice in a row; a loop repeats one, turned about, and counts once."""
    length, found = STUTTER_WORDS, dict[tuple[str, ...], str]()
    for at in range(length, len(words) - length + 1):
        fragment = words[at : at + length]
        if fragment == words[at - length : at] and len(set(fragment)) == length:
            found.setdefault(tuple(sorted(fragment)), " ".join(fragment))
    if len(found) < MOST_STUTTERS:
        return ""
    return f"{len(found)} fragments come out twice, such as {next(iter(found.values()))!r}"


def broken_code(text: str, lead: str) -> str:
    """Where Python that a model wrote cannot be read; empty where it can, or where it is none.

    Args:
        text: What it wrote, cut anywhere.
        lead: The line that it was to go on with.
    """
    faults = [_syntax_fault(lead + text), _syntax_fault(text)]
    if None in faults or not _is_code(text):
        return ""
    _, told = max(fault for fault in faults if fault is not None)  # of the better reading
    return f"Python that cannot be read: {told}"


def _syntax_fault(text: str) -> tuple[int, str] | None:
    """The first fault before the last line, which may be cut, and the line that it is in."""
    whole = text[: text.rfind("\n") + 1]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(whole)
    except SyntaxError as error:
        lines = whole.splitlines()
        at = error.lineno or len(lines)
        last = max((number for number, line in enumerate(lines, 1) if line.strip()), default=0)
        return None if at >= last else (at, f"{lines[at - 1].strip()[:60]!r}, {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return 0, str(error) or type(error).__name__
    return None


def _is_code(text: str) -> bool:
    """Whether most of its lines look like a program's."""
    lines = [line for line in text.splitlines() if line.strip()]
    marked = sum(bool(_CODE.search(line)) for line in lines)
    return marked * 3 >= len(lines) * 2
