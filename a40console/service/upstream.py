"""What the gateway is told about the engine, from the engine's life."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from a40console.gateway.upstream import Unavailable, Upstream
from a40console.model.engine import EngineState, MessagesRoute
from a40console.model.figures import number
from a40console.operations.status import EngineStatus

RETRY_UNKNOWN_S = 10.0
LEAST_RETRY_S = 5.0
"""Clients ask ten times and give up: what is left of a start is estimated, and may last longer."""
_ANSWERS = (EngineState.SERVING, EngineState.DRAINING)
_START = "Start one with: a40console engine start"


class EngineUpstream:
    """Answers the gateway's question where the engine is, or why it is not there."""

    def __init__(
        self,
        read_status: Callable[[], EngineStatus],
        runs: Path,
        clock: Callable[[], float] = time.monotonic,
        *,
        messages_route: MessagesRoute = "auto",
    ) -> None:
        self._read_status = read_status
        self._runs = runs
        self._clock = clock
        self._messages_route = messages_route
        self._known: tuple[EngineStatus, Upstream] | None = None

        self.plugin_counts = True
        """Whether the plugin inside the engine counts, so that requests stay untouched."""

    def current(self) -> Upstream | None:
        """The engine that serves, or None."""
        status = self._read_status()
        if status.state not in _ANSWERS or status.run is None:
            return None
        if self._known is None or self._known[0] is not status:
            run = status.run
            self._known = (
                status,
                Upstream(
                    endpoint=run.endpoint(self._runs),
                    kind=run.profile.kind,
                    served_name=run.profile.public_name,
                    plugin=run.plugin,
                    run_id=run.id,
                    messages_route=run.profile.messages_route or self._messages_route,
                    reasoning=run.profile.reasoning_parser is not None,
                ),
            )
        upstream = self._known[1]
        if upstream.plugin and not self.plugin_counts:
            return replace(upstream, plugin=False)
        return upstream

    def why_not(self) -> Unavailable:
        """Why `current()` answered None, in the client's words."""
        status = self._read_status()
        name = status.profile.name if status.profile else "the engine"
        for_s = self._clock() - status.phase_since_s if status.phase_since_s is not None else 0.0
        match status.state:
            case EngineState.ABSENT | EngineState.STOPPED:
                text = f"No engine runs. {_START}"
            case EngineState.FETCHING | EngineState.STARTING:
                text = f"{name} is starting: {status.phase or 'process'} for {for_s:.0f} s."
            case EngineState.FAILED:
                cause = status.end.cause if status.end else "it did not come to serve"
                stays = f"; {status.stays_down}" if status.stays_down else ""
                text = f"{name} failed: {cause}{stays}. {status.remedy or _START}"
            case EngineState.ORPHANED:
                text = f"{name} lost its leader. End what is left: a40console engine clean"
            case EngineState.ASLEEP:
                text = f"{name} is asleep. Wake it: a40console engine wake"
            case _:
                text = f"{name} is {status.state}."
        starting = status.state in (EngineState.FETCHING, EngineState.STARTING)
        eta_s = number(status.eta) if starting else None
        return Unavailable(
            text=text,
            phase=status.phase or status.state.value,
            eta_s=eta_s,
            retry_after_s=RETRY_UNKNOWN_S if eta_s is None else max(eta_s, LEAST_RETRY_S),
        )
