"""Snapshots in which anything that may be missing is missing, or an estimate, at random."""

from __future__ import annotations

import random
import typing
from dataclasses import fields, is_dataclass, replace
from typing import Any

from a40console.model.figures import Estimated, Figure, Missing

REASON = "the fog is thick"


def fogged(value: Any, chance: float, seed: int) -> Any:
    """The dataclass with each field that may be missing lost by chance, deeply."""
    return _fogged(value, chance, random.Random(seed))


def _fogged(value: Any, chance: float, dice: random.Random) -> Any:
    if isinstance(value, tuple):
        return tuple(_fogged(item, chance, dice) for item in value)
    if not is_dataclass(value) or isinstance(value, Missing | Estimated | type):
        return value
    hints = typing.get_type_hints(type(value))
    changes: dict[str, Any] = {}
    for field in fields(value):
        kinds = typing.get_args(hints[field.name])
        now = getattr(value, field.name)
        if Missing in kinds and dice.random() < chance:
            changes[field.name] = Missing(REASON)
        elif set(typing.get_args(Figure)) <= set(kinds) and isinstance(now, int | float):
            changes[field.name] = Estimated(now) if dice.random() < chance else now
        else:
            changes[field.name] = _fogged(now, chance, dice)
    return replace(value, **changes)
