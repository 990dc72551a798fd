"""Words of a serving engine by which one part of it waits for another in vain. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from a40console.engines import vllm
from a40console.engines.logs import strip_escapes

_WAITS = re.compile(
    r"No available shared memory broadcast block found in \d+ s"
    r"|Waiting for \d+ (?:local, \d+ remote )?core engine proc"
    r"|RPC call to \w+ timed out"
    r"|Watchdog caught collective operation timeout"
)
_WORKS = re.compile(r"Avg generation throughput: (?!0\.0 )[\d.]+ tokens/s")


def silent_words(lines: Sequence[str]) -> str:
    """The last line that tells of a wait in vain, unless the engine worked after it; else empty."""
    for written in reversed(lines):
        line = vllm.split_prefix(strip_escapes(written).rstrip())[1]
        if _WORKS.search(line):
            return ""
        if _WAITS.search(line):
            return line
    return ""
