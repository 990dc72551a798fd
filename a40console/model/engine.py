"""What an engine is to us: its states, its address, its end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from a40console.model.figures import Missing, Text

EngineKind = Literal["vllm", "llamacpp", "sim", "attached", "foreign"]

MessagesRoute = Literal["auto", "native", "translated"]
"""By the engine's own Messages API, by its chat completions, or as it is found to be."""

MESSAGES_SOURCE = "messages API"
"""Among the sources, what was found out of it; it is asked once, so it tells nothing of now."""


SIMULATED = "+sim"
"""At the end of a simulated engine's version, so that nobody takes it for a real one."""


def is_simulated(version: Text) -> bool:
    """Whether an engine's version says that it is simulated."""
    return not isinstance(version, Missing) and version.endswith(SIMULATED)


class EngineState(StrEnum):
    """Where an engine is in its life, as the operator sees it."""

    ABSENT = "absent"
    FETCHING = "fetching"
    STARTING = "starting"
    SERVING = "serving"
    DRAINING = "draining"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    ORPHANED = "orphaned"
    HUNG = "hung"
    ASLEEP = "asleep"

    @property
    def sentence(self) -> str:
        """What the operator reads of an engine in this state."""
        return _SENTENCES.get(self, f"the engine is {self.value}")


DOWN = frozenset({EngineState.ABSENT, EngineState.STOPPED, EngineState.FAILED})
"""Where nothing of an engine is left: a start is no switch."""

_SENTENCES = {
    EngineState.ABSENT: "no engine runs",
    EngineState.FETCHING: "the engine's model is fetched",
    EngineState.FAILED: "the engine has failed",
    EngineState.ORPHANED: "the engine is gone, processes of it live on",
    EngineState.HUNG: "the engine hangs",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an engine's HTTP surface is reached."""

    base_url: str
    """`http://127.0.0.1:8000`; with a socket path only its scheme, host and prefix count."""

    socket_path: str | None = None
    api_key: str | None = None
    """Sent as a bearer token; never printed."""

    plugin_token: str | None = None
    """Token of our plugin inside vLLM, None where there is no plugin; never printed."""

    def __repr__(self) -> str:
        """The address alone: secrets must not reach a log through a repr."""
        return f"Endpoint({self.socket_path or self.base_url})"


@dataclass(frozen=True, slots=True)
class EngineEnd:
    """How an engine ended."""

    code: int | Missing
    signal: str | Missing
    """`SIGKILL`; missing when it ended by itself."""

    cause: str
    """Read from the log and the kernel, not from the exit code alone."""

    at: str
