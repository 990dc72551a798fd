"""The service's side towards the clients: door, gate, meter, sessions, and the gateway of them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.applications import Starlette

from a40console.config import Settings
from a40console.gateway.app import Collaborators, build_gateway
from a40console.gateway.captures import Captures
from a40console.gateway.client_limits import client_limits
from a40console.gateway.meter import Meter, RequestCounts
from a40console.gateway.probing import Dialects
from a40console.gateway.sessions import SessionBook
from a40console.model.snapshot import Slot, SourceStatus
from a40console.operations.status import EngineStatus
from a40console.paths import Paths
from a40console.service.capturing import end_captures
from a40console.service.cost import Terms
from a40console.service.gateway_door import GatewayDoor
from a40console.service.holding import admission_gate, model_names
from a40console.service.journal import Journal
from a40console.service.messages_route import note_route
from a40console.service.session_shelf import SessionShelf
from a40console.service.sessions import Sessions, SessionsBlock, around
from a40console.service.upstream import EngineUpstream
from a40console.telemetry.held import held_slots
from a40console.telemetry.sampler import EngineSampler
from a40console.telemetry.view import EngineView


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The requests of one instant, joined with what the engine says of them."""

    view: EngineView | None
    """None while no engine answers."""

    counts: RequestCounts
    waiting: tuple[Slot, ...]
    """What is held while no engine answers."""

    messages: SourceStatus
    """How the Messages API is answered."""


class GatewaySide:
    """Builds what stands between the clients and the engine, and ties it together.

    Args:
        paths: Where sessions, captures and the token lie.
        settings: The gateway's.
        gateway_socket: What the clients' requests come in by.
        journal: Takes what the gateway did.
        read_status: The engine as it is now.
    """

    def __init__(
        self,
        paths: Paths,
        settings: Settings,
        *,
        gateway_socket: socket.socket,
        journal: Journal,
        read_status: Callable[[], EngineStatus],
    ) -> None:
        self._settings = settings.gateway
        self._journal = journal
        self._read_status = read_status
        self._captures = Captures(paths.captures)
        self.meter = Meter(clock=time.monotonic)
        self.sessions = Sessions(SessionBook(run_id=self._run_id, captures=self._captures))
        self.shelf = SessionShelf(paths.state / "sessions.json", self.sessions.book)
        self.admission = admission_gate(settings.gateway, journal.record)
        self.upstream = EngineUpstream(
            read_status, paths.engine_runs, messages_route=settings.gateway.messages_route
        )
        self._dialects = Dialects(on_found=lambda found: note_route(journal, found))
        self.door = GatewayDoor(
            gateway_socket, paths.gateway_token, token_required=settings.gateway.token_required
        )
        self.app = self._build()

    def _build(self) -> Starlette:
        return build_gateway(
            upstream=self.upstream,
            meter=self.meter,
            authorise=self.door.authoriser(),
            collaborators=Collaborators(
                dialects=self._dialects,
                book=self.sessions.book,
                names=model_names(self._journal.record),
                gate=self.admission,
            ),
            client_limits=client_limits(self._settings),
        )

    def look(self, sampler: EngineSampler | None, now_s: float) -> Traffic:
        """The requests now; the engine's side of them by its sampler, where one follows it.

        One whose body is still on its way is neither held nor worked on.
        """
        live = [row for row in self.meter.live() if row.has_come]
        view = sampler.view(live, self.meter.finished()) if sampler else None
        self.upstream.plugin_counts = view is None or view.plugin_counts
        serving = self.upstream.current()
        self._dialects.look(serving)
        return Traffic(
            view=view,
            counts=self.meter.counts(),
            waiting=() if view else held_slots(live, now_s),
            messages=self._dialects.status(serving),
        )

    def sessions_of(self, traffic: Traffic, terms: Terms) -> SessionsBlock:
        """The clients' sessions at that instant, at these prices."""
        return self.sessions.take(around(traffic.view, terms, self._run_id(), traffic.waiting))

    def end_captures(self) -> None:
        """End what is captured: nobody would end it later."""
        end_captures(self._captures, self._journal.record)

    def _run_id(self) -> str | None:
        """Which engine start serves: the cache of another one holds nothing of ours."""
        run = self._read_status().run
        return None if run is None else run.id
