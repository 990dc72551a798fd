"""What was found out about this machine, one check after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckState = Literal["ok", "warn", "missing", "unchecked"]
"""`missing` stands in the way of serving anything; `warn` limits it; `unchecked` has a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    group: str
    name: str
    state: CheckState
    text: str
    """What was found, or why it was not looked at."""

    mend: str = ""
    """The one line that mends it; empty where nothing needs to be."""
