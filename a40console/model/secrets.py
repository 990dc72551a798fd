"""Which words of a command line are secrets: every process of the machine can read them there."""

from __future__ import annotations

import re
from collections.abc import Iterable

COVER = "••••"

_SECRET = re.compile(r"(?:^-hft|key|token|secret|password)$", re.IGNORECASE)


def takes_secret(flag: str) -> bool:
    """Whether a flag's value is a secret: `--api-key`, `--hf-token`, `-hft`."""
    return flag.startswith("-") and _SECRET.search(flag) is not None


def covered(argv: Iterable[str]) -> tuple[str, ...]:
    """The words with the values of such flags covered."""
    words: list[str] = []
    hide = False
    for word in argv:
        flag, equals, _ = word.partition("=")
        secret = takes_secret(flag)
        words.append(COVER if hide else f"{flag}={COVER}" if secret and equals else word)
        hide = secret and not equals and not hide
    return tuple(words)
