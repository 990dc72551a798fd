"""vLLM's own HTTP surface: metrics, identity and health. vllm.cpp and the simulation share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from a40console.model.figures import Figure, Missing, Text
from a40console.telemetry.aliases import WANTED, read_samples
from a40console.telemetry.exposition import (
    ExpositionError,
    Samples,
    TruncatedError,
    parse_exposition,
)
from a40console.telemetry.fetch import Answer, EngineHttp, SourceError
from a40console.telemetry.reading import EngineReading

SOURCE = "vllm.metrics"
METRICS_TIMEOUT_S = 5.0
HEALTH_TIMEOUT_S = 3.0

_POLLS_UNTIL_BELIEVED = 3


@dataclass(frozen=True, slots=True)
class Identity:
    """Who answers: read once a life of the engine."""

    version: Text
    served_names: tuple[str, ...]
    """Empty where they are not known."""

    max_model_len: Figure


class MetricsSource:
    """Reads `/metrics` into readings."""

    def __init__(self, http: EngineHttp, *, source: str = SOURCE) -> None:
        self._http = http
        self._source = source
        self._before: EngineReading | None = None
        self._shrunk_polls = 0

    async def read(self) -> EngineReading:
        """One scrape.

        Raises:
            SourceError: When it failed or the body cannot be trusted; the reason says which.
        """
        answer = await self._http.get("/metrics", timeout_s=METRICS_TIMEOUT_S)
        samples = samples_of(self._http.require(answer, "metrics"))
        reading = read_samples(samples, source=self._source, at_s=answer.at_s)
        self._reject_shrunk(reading)
        self._before = reading
        return reading

    def _reject_shrunk(self, reading: EngineReading) -> None:
        """A body cut exactly at the end of a line shows only in what it lacks.

        Series do not vanish while an engine lives; if they stay away, another engine answers.
        """
        before = self._before
        if before is None or before.boot != reading.boot:
            return
        lost = before.counters.keys() - reading.counters.keys() - reading.unreadable
        fewer = len(lost) + len(before.gauges.keys() - reading.gauges.keys())
        if fewer < 2 or self._shrunk_polls >= _POLLS_UNTIL_BELIEVED:
            self._shrunk_polls = 0
            return
        self._shrunk_polls += 1
        raise SourceError(f"the metrics text is cut: {fewer} figures are gone", passing=True)


def samples_of(answer: Answer) -> Samples:
    """The engine's samples in a metrics answer.

    Raises:
        SourceError: When the body cannot be trusted; a cut one is passing.
    """
    try:
        return parse_exposition(answer.text, families=WANTED, content_type=answer.content_type)
    except TruncatedError as error:
        raise SourceError(str(error), passing=True) from error
    except ExpositionError as error:
        raise SourceError(str(error)) from error


async def read_health(http: EngineHttp) -> Answer:
    """The answer of `/health`, whatever its status.

    Raises:
        SourceError: When nothing answers.
    """
    return await http.get("/health", timeout_s=HEALTH_TIMEOUT_S)


async def read_models(http: EngineHttp) -> list[dict[str, Any]]:
    """The models that `/v1/models` lists.

    Raises:
        SourceError: When they cannot be read.
    """
    answer = await http.get("/v1/models", timeout_s=HEALTH_TIMEOUT_S)
    data = http.require(answer, "models").json_object().get("data")
    if not isinstance(data, list):
        raise SourceError("models: the answer lists none")
    return [model for model in data if isinstance(model, dict)]


async def read_identity(http: EngineHttp) -> Identity:
    """Version, served names and context length.

    Raises:
        SourceError: When the engine does not answer yet.
    """
    try:
        models = await read_models(http)
    except SourceError as error:
        if error.passing:
            raise
        names: tuple[str, ...] = ()
        length: Figure = Missing(error.reason)
    else:
        names = tuple(str(model["id"]) for model in models if "id" in model)
        lengths = [model["max_model_len"] for model in models if model.get("max_model_len")]
        length = lengths[0] if lengths else Missing("/v1/models does not tell it")
    return Identity(version=await _version(http), served_names=names, max_model_len=length)


async def _version(http: EngineHttp) -> Text:
    answer = await http.get("/version", timeout_s=HEALTH_TIMEOUT_S)
    if answer.status != 200:
        return Missing(f"/version answers HTTP {answer.status}")
    version = answer.json_object().get("version")
    return version if isinstance(version, str) else Missing("/version does not tell it")
