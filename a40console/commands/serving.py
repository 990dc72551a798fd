"""An engine that serves, for commands that need one: started with the default where none runs."""

from __future__ import annotations

from a40console.commands.acting import act, deadline_after
from a40console.commands.invocation import Invocation
from a40console.commands.progress import Progress
from a40console.commands.wait import Wait
from a40console.errors import NotServingError
from a40console.model.engine import EngineState
from a40console.model.snapshot import EngineInfo
from a40console.service.client import ServiceClient

_STARTABLE = (EngineState.ABSENT, EngineState.STOPPED, EngineState.FAILED)
_COMING = (EngineState.FETCHING, EngineState.STARTING)


async def serving_engine(
    client: ServiceClient, invocation: Invocation, *, timeout_s: float | None, quiet: bool
) -> EngineInfo:
    """The engine, once it serves: started with the default profile where none runs.

    Raises:
        NotServingError: If it is in a state that only the operator can end, or fails.
    """
    engine = (await client.snapshot()).engine
    progress = Progress(quiet=quiet)
    if engine.state in _STARTABLE:
        await act(client, "engine.start", timeout_s=timeout_s, progress=progress)
    elif engine.state not in (*_COMING, EngineState.SERVING):
        asleep = engine.state is EngineState.ASLEEP
        raise NotServingError(
            f"The engine is {engine.state.value}",
            remedy="Wake it with: a40console engine wake"
            if asleep
            else "See why with: a40console status",
        )
    with progress:
        wait = Wait(invocation.paths, "ready", progress=progress)
        serving = await wait.until(deadline_after(timeout_s))
    return serving.engine if serving else engine
