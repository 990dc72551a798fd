"""What the words that a fault's pattern found come to, the nearest known name included. Pure."""

from __future__ import annotations

import re
from difflib import get_close_matches

from a40console.engines.vllm_flags import GONE, SERVE_FLAGS

UNKNOWN_FLAG = "unknown-flag"
LIKE = 0.7
"""How alike two names must be for one to be called the nearest of the other."""

_NAME = re.compile(r"[\w.+-]+")


def found_words(code: str, match: re.Match[str]) -> dict[str, str]:
    """The groups of a match, empty where they took no part, and `nearest` as a clause of its own.

    Args:
        code: The fault's: an unknown flag is compared with vLLM's.
        match: With a group `known` where the engine lists what it would have taken.
    """
    groups = {name: value or "" for name, value in match.groupdict().items()}
    near = ""
    if code == UNKNOWN_FLAG and "flags" in groups:
        near = _nearest_flags(groups["flags"])
    elif known := groups.get("known"):
        near = ", ".join(get_close_matches(groups["name"], _NAME.findall(known), n=1, cutoff=LIKE))
    return {**groups, "nearest": f" The nearest that it has: {near}." if near else ""}


def _nearest_flags(refused: str) -> str:
    flags = [word.partition("=")[0] for word in refused.split() if word.startswith("--")]
    names = sorted(SERVE_FLAGS)
    # What would change nothing any more has no successor: the most alike may be its opposite.
    near = [get_close_matches(flag, names, n=1, cutoff=LIKE) for flag in flags if flag not in GONE]
    return ", ".join(name for found in near for name in found)
