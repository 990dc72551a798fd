"""How a passage that an engine writes when it fails is told: its meaning, and what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

FaultKind = Literal[
    "stopped",
    "rejected",
    "memory",
    "model",
    "address",
    "missing",
    "disk",
    "core",
    "killed",
    "crashed",
    "unknown",
]
"""`rejected` is a setting the engine refused, `missing` something that is not installed, `core`
vLLM's engine core or a worker, `killed` a signal from outside, `crashed` one of its own making."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A passage of the output (it may span lines) and its meaning; `{name}` takes a group."""

    code: str
    """Stable, for scripts: `unknown-flag`. Several passages may tell of one fault."""

    kind: FaultKind
    pattern: str
    cause: str
    remedy: str
    only_starting: bool = True
    """Whether it explains nothing in an engine that has served."""

    regex: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", re.compile(self.pattern, re.MULTILINE))
