"""The operator's own words in the journal."""

from __future__ import annotations

import unicodedata

from a40console.errors import UsageError
from a40console.model.event import NOTE_LIMIT
from a40console.model.log_line import ESCAPE

_HARMLESS = {"\n": " ", "\r": " ", "\t": " "}
_BANNED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format (text direction, invisible joiners), lone surrogates, unassigned, separators."""


def cleaned(text: str) -> str:
    """One line that can steer no terminal.

    Raises:
        UsageError: If nothing is left of it, or it is longer than an entry.
    """
    text = ESCAPE.sub("", text)
    text = "".join(_HARMLESS.get(character, character) for character in text)
    text = "".join(one for one in text if unicodedata.category(one) not in _BANNED)
    text = " ".join(text.split())
    if not text:
        raise UsageError("The note has no text", remedy='Write one: a40console note "TEXT"')
    if len(text) > NOTE_LIMIT:
        raise UsageError(
            f"The note has {len(text):,} characters, an entry takes {NOTE_LIMIT}",
            remedy="Shorten it, or write several.",
        )
    return text
