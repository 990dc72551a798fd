"""Who is calling, from the User-Agent, as one short word that is safe to draw."""

from __future__ import annotations

import re

_KNOWN = (
    ("claude-cli/", "claude-code"),
    ("claude-code/", "claude-code"),
    ("openai/python", "openai-python"),
    ("asyncopenai/python", "openai-python"),
    ("openai/js", "openai-node"),
    ("anthropic/python", "anthropic-python"),
    ("asyncanthropic/python", "anthropic-python"),
    ("anthropic/js", "anthropic-node"),
)
_PRODUCT = re.compile(r"[a-z0-9][a-z0-9._+-]{0,31}")
_SHOWN_LIMIT = 120


def client_of(user_agent: str | None) -> str | None:
    """`claude-code`, `openai-python`, `curl`: a known client, else the first product named."""
    lowered = (user_agent or "").strip().lower()
    for start, name in _KNOWN:
        if lowered.startswith(start):
            return name
    product = _PRODUCT.match(lowered)
    return product.group() if product else None


def shown(text: object, limit: int = _SHOWN_LIMIT) -> str | None:
    """A client's own text, cut to what can be drawn: printable and short; else None."""
    if not isinstance(text, str):
        return None
    return "".join(filter(str.isprintable, text[:limit])) or None
