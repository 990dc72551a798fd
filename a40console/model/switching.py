"""A change of what serves, while it is under way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from a40console.model.figures import Figure, Missing, Text

NO_SWITCH = Missing("nothing is switched")

SwitchStep = Literal["prepare", "drain", "stop", "start", "canary", "put_back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchInfo:
    """What is changed and how far it is; phase and ETA of a start are the engine's."""

    what: str
    """`switch to beta`."""

    profile: str
    """That is to serve."""

    step: SwitchStep
    """Nothing has stopped yet while it is `prepare`; `put_back` starts what served before."""

    step_s: Figure
    total_s: float
    detail: Text
    """How far the step is, in words."""

    who: Text
    """Who asked for it."""
