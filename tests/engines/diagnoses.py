"""Prints what is said of every failure that the tests know: `python -m tests.engines.diagnoses`.

One block each: what failed, whether the engine's words are a real log's or those of its sources,
and the code, cause, evidence, remedy and change of the profile that an operator is given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from a40console.advisor.evidence import Evidence, Survivor
from a40console.advisor.findings import findings
from a40console.engines.diagnosis import Diagnosis, Ending, diagnose
from a40console.engines.readiness import PhaseTracker
from a40console.engines.run_record import EngineExit
from a40console.engines.silence import silent_words
from a40console.model.profile import Profile
from a40console.model.snapshot import Snapshot
from a40console.operations.failure_note import FailureNote, stall_note
from a40console.service.fixing import in_words
from tests import make_snapshot as make
from tests.engines.failures import (
    BROADCAST_WAITS,
    CORE_DIED,
    CORE_ERROR,
    LACKING,
    NCCL_WAITS,
    NEXT,
    OOM,
    QWEN,
    RECORDED,
    WORDED,
    lines,
    recorded,
)

REAL, TEXT = "real log", "text"
UNKNOWN = frozenset({"unknown", "start-failed", "start-stalled"})
"""Codes by which the console says that it does not know what happened."""

TWO_GPUS = replace(NEXT, environment={})
STILL_S = 600.0


@dataclass(frozen=True, slots=True)
class Told:
    """What an operator is told of one failure."""

    name: str
    source: str
    code: str
    kind: str
    cause: str
    evidence: str
    remedy: str
    change: str


def of_ending(name: str, source: str, ending: Ending) -> Told:
    """What is said of an end."""
    return _told(name, source, diagnose(ending))


def of_stall(name: str, text: list[str], profile: Profile) -> Told:
    """What is said of a start that stands still after these lines."""
    tracker = PhaseTracker(profile.kind, started_s=0.0, stall_after_s=STILL_S)
    for line in text:
        tracker.feed(line, 1.0)
    stall = tracker.stall(1.0 + STILL_S)
    if stall is None:
        raise ValueError(f"{name}: not seen as a stall")
    return _told(name, TEXT, stall_note(stall, profile))


def of_finding(name: str, code: str, snapshot: Snapshot, extra: Evidence) -> Told:
    """What is said of an engine that is in such a state."""
    [found] = [f for f in findings(snapshot, extra) if f.code == code]
    remedy = f"{found.remedy} [{found.command}]" if found.command else found.remedy or ""
    return Told(name, TEXT, code, found.severity, found.title, found.evidence or "", remedy, "")


def _told(name: str, source: str, found: Diagnosis | FailureNote) -> Told:
    change = in_words(found.fix)
    return Told(
        name, source, found.code, found.kind, found.cause, found.evidence, found.remedy, change
    )


def everything() -> Iterator[Told]:
    """Each failure once: starts, ends, starts that stand still, and what only looks alive."""
    for name, *_ in RECORDED:
        yield of_ending(name, REAL, recorded(name))
    for name in CORE_DIED:
        died = Ending(profile=QWEN, exit=EngineExit(code=0), lines=lines(name), after_s=900)
        yield of_ending(name, REAL, died)
        killed = replace(died, exit=replace(OOM, code=0, signal=None))
        yield of_ending(f"{name}, the kernel's kill recorded", f"{REAL}, exit made", killed)
    for text, *_ in LACKING:
        yield of_ending(f"load: {text}", TEXT, _ending(text, "load"))
    for text, phase, *_ in WORDED:
        yield of_ending(f"{phase}: {text}", TEXT, _ending(text, phase))
    yield of_ending("container out of memory", TEXT, Ending(profile=QWEN, exit=OOM, phase="load"))
    yield of_stall("NCCL hangs in peer-to-peer, two GPUs", NCCL_WAITS, TWO_GPUS)
    yield of_stall("shared-memory broadcast stall, two GPUs", BROADCAST_WAITS, TWO_GPUS)
    yield of_stall("the engine core never starts", NCCL_WAITS[1:], QWEN)
    still = Evidence(generation_flat_s=43.0, steps_flat_s=43.0, health_status=200)
    yield of_finding("hung, /health says 200", "engine-hung", make.hung(), still)
    waits = replace(still, silent_words=silent_words(BROADCAST_WAITS))
    yield of_finding("hung in the broadcast", "engine-hung", make.hung(), waits)
    left = Evidence(survivors=(Survivor(912, "VLLM::EngineCore"), Survivor(913, "python")))
    yield of_finding("orphans", "engine-orphaned", make.orphaned(), left)
    stuck = replace(left, unkillable=True)
    yield of_finding("orphans that outlive KILL", "unkillable", make.orphaned(), stuck)


def _ending(text: str, phase: str) -> Ending:
    line = CORE_ERROR + text
    return Ending(profile=QWEN, exit=EngineExit(code=1), lines=[line], phase=phase, after_s=60)


def main() -> int:
    """Print them all; 1 where one of them is not recognised."""
    told = list(everything())
    for one in told:
        print(f"{one.name}  [{one.source}]")
        print(f"  code      {one.code} ({one.kind})")
        for key in ("cause", "evidence", "remedy"):
            print(f"  {key:<9} {getattr(one, key)}")
        print(f"  change    {one.change or 'none is certain'}\n")
    unknown = [one.name for one in told if one.code in UNKNOWN]
    changes, codes = sum(bool(one.change) for one in told), len({one.code for one in told})
    print(f"{len(told)} failures, {codes} codes, {changes} with a change of the profile offered")
    print(f"not recognised: {', '.join(unknown) or 'none'}")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
