"""What `count_tokens` answered, against what the engine then counted for the same prompt."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

from a40console.model.session import CountDisagreement, Outline

KEPT_COUNTS = 256
SLACK_TOKENS = 4
SLACK_RATIO = 0.005
"""Less apart is no difference: an engine counts the opening of its answer in or not."""


class CountChecks:
    """Remembers the newest counts by the prompt's digest."""

    def __init__(self) -> None:
        self.agreed = 0
        self.error: CountDisagreement | None = None
        """The newest that did not agree; None once one agrees again."""

        self.impossible = False
        """Whether the engine could not count the newest prompt."""

        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def counted(self, outline: Outline, tokens: int | None) -> None:
        """A prompt was counted; None where the engine cannot count."""
        self.impossible = tokens is None
        if tokens is None or not outline:
            return
        self._counts[_name(outline)] = tokens
        while len(self._counts) > KEPT_COUNTS:
            self._counts.popitem(last=False)

    def served(self, outline: Outline, prompt_tokens: int | None) -> None:
        """A prompt was served, and the engine said how long it is."""
        if not self._counts or not outline or prompt_tokens is None:
            return
        counted = self._counts.pop(_name(outline), None)
        if counted is None:
            return
        apart = abs(counted - prompt_tokens)
        if apart <= max(SLACK_TOKENS, SLACK_RATIO * prompt_tokens):
            self.agreed += 1
            self.error = None
        else:
            self.error = CountDisagreement(counted_tokens=counted, served_tokens=prompt_tokens)


def _name(outline: Outline) -> bytes:
    digest = blake2b(digest_size=16)
    for block in outline:
        digest.update(block.kind.encode() + b"\0" + block.digest)
    return digest.digest()
