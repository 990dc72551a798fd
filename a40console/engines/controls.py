"""Client of an engine's controls: depth of speculation, abort, cache, sleep, pause.

vLLM's and the simulated engine's are our plugin's routes. llama.cpp has none of ours; what its own
server offers is told by `capabilities`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import httpx

from a40console.errors import ConsoleError, Exit
from a40console.model.engine import Endpoint, EngineKind

PREFIX = "/a40console/v1/"
ANSWER_TIMEOUT_S = 40.0
"""A little more than the plugin itself waits for the engine, so that its reason arrives."""

MEMORY_TIMEOUT_S = 180.0
"""For sleep and wake, which move all weights."""

STATE_TIMEOUT_S = 5.0
STATE = "state?since=999999999999"
"""The plugin's state without the requests that ended."""

Control = Literal["speculation", "abort", "reset-prefix-cache", "sleep", "wake", "pause", "resume"]
CONTROLS: tuple[Control, ...] = (
    "speculation",
    "abort",
    "reset-prefix-cache",
    "sleep",
    "wake",
    "pause",
    "resume",
)
NO_PLUGIN = "the engine runs without our plugin"
LLAMACPP_LACKS = "llama.cpp's server has no such control"
_SLEEP_REMEDY = 'Add "--enable-sleep-mode" to the arguments of its profile, and restart it.'
_REMEDIES: Mapping[str, str] = {"sleep": _SLEEP_REMEDY, "wake": _SLEEP_REMEDY}


class ControlError(ConsoleError):
    """A control that the engine lacks, refuses, or did not answer in time."""

    exit_code = Exit.REFUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """The depth of speculation as the engine's worker reports it."""

    tokens: int | None
    """Draft tokens of the passes to come; None where it cannot be told."""

    deepest: int
    """What it was started with."""

    method: str | None
    why_not: str | None
    """Why it cannot be changed; None where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """What can be done with a running engine."""

    why_not: Mapping[Control, str] = field(default_factory=dict)
    """Per control the reason, where it cannot; the others can."""

    depth: Depth | None = None
    paused: bool | None = None

    def refusal(self, control: Control) -> str | None:
        """Why a control cannot be used; None where it can."""
        return self.why_not.get(control)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationChange:
    """A change of depth that the engine's worker has taken."""

    before: int
    after: int
    deepest: int
    effective_pass: int | None
    """Passes counted when the worker had it: the next to begin drafts no deeper. None where the
    engine does not count them."""


