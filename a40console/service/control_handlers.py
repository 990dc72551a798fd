"""The commands that steer a running engine: abort, cache, drain, admission, sleep, probe, router.

Each one that is done is an event with who asked, what, before, after and result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from a40console.engines.controls import EngineControls
from a40console.engines.router import LlamaRouter
from a40console.errors import RefusedError, UsageError
from a40console.gateway.meter import Meter
from a40console.model.engine import EngineState
from a40console.model.figures import Missing, number
from a40console.model.request_named import none_named, request_named
from a40console.model.snapshot import Slot, Snapshot
from a40console.operations.dormancy import LEVELS, Connect, Dormancy, connector
from a40console.operations.operator import EngineOperator
from a40console.operations.record import RunRecord
from a40console.operations.roles import Recorder
from a40console.operations.who import asking
from a40console.service.asked_seconds import asked_seconds
from a40console.service.board import Board
from a40console.service.engineering import Surroundings, canary_of
from a40console.service.gateway_side import GatewaySide
from a40console.service.idle_probe import probe_idle_silicon
from a40console.service.pause_note import PauseNote
from a40console.service.tasks import Handler

_ANSWERING = (EngineState.SERVING, EngineState.DRAINING)
Arguments = Mapping[str, str]
Told = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlHandlers:
    """Carries the controls out."""

    operator: EngineOperator
    runs: Path
    connect: Connect
    dormancy: Dormancy
    read_snapshot: Callable[[], Snapshot | None]
    under_way: Callable[[], int]
    """How many of the gateway's requests the engine has."""

    meter: Meter
    """Knows them."""

    record: Recorder
    pause_note: PauseNote
    drain_s: float

    def table(self) -> dict[str, Handler]:
        """Command id to what does it."""
        return {
            "request.abort": self._abort,
            "cache.reset": self._reset,
            "engine.drain": self._drain,
            "admission.pause": self._pause,
            "admission.resume": self._resume,
            "engine.sleep": self._sleep,
            "engine.wake": self._wake,
            "engine.probe": self._probe,
            "router.load": self._load,
            "router.unload": self._unload,
        }

    # --- Requests and cache -------------------------------------------------------------------

    async def _abort(self, arguments: Arguments) -> Told:
        slot = self._slot(arguments.get("request", ""))
        if slot.phase == "held":
            raise RefusedError(
                f"Request {slot.request_id} waits at the gate: the engine has nothing of it to end",
                evidence=self.operator.gate.closed or "it is about to be let go",
                remedy="It goes when its client leaves, or ask again once it runs.",
            )
        if self.operator.status.state not in _ANSWERING or self.operator.status.run is None:
            raise RefusedError(f"No abort now: {self.operator.status.state.sentence}")
        async with self.connect(self.operator.status.run) as controls:
            ids = await controls.running(slot.request_id)
            with self.meter.stopping(slot.request_id):
                if not [request for request in ids if await controls.abort(request)]:
                    raise RefusedError(
                        f"Request {slot.request_id} does not run any more",
                        remedy="See what runs: a40console status",
                    )
        after = _generated(slot)
        data = {"request": slot.request_id, "slot": str(slot.slot), "before": slot.phase}
        data |= {"after": "aborted", "result": after}
        data |= {} if isinstance(slot.session, Missing) else {"session": slot.session}
        text = f"request {slot.request_id} in slot {slot.slot} is aborted, {after}"
        self._note("request.aborted", text, data)
        return {"report": f"{text[0].upper()}{text[1:]}.", "request": slot.request_id}

    async def _reset(self, arguments: Arguments) -> Told:
        before = self._reusable()
        async with self._controls("reset-prefix-cache") as controls:
            done = await controls.reset_prefix_cache()
        if not done:
            raise RefusedError(
                "The prefix cache is not reset: a running request holds some of it",
                evidence=self._running_in_words(),
                remedy="Let them end first: a40console engine drain, then again, then resume.",
            )
        text = f"the prefix cache is reset; what could be used again before: {before}"
        self._note("cache.reset", text, {"before": before, "after": "empty", "result": "reset"})
        return {"report": f"{text[0].upper()}{text[1:]}.", "before": before}

    # --- Admission ----------------------------------------------------------------------------

    async def _pause(self, arguments: Arguments) -> Told:
        if self.operator.gate.paused:
            raise RefusedError("Admission is paused already", evidence=self.operator.gate.paused)
        why, unkept = self._close()
        data = _moved("open", "paused", f"new requests are held{unkept}")
        self._note("admission.paused", why, data, warn=bool(unkept))
        left = self.under_way()
        return {
            "report": f"Admission is paused: new requests are held{unkept}. "
            "Let them go: a40console engine resume",
            "running": str(left),
        }

    async def _resume(self, arguments: Arguments) -> Told:
        gate, snapshot = self.operator.gate, self.read_snapshot()
        before, held = gate.paused, snapshot.requests.held if snapshot else 0
        if before is None:
            return await self._resume_engine()
        gate.resume()
        self.pause_note.clear()
        if gate.closed is None:
            text = f"admission is resumed, {held} held requests go on"
            moved = _moved(before, "open", f"{held} go on")
        else:
            text = f"the pause is taken back; {held} requests stay held while {gate.closed}"
            moved = _moved(before, gate.closed, f"{held} stay held")
        self._note("admission.resumed", text, moved)
        return {
            "report": f"{text[0].upper()}{text[1:]}.",
            "before": before,
            "after": moved["after"],
        }

    async def _resume_engine(self) -> Told:
        """Where the gate is open, the engine itself may stand still."""
        status = self.operator.status
        if status.state is EngineState.SERVING and status.run is not None:
            async with self.connect(status.run) as controls:
                if (await controls.capabilities()).paused:
                    await controls.resume()
                    text = "the engine schedules again"
                    self._note("engine.resumed", text, _moved("paused", "open", text))
                    return {"report": "The engine had been paused; it schedules again."}
        raise RefusedError("Admission is not paused")

    def _close(self) -> tuple[str, str]:
        """Hold what comes; by whose word, and what is to be said where that could not be kept."""
        who = asking().partition(", pid")[0] or "the service"
        why = f"admission is paused by {who}"
        self.operator.gate.pause(why)
        if not (trouble := self.pause_note.write(why)):
            return why, ""
        return why, f", until this service ends: it could not be kept ({trouble})"

    async def _drain(self, arguments: Arguments) -> Told:
        status = self.operator.status
        if status.state is not EngineState.SERVING:
            raise RefusedError(f"There is nothing to drain: {status.state.sentence}")
        bound_s = asked_seconds(arguments, "drain_s", most=3600.0)
        bound_s = self.drain_s if bound_s is None else bound_s
        gate, before, began_s = self.operator.gate, self.under_way(), time.monotonic()
        unkept = self._close()[1] if gate.paused is None else ""
        left = await gate.drained(bound_s)
        took = f"{time.monotonic() - began_s:.1f}"
        others = self._running_in_words() if left else ""
        told = f"{left} of {before} requests still run after {took} s: {others}"
        text = f"drained in {took} s: {before} requests ended" if not left else told
        data = _moved(f"{before} running", f"{left} running", "drained" if not left else "bounded")
        self._note("engine.drained", text, {**data, "took_s": took}, warn=bool(left))
        return {
            "report": f"{text[0].upper()}{text[1:]}. Nothing new is admitted{unkept}. "
            "Let it in: a40console engine resume",
            "left": str(left),
            "took_s": took,
        }

    # --- The whole engine ---------------------------------------------------------------------

    async def _sleep(self, arguments: Arguments) -> Told:
        level = arguments.get("level", "1")
        if level not in map(str, LEVELS):
            raise UsageError(f"An engine sleeps at level 1 or 2, not {level[:20]!r}")
        return await self.dormancy.sleep(
            int(level), asked_seconds(arguments, "drain_s", most=3600.0)
        )

    async def _wake(self, arguments: Arguments) -> Told:
        return await self.dormancy.wake()

    async def _probe(self, arguments: Arguments) -> Told:
        seconds = asked_seconds(arguments, "seconds", least=3.0, most=120.0)
        result = await probe_idle_silicon(
            self._serving("probe"), self.runs, self.read_snapshot, self.under_way, seconds
        )
        data = _moved("nothing ran", "nothing runs", result["verdict"])
        self._note("engine.probed", result["report"], {**data, **result})
        return result

    # --- A router's models --------------------------------------------------------------------

    async def _load(self, arguments: Arguments) -> Told:
        return await self._turn_model(arguments, "load")

    async def _unload(self, arguments: Arguments) -> Told:
        return await self._turn_model(arguments, "unload")

    async def _turn_model(self, arguments: Arguments, verb: str) -> Told:
        name = arguments.get("model", "").strip()
        if not name:
            raise UsageError("No model is named")
        run = self._serving(f"model {verb}")
        if run.profile.kind != "llamacpp":
            raise RefusedError(
                f"{run.profile.name} has no models to {verb}",
                evidence=f"{run.profile.kind} serves one model: llama-server as a router has more",
            )
        async with LlamaRouter(run.endpoint(self.runs)) as router:
            if (reason := await router.why_none()) is not None:
                raise RefusedError(f"{run.profile.name} has no models to {verb}", evidence=reason)
            before = (await router.model(name)).status
            now = await (router.load(name) if verb == "load" else router.unload(name))
        text = f"{name} is {now.status}, was {before}"
        self._note(f"model.{verb}ed", text, _moved(before, now.status, "done"))
        return {"report": f"{text}.", "before": before, "after": now.status}

    # --- What is there ------------------------------------------------------------------------

    def _serving(self, what: str) -> RunRecord:
        status = self.operator.status
        if status.state is not EngineState.SERVING or status.run is None:
            raise RefusedError(f"No {what} now: {status.state.sentence}")
        return status.run

    def _controls(self, what: str) -> EngineControls:
        return self.connect(self._serving(what))

    def _slot(self, named: str) -> Slot:
        """The slot of that number, or the request of that id.

        Raises:
            RefusedError: If there is none.
        """
        snapshot = self.read_snapshot()
        slots = snapshot.slots if snapshot is not None else Missing("no snapshot was made yet")
        if isinstance(slots, Missing):
            raise RefusedError("No request can be named", evidence=slots.reason)
        if (slot := request_named(slots, named)) is not None:
            return slot
        message, evidence = none_named(slots, named)
        raise RefusedError(message, evidence=evidence)

    def _running_in_words(self) -> str:
        snapshot = self.read_snapshot()
        if snapshot is None or isinstance(snapshot.slots, Missing) or not snapshot.slots:
            return "which, is not listed"
        return ", ".join(f"slot {s.slot} ({s.request_id}, {s.phase})" for s in snapshot.slots)

    def _reusable(self) -> str:
        snapshot = self.read_snapshot()
        tokens = snapshot.kv_cache.reusable_tokens if snapshot else Missing("not read yet")
        if isinstance(tokens, Missing):
            return f"unknown ({tokens.reason})"
        return f"{number(tokens):,.0f} tokens"

    def _note(self, kind: str, text: str, data: Told, *, warn: bool = False) -> None:
        self.record(kind, text, "warn" if warn else "info", {"who": asking(), **data})


def _moved(before: str, after: str, result: str) -> Told:
    return {"before": before, "after": after, "result": result}


def _generated(slot: Slot) -> str:
    """What it had when it was last looked at: the engine goes on until it is told."""
    count = number(slot.generated_tokens)
    if count is None:
        return "an unknown number of tokens generated"
    return f"≈ {count:,.0f} tokens generated, as last read"


def control_handlers(
    operator: EngineOperator, around: Surroundings, board: Board, gateway: GatewaySide
) -> dict[str, Handler]:
    """Command id to what does it; admission that was paused before stays so."""
    paths, record = around.paths, around.recorder
    connect, meter = connector(paths.engine_runs), gateway.meter
    canary = canary_of(paths)
    note = PauseNote(paths.state / "admission-paused")
    if (why := note.read()) is not None:
        operator.gate.pause(why)
    return ControlHandlers(
        operator=operator,
        runs=paths.engine_runs,
        connect=connect,
        dormancy=Dormancy(operator, paths.engine_runs, connect, canary, record, meter.stopping),
        read_snapshot=lambda: board.snapshot,
        under_way=lambda: gateway.admission.under_way,
        meter=meter,
        record=record,
        pause_note=note,
        drain_s=around.settings.drain_s,
    ).table()
