"""What a profile's file says otherwise than what runs, setting by setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from a40console.model.figures import Missing
from a40console.model.snapshot import Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChange:
    """One setting; values as TOML writes them, secrets covered."""

    key: str
    """Dotted, as in the file."""

    running: str | None
    """None where it is not set."""

    file: str | None
    effect: Literal["live", "restart"]
    why: str
    """Why it takes a restart, or what it does without one."""

    @property
    def change(self) -> str:
        """The change in one line."""
        return f"{self.key}: {self.running or 'not set'} → {self.file or 'not set'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDiff:
    """A profile's file against the engine that runs."""

    id: str
    """Names exactly these changes: what is applied is what was shown. Empty for none."""

    profile: str
    origin: str
    """`shipped`, or the file."""

    running: str
    """The profile that runs; the same one unless another was asked about."""

    state: str
    """Of the engine."""

    changes: tuple[ProfileChange, ...]
    not_in_force: tuple[Difference, ...] | Missing
    """What was asked of the engine that runs, and that it runs otherwise."""

    @property
    def needs_restart(self) -> bool:
        """Whether one of them takes a restart."""
        return any(change.effect == "restart" for change in self.changes)