class EngineControls:
    """The controls of one running engine."""

    def __init__(
        self,
        endpoint: Endpoint,
        kind: EngineKind,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._token = endpoint.plugin_token
        self._kind = kind
        self._http = httpx.AsyncClient(
            transport=transport or httpx.AsyncHTTPTransport(uds=endpoint.socket_path),
            base_url=endpoint.base_url,
            headers={"authorization": f"Bearer {self._token}"} if self._token else {},
            timeout=ANSWER_TIMEOUT_S,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *unused: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def capabilities(self) -> Controls:
        """What can be done now, each with the reason where not.

        Raises:
            ControlError: If the engine does not answer.
        """
        if self._token is None:
            llama = self._kind == "llamacpp"
            return Controls(why_not=dict.fromkeys(CONTROLS, LLAMACPP_LACKS if llama else NO_PLUGIN))
        state = await self._ask("GET", STATE, STATE_TIMEOUT_S)
        told = state.get("controls")
        if not isinstance(told, Mapping):
            reason = "the plugin in this engine is older than its controls: restart the engine"
            return Controls(why_not=dict.fromkeys(CONTROLS, reason))
        lacking: dict[Control, str] = {}
        for name in CONTROLS:
            reason = told.get(name, "the plugin in this engine does not know it")
            if reason is not None:
                lacking[name] = str(reason)
        paused = state.get("paused")
        return Controls(
            why_not=lacking,
            depth=read_depth(state.get("speculation")),
            paused=paused if isinstance(paused, bool) else None,
        )

    async def set_speculation(self, tokens: int) -> SpeculationChange:
        """Draft at most so many tokens a pass from the next pass on; 0 is off.

        Raises:
            ControlError: If the engine cannot, or not so deep.
        """
        told = await self._act("speculation", tokens=tokens)
        try:
            passes = told.get("steps")
            return SpeculationChange(
                before=int(told["before"]),
                after=int(told["after"]),
                deepest=int(told["deepest"]),
                effective_pass=None if passes is None else int(passes),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _not_understood("speculation", told) from error

    async def abort(self, request_id: str) -> bool:
        """End one request, by the engine's id of it or the client's; whether there was one.

        Raises:
            ControlError: If the engine cannot.
        """
        return bool((await self._act("abort", request_id=request_id)).get("aborted"))

    async def running(self, request_id: str) -> tuple[str, ...]:
        """The engine's ids of what runs of one request: by its own id, or the client's within it.

        Raises:
            ControlError: If the engine does not answer, or lists nothing.
        """
        if self._token is None:
            raise _refused("abort", LLAMACPP_LACKS if self._kind == "llamacpp" else NO_PLUGIN)
        rows = (await self._ask("GET", "state", STATE_TIMEOUT_S)).get("running") or ()
        return tuple(str(row["id"]) for row in rows if request_id and _is_of(row, request_id))

    async def reset_prefix_cache(self) -> bool:
        """Forget every cached prefix; False while a running request holds some of it.

        Raises:
            ControlError: If the engine cannot.
        """
        return bool((await self._act("reset-prefix-cache")).get("reset"))

    async def sleep(self, level: int) -> None:
        """Free the GPU's memory: 1 keeps the weights in the host's, 2 drops them.

        Requests that run are aborted by it.

        Raises:
            ControlError: If the engine cannot.
        """
        await self._act("sleep", timeout_s=MEMORY_TIMEOUT_S, level=level)

    async def wake(self) -> None:
        """Take the memory again; whether it is well then a canary must tell.

        Raises:
            ControlError: If the engine cannot.
        """
        await self._act("wake", timeout_s=MEMORY_TIMEOUT_S)

    async def pause(self) -> None:
        """Schedule nothing more; what runs stays where it is, with its cache.

        Raises:
            ControlError: If the engine cannot.
        """
        await self._act("pause")

    async def resume(self) -> None:
        """Schedule again.

        Raises:
            ControlError: If the engine cannot.
        """
        await self._act("resume")

    async def _act(
        self, control: Control, *, timeout_s: float = ANSWER_TIMEOUT_S, **body: Any
    ) -> dict[str, Any]:
        if self._token is None:
            llama = self._kind == "llamacpp"
            raise _refused(control, LLAMACPP_LACKS if llama else NO_PLUGIN)
        return await self._ask("POST", control, timeout_s, body)

    async def _ask(
        self, method: str, name: str, timeout_s: float, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        try:
            response = await self._http.request(method, PREFIX + name, json=body, timeout=timeout_s)
        except httpx.TimeoutException as error:
            raise ControlError(
                f"{_words(name)}: the engine did not answer in {timeout_s:.0f} s",
                evidence=f"{method} {PREFIX}{name}",
                remedy="It may be in a long pass, or hung: see why.",
                exit_code=Exit.TIMED_OUT,
            ) from error
        except httpx.HTTPError as error:
            raise ControlError(
                f"{_words(name)}: the engine is not reached",
                evidence=str(error) or type(error).__name__,
                remedy="See how it is: a40console status.",
                exit_code=Exit.NOT_SERVING,
            ) from error
        return _read(name, response)


def _is_of(row: Mapping[str, Any], request_id: str) -> bool:
    """Whether a row is the request's: vLLM makes `chatcmpl-ID` and `cmpl-ID-0` of its id."""
    engine_id, external = str(row.get("id")), str(row.get("external_id") or "")
    return (
        request_id in (engine_id, external)
        or external.endswith(f"-{request_id}")
        or f"-{request_id}-" in external
    )


def read_depth(told: Any) -> Depth | None:
    """The plugin's word on the depth; None where it says nothing that is understood."""
    if not isinstance(told, Mapping):
        return None
    tokens, deepest, method = told.get("depth"), told.get("deepest"), told.get("method")
    why_not = told.get("why_not")
    return Depth(
        tokens=tokens if isinstance(tokens, int) else None,
        deepest=deepest if isinstance(deepest, int) else 0,
        method=None if method is None else str(method),
        why_not=None if why_not is None else str(why_not),
    )


def _read(name: str, response: httpx.Response) -> dict[str, Any]:
    try:
        told = response.json()
    except ValueError:
        told = None
    if response.status_code == httpx.codes.OK and isinstance(told, dict):
        return told
    match response.status_code:
        case 404 | 405:
            raise _refused(name, "the plugin in this engine does not know it: restart the engine")
        case 401:
            raise _refused(name, "the plugin refuses our token (HTTP 401)")
        case 504:
            raise _refused(name, _reason(told), exit_code=Exit.TIMED_OUT)
        case httpx.codes.OK:
            raise _not_understood(name, response.text[:200])
        case status:
            raise _refused(name, _reason(told) or f"HTTP {status}")


def _reason(told: Any) -> str:
    return str(told.get("error") or "") if isinstance(told, dict) else ""


def _refused(name: str, reason: str, *, exit_code: Exit | None = None) -> ControlError:
    return ControlError(
        f"{_words(name)}: the engine cannot do it now",
        evidence=reason,
        remedy=_REMEDIES.get(name, ""),
        exit_code=exit_code,
    )


def _not_understood(name: str, told: object) -> ControlError:
    return ControlError(
        f"{_words(name)}: the plugin's answer is not understood",
        evidence=str(told)[:200],
        remedy="The engine was started by another version of the console: restart it.",
    )


_WORDS: Mapping[str, str] = {
    "speculation": "Speculation",
    "abort": "Abort",
    "reset-prefix-cache": "Prefix cache",
    "sleep": "Sleep",
    "wake": "Wake",
    "pause": "Pause",
    "resume": "Resume",
    STATE: "Controls",
}


def _words(name: str) -> str:
    return _WORDS.get(name, name)
