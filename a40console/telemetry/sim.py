"""The simulated engine's card: what its driver would say, told by the engine itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from a40console.model.figures import Missing
from a40console.model.snapshot import Gpu
from a40console.telemetry.fetch import EngineHttp, SourceError

SOURCE = "sim.gpus"
PATH = "/sim/v1/gpus"
TIMEOUT_S = 3.0
KEEP_S = 60.0
"""A lost source's last reading is shown with its age for this long."""

SERVER = "a40console-sim"
"""The `Server` header of every answer of a simulated engine."""

_NOT_ESTIMATED = Missing("the engine does not estimate it")


class SimulatedGpus:
    """Keeps the last reading of the simulated cards."""

    def __init__(self, http: EngineHttp, clock: Callable[[], float]) -> None:
        self._http = http
        self._clock = clock
        self._gpus: tuple[Gpu, ...] = ()
        self._at_s: float | None = None

    async def read(self) -> None:
        """One reading.

        Raises:
            SourceError: When there is none, or it is not understood.
        """
        answer = await self._http.get(PATH, timeout_s=TIMEOUT_S)
        told = self._http.require(answer, "simulated GPUs").json_object().get("gpus")
        try:
            self._gpus = tuple(_gpu(card) for card in told or ())
        except (AttributeError, TypeError) as error:
            raise SourceError(f"simulated GPUs: not understood ({error})") from error
        self._at_s = answer.at_s

    def view(self) -> tuple[Gpu, ...] | Missing:
        """The cards as last told, with their age; missing once they are lost for a minute."""
        if self._at_s is None:
            return Missing("the simulated engine has not told of its card yet")
        age_s = max(0.0, self._clock() - self._at_s)
        if age_s > KEEP_S:
            return Missing("the simulated engine does not tell of its card")
        return tuple(replace(gpu, age_s=round(age_s, 3)) for gpu in self._gpus)


def _gpu(card: dict[str, Any]) -> Gpu:
    silent = Missing("the simulation does not tell it")
    known: dict[str, Any] = {field.name: card.get(field.name, silent) for field in fields(Gpu)}
    reasons = known["throttle_reasons"]
    known["throttle_reasons"] = tuple(reasons) if isinstance(reasons, list) else silent
    return Gpu(**{**known, "source": SOURCE, "age_s": 0.0, "read_bytes_per_s": _NOT_ESTIMATED})
