"""Follows a start: its phase, how far it is, whether it hangs, and when it serves."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import httpx

from a40console.engines import llamacpp, vllm
from a40console.engines.logs import strip_escapes
from a40console.engines.phases import ORDER, PhaseRule
from a40console.errors import NotServingError, TimedOutError
from a40console.model.engine import Endpoint
from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.profile import ProfileKind

REMEMBERED_LINES = 4000
"""Lines beyond it that a start writes may count as new again."""

NCCL_STUCK = "nccl-stuck"
PROBE_PERIOD_S = 0.25
PROBE_TIMEOUT_S = 5.0

_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Stall:
    """A start that no longer gets on: since when, at what, and what may help."""

    for_s: float
    cause: str
    evidence: str
    remedy: str
    code: str = "start-stalled"
    """Stable, for scripts: `nccl-stuck`."""


class PhaseTracker:
    """Reads an engine's output line by line. Pure: it is told the time."""

    def __init__(self, kind: ProfileKind, *, started_s: float, stall_after_s: float) -> None:
        self._rules = llamacpp.PHASES if kind == "llamacpp" else vllm.PHASES
        self._stall_after_s = stall_after_s
        self._seen: deque[str] = deque(maxlen=REMEMBERED_LINES)
        self._seen_set: set[str] = set()
        self._waiting_line = ""
        self._last_line = ""
        self._moved_s = started_s
        self._entered_s = started_s
        self.phase = ORDER[0]
        self.progress = ""
        """The last words on how far it is: `weights 3/8`."""

        self.durations_s: dict[str, float] = {}
        """Seconds of each phase that is over."""

    def feed(self, line: str, at_s: float) -> bool:
        """Take in a line; whether it shows that the start gets on.

        A line does when it begins a phase, is further in it, or says something that was not said
        before (its numbers apart). Lines that only wait do not.
        """
        text = strip_escapes(line).strip()
        if not text or self.phase == ORDER[-1]:
            return False
        if vllm.WAITING.search(text):
            self._waiting_line = text
            return False
        for rule in self._rules:
            if rule.phase == ORDER[0] != self.phase:
                continue
            if (words := rule.read(text)) is not None:
                return self._mark(rule, words, text, at_s)
        return self._is_new(text) and self._moved(text, at_s)

    def phase_s(self, now_s: float) -> float:
        """Seconds since the present phase began."""
        return max(0.0, now_s - self._entered_s)

    def stall(self, now_s: float) -> Stall | None:
        """The verdict on a start that has said nothing new for too long; None while it gets on."""
        for_s = now_s - self._moved_s
        if self.phase == "ready" or for_s < self._stall_after_s:
            return None
        evidence = self._waiting_line or self._last_line or "it has written nothing"
        code, cause, remedy = _verdict(self.phase, self._last_line, self._waiting_line)
        if code == NCCL_STUCK:
            evidence = self._last_line
        return Stall(for_s=for_s, cause=cause, evidence=evidence, remedy=remedy, code=code)

    def serve(self, at_s: float) -> None:
        """The engine answers that it serves, whatever it has written."""
        self._enter(ORDER[-1], at_s)

    def _mark(self, rule: PhaseRule, words: str, text: str, at_s: float) -> bool:
        moved = self._is_new(text) or words not in {"", self.progress}
        if rule.phase != self.phase:
            self._enter(rule.phase, at_s)
            moved = True
        self.progress = words or self.progress
        return moved and self._moved(text, at_s)

    def _enter(self, phase: str, at_s: float) -> None:
        spent_s = self.durations_s.get(self.phase, 0.0) + self.phase_s(at_s)
        if phase != self.phase:
            self.durations_s[self.phase] = spent_s
            self.phase, self._entered_s, self.progress = phase, at_s, ""

    def _moved(self, text: str, at_s: float) -> bool:
        self._moved_s, self._last_line, self._waiting_line = at_s, text, ""
        return True

    def _is_new(self, text: str) -> bool:
        shape = _NUMBERS.sub("#", text)
        if shape in self._seen_set:
            return False
        if len(self._seen) == REMEMBERED_LINES:
            self._seen_set.discard(self._seen[0])
        self._seen.append(shape)
        self._seen_set.add(shape)
        return True


