"""Which words of a command line are secrets: every process of the machine can read them there."""

from __future__ import annotations

import re
from collections.abc import Iterable

COVER = "••••"

_SECRET = re.compile(r"(?:^-hft|key|token|secret|password)$", re.IGNORECASE)
_USERINFO = re.compile(r"//[^/@\s]*@")
_MEMBER = re.compile(
    r"""(["'](?:[^"']*[^"'\w])?\w*(?:key|token|secret|password|credential)["']\s*:\s*)"""
    r"""("[^"]*"|'[^']*')""",
    re.IGNORECASE,
)


def takes_secret(flag: str) -> bool:
    """Whether a flag's value is a secret: `--api-key`, `--hf-token`, `-hft`."""
    return flag.startswith("-") and _SECRET.search(flag) is not None


def covered_within(text: str) -> str:
    """A text with the user of each address covered, and each member of JSON named like a secret."""
    return _MEMBER.sub(rf'\1"{COVER}"', _USERINFO.sub(f"//{COVER}@", text))


def covered(argv: Iterable[str]) -> tuple[str, ...]:
    """The words with the values of such flags covered, and what is secret within others."""
    words: list[str] = []
    hide = False
    for word in argv:
        flag, equals, _ = word.partition("=")
        secret = takes_secret(flag)
        told = f"{flag}={COVER}" if secret and equals else covered_within(word)
        words.append(COVER if hide else told)
        hide = secret and not equals and not hide
    return tuple(words)
