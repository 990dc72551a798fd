"""A run as a JSON document that leaves the machine, and back. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from a40console.errors import UsageError
from a40console.model.codec import DecodeError, Json, decode, decode_as, encode
from a40console.model.figures import Missing
from a40console.model.run import ENDED, Hypothesis, Run, RunEnvironment
from a40console.model.run_record import ArmEnd, Sample

FORMAT = "a40console-run"
VERSION = 1
ELSEWHERE = "another machine"
_SIMULATION = "sim"
"""The kind of an engine that only simulates one."""

NOWHERE = Missing("it did not start")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Ids name folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Everything that is kept of one run."""

    run: Run
    samples: Sequence[Sample] = ()
    arm_ends: Sequence[ArmEnd] = ()
    hypotheses: Sequence[Hypothesis] = ()
    """Claims that the run spoke on, and such as no run has spoken on."""

    revision: int = 0
    """How often it had changed when this was written; `Ledger.mark_copied` takes it."""


def written(document: Document) -> dict[str, Json]:
    """The JSON form; copies stay behind, they are each ledger's own."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "revision": document.revision,
        "run": encode(replace(document.run, copied_to=())),
        "arm_ends": encode(tuple(document.arm_ends)),
        "samples": encode(tuple(document.samples)),
        "hypotheses": encode(tuple(document.hypotheses)),
    }


def read(data: Json) -> Document:
    """The document of its JSON form.

    Raises:
        UsageError: If it is none, is of a newer version, or holds a run that has not ended.
    """
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise UsageError(
            "That is no run's document",
            remedy="Give a file that `a40console runs export ID --format json` wrote.",
        )
    if data.get("version") != VERSION:
        raise UsageError(
            "Another version of the console wrote this run's document",
            evidence=f"its version is {data.get('version')!r}, this console reads {VERSION}",
            remedy="Bring both consoles to one version.",
        )
    try:
        document = _decoded(data)
    except DecodeError as error:
        raise UsageError("The run's document cannot be read", evidence=str(error)[:400]) from error
    _check(document.run)
    return replace(document, run=_honest(document.run))


def _decoded(data: Mapping[str, Json]) -> Document:
    return Document(
        run=decode(Run, data.get("run")),
        samples=decode_as(tuple[Sample, ...], data.get("samples", ()), "samples"),
        arm_ends=decode_as(tuple[ArmEnd, ...], data.get("arm_ends", ()), "arm_ends"),
        hypotheses=decode_as(tuple[Hypothesis, ...], data.get("hypotheses", ()), "hypotheses"),
        revision=decode_as(int, data.get("revision", 0), "revision"),
    )


def _check(run: Run) -> None:
    if not _ID.fullmatch(run.id):
        raise UsageError("The run's document has an id that is none", evidence=repr(run.id[:120]))
    if run.state not in ENDED:
        raise UsageError(
            f"Run {run.id} had not ended when it was exported", evidence=f"it was {run.state}"
        )


def _honest(run: Run) -> Run:
    """The run, marked as simulated where its engine can be nothing else, whatever it claims."""
    environment = run.environment
    if not isinstance(environment, RunEnvironment) or environment.engine_kind != _SIMULATION:
        return run
    return replace(run, environment=replace(environment, simulated=True))


def coming_from(run: Run, origin: str) -> Run:
    """The run with the machine that it comes from, unless it says so itself.

    Reference rows come from no machine of ours.
    """
    if run.reference or not isinstance(run.origin, Missing):
        return run
    host = NOWHERE if isinstance(run.environment, Missing) else run.environment.host
    told = origin or (ELSEWHERE if isinstance(host, Missing) else host)
    return replace(run, origin=told)