def _verdict(phase: str, last: str, waiting: str) -> tuple[str, str, str]:
    """Code, cause and remedy of a stall, from the last line that said something."""
    code = "start-stalled"
    if re.search(r"(?i)\bnccl\b", last):
        code = NCCL_STUCK
        cause = "stuck in NCCL initialisation"
        remedy = "Set NCCL_DEBUG=INFO under [environment]; without peer-to-peer NCCL_P2P_DISABLE=1."
    elif "broadcast block" in waiting:
        code = "workers-silent"
        cause = "its workers do not answer: they compile, or hang"
        remedy = "With enforce_eager = true nothing compiles: if it still hangs, see its workers."
    elif waiting:
        code = "core-silent"
        cause = "the engine core does not answer"
        remedy = "Restart it; if it hangs again, see its last lines and the GPU's memory."
    else:
        cause = _STANDSTILL.get(phase, f"nothing new in phase {phase}")
        remedy = _HELP.get(phase, "See its last lines; restart it if they stay.")
    return code, cause, remedy


_STANDSTILL = {
    "download": "the download stands still",
    "load": "no more weights are loaded",
    "compile": "the compiling says nothing new",
    "capture": "no more graphs are captured",
}
_HELP = {
    "download": "Check the network and the disk's room; a restart goes on where it was.",
    "load": "A network disk may be slow or hang: try a local copy of the model.",
    "compile": "It may take minutes the first time; enforce_eager = true does without.",
    "capture": "Lower max_running, or start once with enforce_eager = true.",
}


def eta_s(phase: str, phase_s: float, history: Sequence[Mapping[str, float]]) -> Figure:
    """Seconds until it serves, from the durations of earlier starts of the same profile.

    The median of each phase still to come, and what is left of the present one's median. A phase
    that lasts longer than ever before leaves nothing to promise.
    """
    if phase == ORDER[-1]:
        return Missing("ready")
    if phase not in ORDER or not any(phase in start for start in history):
        return Missing("no earlier start to compare with")
    own = [start[phase] for start in history if phase in start]
    if phase_s > max(own):
        return Missing("longer than any earlier start")
    later = (
        median(start.get(name, 0.0) for start in history)
        for name in ORDER[ORDER.index(phase) + 1 : -1]
    )
    return Estimated(max(0.0, median(own) - phase_s) + sum(later))


@dataclass(frozen=True, slots=True)
class Health:
    """What an engine's `/health` says."""

    state: Literal["refused", "loading", "ready", "failing", "silent"]
    evidence: str


class HealthProbe:
    """Asks one engine for its health, over its socket or its port."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        timeout_s: float = PROBE_TIMEOUT_S,
    ) -> None:
        self._url = f"{endpoint.base_url.rstrip('/')}/health"
        self._client = httpx.AsyncClient(
            transport=transport or httpx.AsyncHTTPTransport(uds=endpoint.socket_path),
            timeout=timeout_s,
            trust_env=False,
        )

    async def ask(self) -> Health:
        """One request. 200 is ready; 503 that speaks of loading is llama.cpp at work."""
        try:
            response = await self._client.get(self._url)
        except httpx.ConnectError as error:
            return Health("refused", str(error) or "connection refused")
        except httpx.HTTPError as error:
            return Health("silent", str(error) or type(error).__name__)
        evidence = f"/health answers {response.status_code}"
        if response.status_code == httpx.codes.OK:
            return Health("ready", evidence)
        if response.status_code == httpx.codes.SERVICE_UNAVAILABLE and "oading" in response.text:
            return Health("loading", evidence)
        return Health("failing", evidence)

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()


async def wait_ready(
    probe: HealthProbe,
    alive: Callable[[], bool],
    *,
    timeout_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> float:
    """Seconds until the engine serves.

    Its process is asked after each answer as well: on a port another program may answer 200.

    Raises:
        NotServingError: If the process ended first.
        TimedOutError: If it does not serve in time; the process is left alone.
    """
    began_s = clock()
    while True:
        health = await probe.ask()
        if not alive():
            raise NotServingError("the engine ended before it served", evidence=health.evidence)
        if health.state == "ready":
            return clock() - began_s
        if clock() - began_s >= timeout_s:
            raise TimedOutError(
                f"the engine does not serve after {timeout_s:.0f} s",
                evidence=health.evidence,
                remedy="See its output; raise start_timeout_s if it only needs more time.",
            )
        await sleep(PROBE_PERIOD_S)
