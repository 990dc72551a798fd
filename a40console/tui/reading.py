"""What a screen is shown: the snapshot, how fresh it is, and what is remembered beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from a40console.model.control import Trouble
from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import Snapshot
from a40console.tui.keymap import Keymap
from a40console.tui.past import Past
from a40console.tui.timeline import LIVE, TimeView

STALE_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class Link:
    """How we stand with the service."""

    state: Literal["connecting", "live", "lost"]
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Everything a panel may draw from."""

    snapshot: Snapshot
    link: Link
    age_s: float
    """Seconds since the snapshot arrived."""

    unread: int
    """Events since the operator last looked."""

    past: Past
    keymap: Keymap
    view: TimeView = LIVE
    """The part of time that charts cover."""

    paused_s: float | None = None
    """Seconds that the picture has stood still; None while it moves."""

    meanwhile: str = ""
    """What has become of the engine or the service since it stands still."""

    remote: str = ""
    """The machine of the service; empty for this one."""

    forbidden: str = ""
    """Who forbade to act from this console; empty where nobody did."""

    about: str = ""
    """What the console has to say of itself: drawn less often, alarms off."""

    @property
    def read_only(self) -> str:
        """Who forbids commands that act, here or at the service; empty where nobody does."""
        told = self.snapshot.service.forbidden
        return self.forbidden or ("" if isinstance(told, Missing) else told)

    @property
    def stale(self) -> bool:
        """Whether the figures may no longer hold and are greyed."""
        return self.link.state != "live" or self.age_s > max(
            STALE_AFTER_S, 3 * self.snapshot.interval_s
        )

    def outdated(self, age_s: Figure) -> float | None:
        """The age of a block that lost its source; None while it is fresh or has none."""
        age = number(age_s)
        if age is None or age <= max(STALE_AFTER_S, 3 * self.snapshot.interval_s):
            return None
        return age
