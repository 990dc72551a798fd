"""The simulated A40: what a driver would say, worked out from how busy the engine is. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Any

NAME = "A40 (sim)"
TOTAL_BYTES = 48_305_799_168
RESERVED_BYTES = 280_000_000
"""What the driver takes before anything runs."""

PEAK_BYTES_PER_S = 696e9
POWER_LIMIT_W = 300.0
IDLE_W = 31.0
BUSY_W = 247.0
"""Beyond idle, at one busy stream; more streams keep more of the card awake."""

IDLE_C, WARMTH_C_PER_W = 29.0, 0.137
WARMS_IN_S = 45.0
IDLE_MHZ, BUSY_MHZ = 210, 1740
WINDOW_S = 1.0
"""Over which a driver averages its utilisation."""

PATH = "/sim/v1/gpus"


@dataclass(slots=True)
class Gpu:
    """One card, warming and cooling between two looks at it."""

    used_bytes: int
    """By the engine: weights, KV cache and what is around them."""

    _at_s: float | None = None
    _busy_s: float = 0.0
    _busy_ratio: float = 0.0
    _temperature_c: float = IDLE_C

    def look(self, now_s: float, busy_s: float) -> dict[str, Any]:
        """What the driver says now.

        Args:
            now_s: The engine's time.
            busy_s: Seconds that passes took since it began.
        """
        if self._at_s is None or now_s - self._at_s >= WINDOW_S / 4:
            self._settle(now_s, busy_s)
        power_w = IDLE_W + BUSY_W * self._busy_ratio
        return {
            "index": 0,
            "name": NAME,
            "memory_used_bytes": min(TOTAL_BYTES, RESERVED_BYTES + self.used_bytes),
            "memory_total_bytes": TOTAL_BYTES,
            "memory_baseline_bytes": RESERVED_BYTES,
            "utilization_ratio": round(self._busy_ratio, 3),
            "power_w": round(power_w, 1),
            "power_limit_w": POWER_LIMIT_W,
            "temperature_c": round(self._temperature_c, 1),
            "sm_clock_mhz": BUSY_MHZ if self._busy_ratio > 0.02 else IDLE_MHZ,
            "throttle_reasons": [],
            "peak_bytes_per_s": PEAK_BYTES_PER_S,
        }

    def _settle(self, now_s: float, busy_s: float) -> None:
        before_s, self._at_s = self._at_s, now_s
        if before_s is not None:
            passed_s = now_s - before_s
            self._busy_ratio = min(1.0, max(0.0, (busy_s - self._busy_s) / passed_s))
            target_c = IDLE_C + WARMTH_C_PER_W * BUSY_W * self._busy_ratio
            self._temperature_c += (target_c - self._temperature_c) * (
                1 - exp(-passed_s / WARMS_IN_S)
            )
        self._busy_s = busy_s
