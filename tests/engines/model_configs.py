"""Configurations of models, cut down to the figures that memory depends on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from a40console.engines.model_config import shape_of
from a40console.model.shape import ModelShape

FOLDER = Path(__file__).parent.parent / "data" / "model_configs"


def config(name: str) -> dict[str, Any]:
    """The configuration as JSON."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def shape(name: str) -> ModelShape:
    """The shape that it describes."""
    found = shape_of(config(name), name)
    assert isinstance(found, ModelShape), found
    return found
