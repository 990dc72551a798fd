"""Why an engine ended, and what to do: from its exit, its last lines and what was asked. Pure."""

from __future__ import annotations

import errno
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from typing import Literal

from a40console.engines import attached_faults, llamacpp, llamacpp_faults, vllm, vllm_faults
from a40console.engines.faults import Fault, FaultKind
from a40console.engines.logs import strip_escapes
from a40console.engines.memory_asked import more_room
from a40console.engines.nearest import found_words
from a40console.engines.phases import ORDER
from a40console.engines.readiness import PhaseTracker
from a40console.engines.remedies import ProfileFix, fix_for
from a40console.engines.run_record import EngineExit
from a40console.model.profile import Profile

StartFailureKind = Literal["rejected", "out_of_memory", "other"]
"""What a failed start asks for next: other settings, less memory, or a look at the cause."""

EVIDENCE_CHARS = 300
OOM_WITHIN_S = 30.0
"""An engine whose worker was killed ends within this; the kernel's count is read once a second."""

FAST_S = 10.0
"""A start of llama.cpp that fails sooner tried nothing that takes memory."""

_ORDERLY = re.compile(r"\[shutdown\] API server: shutdown triggered")
_WORKER_DIED = re.compile(
    r"Worker proc (?P<name>\S+) died unexpectedly \(exit code: (?P<code>-?\d+)"
)
_CORE_FAILED = re.compile(r"Failed core proc\(s\): \{'(?P<name>\w+)': (?P<code>-?\d+)")
_CORE_DIED = re.compile(r"engine core exited unexpectedly|EngineDeadError|EngineCore failed to")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)\b(?:: .*)?$")
_CONSEQUENCES = re.compile(
    r"EngineDeadError|Engine core initialization failed|Executor failed|CancelledError"
    r"|ChatCompletionStreamResponse|EngineGenerateError|WorkerProc initialization failed"
)
_SIGNALS = {6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_EVERYDAY = re.compile(r"(?:\([\w.-]+ pid=\d+\) )?(?:INFO|DEBUG)\b|\d+\.\d\d\.\d{3}\.\d{3} [ID] ")
"""A line of the log, prefix and all, that vLLM or llama.cpp says is no complaint."""

_CACHE_TOO_SMALL = "kv-cache-too-small"
_GPU_FULL = "cuda-oom"
_GPU_FULL_AT = {
    "load": (
        "cuda-oom-load",
        ", as the weights were loaded",
        "Take a smaller model or quantization, or more GPUs; end what else holds its memory.",
    ),
    "compile": (
        "cuda-oom-profile",
        ", as the first pass was tried",
        "Lower max_batched_tokens or max_running in the profile.",
    ),
    "capture": (
        "cuda-oom-capture",
        ", as the graphs were captured",
        "Lower max_running (fewer graphs) or gpu_memory_utilization, or set enforce_eager = true.",
    ),
}
"""By the phase of the start: code, what is added to the cause, and the remedy."""

_BELOW = ("EngineCore", "Worker", "VllmWorker")
_ASKED_TO_STOP = frozenset({"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"})
_CONTAINER_FULL = "container-out-of-memory"
_SHARED_MEMORY = "See how full /dev/shm is (docker run --shm-size): a full one ends programs so."
_AGAIN = "Start it again; if it happens again, see the output of this start."


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """All that is known of an end."""

    profile: Profile
    exit: EngineExit
    lines: Sequence[str] = ()
    """The last lines of the output, some hundreds; empty takes those of the exit record."""

    phase: str = "ready"
    """Where the start was; `ready` once it has served."""

    after_s: float | None = None
    """Seconds from the start to the end."""

    longest_context: int = 0
    """What the model was made for, in tokens; 0 where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The cause for the operator, the line that shows it, and what to do."""

    code: str
    """Stable, for scripts: `kv-cache-too-small`."""

    kind: FaultKind
    cause: str
    evidence: str
    remedy: str
    fix: ProfileFix | None = None
    """The change of the profile that mends it, where that is certain."""

    @property
    def start_failure(self) -> StartFailureKind:
        """What kind of failure it is for whoever would try the next settings.

        A fast failure without an allocator's message is a configuration that was refused, a slow
        one with it is memory; a missing model or a taken port is neither.
        """
        if self.kind == "memory":
            return "out_of_memory"
        return "rejected" if self.kind == "rejected" else "other"


def diagnose(ending: Ending) -> Diagnosis:
    """The most telling explanation; what is merely a consequence comes after its cause."""
    ending = replace(ending, phase=_phase(ending))
    written = _messages(ending)
    lines = [message for _, message in written]
    return (
        _never_began(ending.exit)
        or _stopped(ending, lines)
        or _known_fault(ending, lines)
        or _core_death(ending, written)
        or _by_signal(ending)
        or _failed_start(ending, lines)
        or Diagnosis(
            code="unknown",
            kind="unknown",
            cause=ending.exit.cause,
            evidence=_last(ending),
            remedy=_AGAIN,
        )
    )


def _phase(ending: Ending) -> str:
    """Where the start was: its last lines may be further than who watched it had read."""
    if ending.phase == ORDER[-1]:
        return ending.phase
    tracker = PhaseTracker(ending.profile.kind, started_s=0.0, stall_after_s=inf)
    for line in ending.lines or ending.exit.last_lines:
        tracker.feed(line, 0.0)
    begun = [phase for phase in (ending.phase, tracker.phase) if phase in ORDER[:-1]]
    return max(begun, key=ORDER.index, default=ending.phase)


def _messages(ending: Ending) -> list[tuple[str, str]]:
    """Who wrote each line, where it says, and the line itself without escapes and prefix."""
    lines = [strip_escapes(line).rstrip() for line in ending.lines or ending.exit.last_lines]
    return [_message(ending, line) for line in lines]


def _message(ending: Ending, line: str) -> tuple[str, str]:
    if ending.profile.speaks_vllm:
        return vllm.split_prefix(line)
    return "", llamacpp.strip_prefix(line)


def _never_began(exit_: EngineExit) -> Diagnosis | None:
    if exit_.error is None:
        return None
    remedy = "Correct the profile's executable."
    if exit_.error_number == errno.ENOENT:
        remedy = "Install the engine, or give its full path as the profile's executable."
    elif exit_.error_number == errno.EACCES:
        remedy = "Make the file executable (chmod +x), or name another."
    return Diagnosis(
        code="program-missing",
        kind="missing",
        cause=exit_.cause,
        evidence=exit_.error,
        remedy=remedy,
    )


def _stopped(ending: Ending, lines: Sequence[str]) -> Diagnosis | None:
    told = next((i for i, line in enumerate(lines) if _ORDERLY.search(line)), None)
    died = next((i for i, line in enumerate(lines) if _is_death(line)), None)
    orderly = told is not None and (died is None or told < died)
    by_signal = _signal_of(ending.exit) in _ASKED_TO_STOP
    cleaned_up = ending.profile.kind == "llamacpp" and ending.exit.code == 0
    if not (orderly or by_signal or cleaned_up):
        return None
    return Diagnosis(
        code="stopped-from-outside",
        kind="stopped",
        cause="told to stop, by a signal that did not come from the console",
        evidence=_cut(lines[told]) if told is not None else ending.exit.cause,
        remedy="See who sent it (a container that stops, a script); start it again.",
    )


def _is_death(line: str) -> bool:
    return bool(_WORKER_DIED.search(line) or _CORE_DIED.search(line) or _CORE_FAILED.search(line))


def _known_fault(ending: Ending, lines: Sequence[str]) -> Diagnosis | None:
    text = "\n".join(lines)
    for fault in _faults_of(ending.profile):
        if fault.only_starting and ending.phase == "ready":
            continue
        for match in deque(fault.regex.finditer(text), maxlen=1):  # the last one says most
            return _explain(fault, match, ending)
    return None


def _faults_of(profile: Profile) -> tuple[Fault, ...]:
    if profile.kind == "attached":
        return attached_faults.FAULTS
    return vllm_faults.FAULTS if profile.speaks_vllm else llamacpp_faults.FAULTS


def _explain(fault: Fault, match: re.Match[str], ending: Ending) -> Diagnosis:
    text, words = match.string, _words(fault.code, match, ending)
    begin = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    passage = text[begin:] if end < 0 else text[begin:end]
    code, at, remedy = fault.code, "", fault.remedy.format(**words)
    if code == _GPU_FULL and ending.phase in _GPU_FULL_AT:
        code, at, remedy = _GPU_FULL_AT[ending.phase]
    return Diagnosis(
        code=code,
        kind=fault.kind,
        cause=fault.cause.format(**words) + at,
        evidence=_cut(passage),
        remedy=remedy,
        fix=fix_for(code, words, ending.profile),
    )


def _words(code: str, match: re.Match[str], ending: Ending) -> dict[str, str]:
    """What a fault's cause and remedy may name; no context that is beyond the model."""
    words = found_words(code, match) | {"room": more_room(ending.profile)}
    if code == _CACHE_TOO_SMALL and ending.longest_context and words.get("most"):
        words["most"] = str(min(int(words["most"]), ending.longest_context))
    return words


def _core_death(ending: Ending, written: Sequence[tuple[str, str]]) -> Diagnosis | None:
    """The engine core or a worker died: vLLM then ends with code 0, so only the log tells."""
    if not ending.profile.speaks_vllm:
        return None
    for pattern, role in ((_WORKER_DIED, "worker"), (_CORE_FAILED, "process"), (_CORE_DIED, "")):
        for _, line in written:
            if (match := pattern.search(line)) is not None:
                return _death_of(role, match, ending, written)
    return None


def _death_of(
    role: str, match: re.Match[str], ending: Ending, written: Sequence[tuple[str, str]]
) -> Diagnosis:
    who = f"{role} {match['name']}" if role else "a process of it"
    code = int(match["code"]) if role else 0
    cause, evidence = "the engine core died", _cut(match.string)
    if _killed_for_memory(ending.exit):
        return Diagnosis(
            code=_CONTAINER_FULL,
            kind="memory",
            cause=f"{cause}: the kernel killed {who} for want of memory",
            evidence=evidence,
            remedy="Lower the KV cache or the context, or take a machine with more memory.",
        )
    if code < 0:
        cause += f": {who} was ended by {_SIGNALS.get(-code, f'signal {-code}')}"
    elif root := _root_exception([line for name, line in written if name.startswith(_BELOW)]):
        cause, evidence = f"{cause} of an error of its own", root
    else:
        cause += " without a word: it was killed, or crashed outside Python"
    return Diagnosis(
        code="engine-core-died", kind="core", cause=cause, evidence=evidence, remedy=_AGAIN
    )


def _killed_for_memory(exit_: EngineExit) -> bool:
    """Whether the kernel killed for want of memory just before this end.

    It may have killed another program here hours ago: that is no cause of this death.
    """
    if not exit_.oom_kill or exit_.oom_kill_at is None or exit_.ended_at is None:
        return False
    try:
        killed = datetime.fromisoformat(exit_.oom_kill_at)
        apart_s = (datetime.fromisoformat(exit_.ended_at) - killed).total_seconds()
    except (ValueError, TypeError):
        return False
    return abs(apart_s) <= OOM_WITHIN_S


def _signal_of(exit_: EngineExit) -> str | None:
    """What ended it: a wrapper such as a shell tells signal N by exiting with 128 + N."""
    return exit_.signal or _SIGNALS.get((exit_.code or 0) - 128)


def _by_signal(ending: Ending) -> Diagnosis | None:
    name, last = _signal_of(ending.exit), _last(ending)
    told = "" if ending.exit.signal else f", told by exit code {ending.exit.code}"
    if name == "SIGKILL" and _killed_for_memory(ending.exit):
        return Diagnosis(
            code=_CONTAINER_FULL,
            kind="memory",
            cause="the kernel killed it for want of memory",
            evidence=ending.exit.cause,
            remedy="Lower the KV cache or the context, or take a machine with more memory.",
        )
    if name == "SIGKILL":
        return Diagnosis(
            code="killed",
            kind="killed",
            cause=f"killed from outside (SIGKILL){told}",
            evidence=last,
            remedy="See who sent it (the kernel's log, the container's limits); start it again.",
        )
    if name is not None:
        return Diagnosis(
            code="crashed",
            kind="crashed",
            cause=f"crashed with {name}{told}",
            evidence=last,
            remedy=_SHARED_MEMORY if name == "SIGBUS" else _AGAIN,
        )
    return None


def _failed_start(ending: Ending, lines: Sequence[str]) -> Diagnosis | None:
    """A start that failed in words we do not know.

    Without a message of an allocator it was not memory; when it failed before anything was loaded,
    the settings were refused.
    """
    if ending.phase == "ready":
        return None
    root = _root_exception(lines)
    evidence = root or _last(ending)
    fast = ending.phase == "starting" or (
        ending.profile.kind == "llamacpp" and ending.after_s is not None and ending.after_s < FAST_S
    )
    if fast and ending.exit.code:
        return Diagnosis(
            code="settings-refused",
            kind="rejected",
            cause="it refused its settings: it failed fast, and no allocation failed",
            evidence=evidence,
            remedy="Compare the profile with the line; `a40console profiles show` has the command.",
        )
    return Diagnosis(
        code="start-failed",
        kind="crashed",
        cause=f"it failed in phase {ending.phase}; {ending.exit.cause}",
        evidence=evidence,
        remedy=_AGAIN,
    )


def _root_exception(lines: Sequence[str]) -> str | None:
    """The first exception that is no mere consequence of another."""
    for line in lines:
        if _EXCEPTION.match(line) and not _CONSEQUENCES.search(line):
            return _cut(line)
    return None


def _last(ending: Ending) -> str:
    """The last line; one that is no complaint is no evidence of an end."""
    lines = [strip_escapes(line) for line in ending.lines or ending.exit.last_lines]
    last = next((line for line in reversed(lines) if line.strip()), None)
    if last is None:
        return "it wrote nothing"
    if _EVERYDAY.match(last):
        return "its last line tells of no fault"
    return _cut(_message(ending, last)[1])


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= EVIDENCE_CHARS else words[: EVIDENCE_CHARS - 1] + "…"
