"""Latencies as the snapshot has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from a40console.model.figures import Figure, Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Quantiles of a latency with the number of samples behind them."""

    p50: Figure
    p95: Figure
    count: int
    origin: Literal["gateway", "engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstToken:
    """Time to first token at the gateway: quantiles and the last five."""

    p50: Figure
    p95: Figure
    count: int
    last: tuple[float, ...]
    origin: Literal["gateway", "engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latencies over the window."""

    window_s: float
    ttft_s: FirstToken | Missing
    pass_s: Percentiles | Missing
    queue_s: Percentiles | Missing
