"""Takes out of system texts what changes with each request and so defeats the prefix cache."""

from __future__ import annotations

import re
from collections import Counter
from typing import TypeAlias

Tally: TypeAlias = Counter[str]
"""What did not go to the engine as it came, by kind."""

_BILLING = "x-anthropic-billing-header:"
_NONCE = re.compile(r"\bcch=[0-9A-Za-z]+")
_SUBAGENT = re.compile(r"\bcc_is_subagent=true\b")
_TOTAL = re.compile(r"[ \t]*<total_tokens>[^<>]{0,200}</total_tokens>[ \t]*\n?")

BILLING_LINE = "billing header"
NONCE = "cch nonce"
TOKENS_LEFT = "total_tokens reminder"
BUSTERS = (BILLING_LINE, NONCE, TOKENS_LEFT)
"""The kinds that would change the prompt with each request; all else in a tally is not taken."""


def without_busters(text: str, tally: Tally) -> tuple[str, bool]:
    """A system text without them, and whether its billing line says that a sub-agent asks.

    Only lines at the very start that are the billing header go: the same words further on are
    part of somebody's text.
    """
    subagent = False
    while text.startswith(_BILLING):
        line, _, text = text.partition("\n")
        tally[BILLING_LINE] += 1
        tally[NONCE] += bool(_NONCE.search(line))
        subagent = subagent or bool(_SUBAGENT.search(line))
    if "<total_tokens>" in text:
        text, times = _TOTAL.subn("", text)
        tally[TOKENS_LEFT] += times
        text = text if text.strip() else ""
    return text, subagent
