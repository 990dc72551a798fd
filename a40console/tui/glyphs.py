"""ASCII in the place of every other character, each as wide as what it replaces. Pure."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from rich.cells import cell_len

_PAIRS = (
    ("─━┄┈╌╴╶╸╺═▔", "-=-------=-"),
    ("│┃┆┊║▏▎▍▌▐▕", "|||||||||||"),
    ("┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛┣┫╞╡╪╔╗╚╝", "++++++++++++++++++++++++++"),
    ("▁▂▃▄▅▆▇█", "_.:-=+*#"),
    ("▓▒░", "#:."),
    ("●○◐◌◆◇•∙■□", "*o%.+o****"),
    ("✖✗✓✔", "xxvv"),
    ("▲▼◀▶△▽▴▾◂▸‹›«»", "!v<>!v^v<><><>"),
    ("←↑→↓↔⟳↻", "<^>v-@@"),
    ("–—−‐‑", "-----"),
    ("·…≈≠≤≥±×÷°µμ∞", ":>~!<>+x/'uu8"),
    ("ΣΔ", "SD"),
    ("“”„‘’′″", "\"\"\"''''"),
)
"""In groups of like meaning."""

_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The dots of a braille cell, row by row, left and right."""

_LEVELS = "'-._"
"""A line in each of a cell's four rows."""


def _braille(dots: int) -> str:
    """The stroke that comes nearest to a braille cell's dots."""
    if not dots:
        return " "
    rows = [bool(dots & (left | right)) for left, right in _DOTS]
    if sum(rows) >= 3:
        return "|"
    if sum(rows) == 1:
        return _LEVELS[rows.index(True)]
    lefts = [y for y, (left, _) in enumerate(_DOTS) if dots & left]
    rights = [y for y, (_, right) in enumerate(_DOTS) if dots & right]
    if not lefts or not rights:
        return "|"
    if lefts[-1] == rights[-1] and lefts[0] == rights[0]:
        return "="
    return "/" if sum(lefts) / len(lefts) > sum(rights) / len(rights) else "\\"


_TABLE: dict[int, str] = {
    **{
        ord(fine): plain
        for fines, plains in _PAIRS
        for fine, plain in zip(fines, plains, strict=True)
    },
    **{_BRAILLE + dots: _braille(dots) for dots in range(256)},
}


def to_ascii(text: str) -> str:
    """The text in ASCII, as wide as before; what has no likeness becomes question marks."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else _likeness(char) for char in text)


@lru_cache(4096)
def _likeness(char: str) -> str:
    known = _TABLE.get(ord(char))
    if known is not None:
        return known
    width = cell_len(char)
    plain = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
    return plain if plain.isprintable() and len(plain) == width else "?" * width
