"""A change of a profile that mends a failed start, as it is offered before it is made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FixOffer:
    """One key of one profile, before and after, and the file that would be written."""

    id: str
    """Names exactly this change: what is applied is what was shown."""

    profile: str
    start: str
    """The engine start that failed."""

    code: str
    """Of the fault: `kv-cache-too-small`."""

    cause: str
    evidence: str
    """The engine's line."""

    key: str
    """Dotted, as in the file."""

    before: str | None
    """As TOML writes it; None where the profile does not set the key."""

    after: str | None
    """None takes the key out."""

    why: str
    file: str
    """What is written."""

    new_file: bool
    """Whether the file is made, and from then on stands for the shipped profile."""

    diff: tuple[str, ...]
    """The lines that change, each with - or + before it."""

    @property
    def change(self) -> str:
        """The change in one line."""
        return f"{self.key}: {self.before or 'not set'} → {self.after or 'not set'}"
