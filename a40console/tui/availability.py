"""Whether a command can run as things are, and if not, why: pure, asked by keys and buttons."""

from __future__ import annotations

from collections.abc import Iterable

from a40console.model.command import Command
from a40console.model.control import ProfileSummary
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.model.snapshot import Snapshot
from a40console.tui.reading import Link, Reading

LIVING = frozenset(
    {
        EngineState.FETCHING,
        EngineState.STARTING,
        EngineState.SERVING,
        EngineState.DRAINING,
        EngineState.STOPPING,
        EngineState.HUNG,
        EngineState.ASLEEP,
    }
)
"""States in which a process of the engine is there and ours to command."""

NAMES: dict[EngineState, str] = {
    EngineState.ABSENT: "there is no engine",
    EngineState.FETCHING: "the model is being fetched",
    EngineState.STARTING: "the engine is starting",
    EngineState.SERVING: "the engine is serving",
    EngineState.DRAINING: "the engine is finishing its requests",
    EngineState.STOPPING: "the engine is stopping",
    EngineState.STOPPED: "the engine is stopped",
    EngineState.FAILED: "the engine has failed",
    EngineState.ORPHANED: "processes of an engine are left over",
    EngineState.HUNG: "the engine hangs",
    EngineState.ASLEEP: "the engine sleeps",
}


def why_not(command: Command, reading: Reading) -> str | None:
    """The reason why the command cannot run now; None where it can."""
    if command.available == "always":
        return None
    if reading.link.state != "live":
        return _no_service(reading.link)
    snapshot = reading.snapshot
    watches = snapshot.service.read_only and snapshot.engine.kind == "foreign"
    if watches and not command.local and command.id not in {"client.env", "digest.show"}:
        return "this console only watches an engine that is not its own"
    if command.acts and reading.read_only:
        return f"read-only, forbidden by: {reading.read_only}"
    return _engine_reason(command, snapshot) or _control_reason(command, snapshot)


def runnable_first(profiles: Iterable[ProfileSummary]) -> list[ProfileSummary]:
    """Profiles in their order, those first that this machine can run."""
    return sorted(profiles, key=lambda profile: not profile.ready)


def offered(command_id: str, snapshot: Snapshot) -> bool:
    """Whether a finding names this command as what to do."""
    return any(finding.command == command_id for finding in snapshot.findings)


def _no_service(link: Link) -> str:
    return "no service answers yet" if link.state == "connecting" else "no service answers"


_CONTROLS: dict[str, str] = {
    "request.abort": "abort",
    "cache.reset": "reset-prefix-cache",
    "engine.sleep": "sleep",
    "engine.wake": "wake",
}
"""What of the engine's own controls a command needs."""


def _control_reason(command: Command, snapshot: Snapshot) -> str | None:
    """Why the engine, or the state of the gate, has no use for a control."""
    engine, gate = snapshot.engine, snapshot.requests.gate
    if command.id.startswith("router.") and engine.kind != "llamacpp":
        return "this engine serves one model: llama-server as a router has more"
    if command.id == "admission.resume" and gate is None and engine.paused is not True:
        return "admission is not paused"
    if command.id == "admission.pause" and gate is not None and "paused" in gate:
        return gate
    if command.id == "request.abort" and snapshot.slots == ():
        return "no request is running"
    control = _CONTROLS.get(command.id)
    if control is None or isinstance(engine.controls, Missing):
        return None
    return engine.controls.get(control)


def _engine_reason(command: Command, snapshot: Snapshot) -> str | None:
    state = snapshot.engine.state
    match command.available:
        case "no_engine":
            fits = state in {EngineState.ABSENT, EngineState.STOPPED, EngineState.FAILED}
        case "engine":
            fits = state in LIVING
        case "serving":
            draining = command.id == "request.abort" and state is EngineState.DRAINING
            fits = draining or state is EngineState.SERVING
        case "asleep":
            fits = state is EngineState.ASLEEP
        case _:
            fits = True
    if not fits:
        return NAMES[state]
    if command.id == "engine.speculation" and snapshot.speculation.control == "none":
        return snapshot.speculation.locked_reason or "this engine has no speculation to turn"
    if command.id == "engine.clean" and state is not EngineState.ORPHANED:
        return "nothing of an engine is left over"
    return None
