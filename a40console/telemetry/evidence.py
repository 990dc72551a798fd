"""What the sources of one engine hold at one instant, for whoever makes a view of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from a40console.model.request import EngineRow
from a40console.telemetry.blocks import Source
from a40console.telemetry.depth_speeds import DepthSpeeds
from a40console.telemetry.reading import LiveDepth
from a40console.telemetry.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the sources hold at one instant, with the best source for each purpose."""

    engine: Literal["vLLM", "llama.cpp"]
    rows: tuple[EngineRow, ...] | None
    """Live requests by the engine's own word; None where it does not list them."""

    rows_at_s: float
    ended: tuple[EngineRow, ...]
    timeline: Timeline
    by_order: bool
    """Whether rows carry no ids of ours."""

    counters: Source
    """Speed and requests."""

    metrics: Source
    """Caches, latencies and settings."""

    metrics_usable: bool
    """Whether the last reading of the metrics still counts."""

    speculation: Source
    speculating: bool | None
    paused: bool | None
    live_depth: LiveDepth | None = None
    """The depth of speculation by the worker's own word."""

    speeds: DepthSpeeds | None = None
    """What was measured at which depth; None where no depth is told."""

    controls: Mapping[str, str] | None = None
    """Why each control that cannot be used cannot; None where nothing tells."""
