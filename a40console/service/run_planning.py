"""From what was asked for to a plan: parameters settled, time, dollars, and whom it disturbs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from urllib.parse import urlsplit

from a40console.errors import RefusedError, UsageError
from a40console.experiments.bench import Design, Known
from a40console.model.control import HistoryPoint
from a40console.model.engine import EngineState
from a40console.model.experiment import (
    MOST_MINUTES,
    MOST_USD,
    Experiment,
    ParameterError,
    Value,
    settle,
)
from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.profile import Profile
from a40console.model.run import RunPlan, RunSpec, RunTarget
from a40console.model.snapshot import Snapshot, SpeculationInfo
from a40console.operations.status import EngineStatus
from a40console.service.chronicle import Chronicle
from a40console.service.history import MOST_POINTS, Question
from a40console.service.own_lengths import with_own_turns
from a40console.service.run_disturbed import Clients, with_clients
from a40console.service.run_environment import UNPRICED, is_here, window_at
from a40console.service.run_speeds import UNMEASURED, Speeds, known_first, read_per_s
from a40console.telemetry.vllm_plugin import SOURCE as PLUGIN

A_URLS = Missing("nothing is known of the server at a URL")
LONGEST_NOTE = 2000
DAY_S = 86_400.0
COMING = (EngineState.FETCHING, EngineState.STARTING, EngineState.DRAINING)
"""Where an engine will serve, or what is under way with it ends, by itself."""

_FASTEST = 5
"""So many of the fastest seconds say what the engine can do: their median."""

Designs = Callable[[], Mapping[str, Design]]


def every_design() -> Mapping[str, Design]:
    """The experiments that there are; imported when they are first asked for."""
    from a40console.experiments.registry import designs

    return designs()


def settled_of(designs: Designs, spec: RunSpec) -> tuple[Design, dict[str, Value]]:
    """The design that a spec names, and every parameter's value.

    Raises:
        UsageError: If there is no such experiment, preset, parameter or value, or a limit is none.
    """
    known = designs()
    design = known.get(spec.experiment)
    if design is None:
        raise UsageError(
            f"There is no experiment {spec.experiment!r}", evidence=f"there are {', '.join(known)}"
        )
    _refuse_limits(spec)
    _refuse_target(spec.target)
    try:
        return design, with_own_turns(settle(design.offer, spec.preset, spec.parameters))
    except ParameterError as error:
        text = str(error)
        raise UsageError(
            text[0].upper() + text[1:],
            remedy=f"See what it takes: a40console run {spec.experiment} --help",
        ) from error


def _refuse_limits(spec: RunSpec) -> None:
    if spec.max_minutes is not None and not 0 < spec.max_minutes <= MOST_MINUTES:
        raise UsageError(f"A run lasts more than 0 and at most {MOST_MINUTES:.0f} minutes")
    if spec.max_usd is not None and not 0 < spec.max_usd <= MOST_USD:
        raise UsageError(f"A limit of dollars is more than 0 and at most {MOST_USD:,}")
    if len(spec.note) > LONGEST_NOTE:
        raise UsageError(f"A note has at most {LONGEST_NOTE} characters")


def _refuse_target(target: RunTarget) -> None:
    if not target.model.isprintable():
        raise UsageError(f"{target.model!r} is no name of a model: it holds control characters")
    if target.kind != "url":
        return
    if any(mark in target.url for mark in "@?#"):
        raise UsageError(
            "The URL holds a user, a password or a query, which would be written down",
            evidence="what stands before /v1 has none of @, ? and #",
            remedy="Give the key by the environment: A40CONSOLE_TARGET_TOKEN=… a40console run …",
        )
    try:
        parts = urlsplit(target.url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or not target.url.isprintable() or " " in target.url:
        raise UsageError(f"{target.url!r} is no address", remedy="Say it as http://HOST:PORT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What is remembered of how fast an engine was."""

    chronicle: Chronicle
    """Since it started."""

    runs: Callable[[str, bool], Awaitable[Speeds]]
    """In earlier runs on a profile, simulated or real."""


async def known_of(
    target: RunTarget,
    status: EngineStatus,
    snapshot: Snapshot,
    past: Past,
    url_usd_per_h: Figure,
) -> Known:
    """What planning may rest on.

    Raises:
        RefusedError: If nothing answers at the target's URL.
    """
    if target.kind == "url":
        window_tokens = await window_at(target)
        return Known(
            generation_tokens_per_s=A_URLS,
            prefill_tokens_per_s=A_URLS,
            window_tokens=window_tokens,
            usd_per_h=url_usd_per_h if is_here(target) else UNPRICED,
            speculation_depth=A_URLS,
            can_reset_cache=False,
            live_speculation=False,
        )
    uptime_s = min(number(snapshot.engine.uptime_s) or 0.0, DAY_S)
    question = Question(
        since_s=time.time() - uptime_s, until_s=None, points=MOST_POINTS, step_s=0.0
    )
    points = (await past.chronicle.history(question)).points
    profile = status.profile.name if status.profile else ""
    earlier = await past.runs(profile, snapshot.simulated)
    asked = status.profile.speculation if status.profile else None
    controls = snapshot.engine.controls
    return Known(
        generation_tokens_per_s=known_first(earlier.generation_tokens_per_s, _fastest(points)),
        prefill_tokens_per_s=known_first(earlier.prefill_tokens_per_s, read_per_s(snapshot)),
        window_tokens=snapshot.engine.max_model_len,
        usd_per_h=snapshot.cost.usd_per_hour,
        speculation_depth=asked.tokens if asked is not None and asked.ready else 0,
        can_reset_cache=not isinstance(controls, Missing) and "reset-prefix-cache" not in controls,
        live_speculation=turns_live(status.profile, snapshot.speculation),
    )


def turns_live(profile: Profile | None, told: SpeculationInfo) -> bool:
    """Whether speculation can be turned as the engine runs.

    Args:
        profile: What it was started as.
        told: What is known of it: where our plugin did not answer of late, as in a busy engine it
            may not, it counts how the engine was started.
    """
    if told.control == "restart" and told.source != PLUGIN:
        return profile is not None and profile.turns_live
    return told.control == "live"


def _fastest(points: tuple[HistoryPoint, ...]) -> Figure:
    """How fast the engine was with one stream; with any number, where it never had just one."""
    alone = [point for point in points if number(point.running) == 1]
    for among in (alone, points):
        figures = (number(point.generation_peak_tokens_per_s) for point in among)
        known = sorted(value for value in figures if value)
        if known:
            return Estimated(round(median(known[-_FASTEST:]), 3))
    return UNMEASURED


def refuse_engine(
    target: RunTarget, status: EngineStatus, *, changing: str, measured: bool = False
) -> None:
    """See that a run's engine is there, or comes again with the end of the run that measures it.

    Args:
        target: Where the run's requests are to go.
        status: Of our engine.
        changing: What is under way on it; empty for nothing.
        measured: Whether a run is carried out on it, which alone changes it meanwhile and puts it
            back after: the next one waits for that.

    Raises:
        RefusedError: If it does not serve, or something changes it just now.
    """
    if target.kind == "url" or (measured and (changing or status.state in COMING)):
        return
    if changing:
        raise RefusedError(
            f"A {changing} is under way",
            remedy="Wait for its end: a40console wait ready",
        )
    if status.state is not EngineState.SERVING:
        raise RefusedError(
            f"No run now: {status.state.sentence}",
            remedy="Start an engine: a40console engine start, or measure another: --url URL",
        )


def planned(
    design: Design,
    settled: Mapping[str, Value],
    spec: RunSpec,
    known: Known,
    clients: Clients | None,
) -> RunPlan:
    """The plan, with what limits and clients add to it; `clients` is None of somebody else's."""
    plan = design.plan(settled, known, spec.target)
    if spec.max_usd is not None and number(known.usd_per_h) is None:
        why = known.usd_per_h.reason if isinstance(known.usd_per_h, Missing) else ""
        told = f"a limit of dollars cannot be kept: {why}"
        plan = replace(plan, refusal=plan.refusal or told)
    if clients is not None:
        plan = with_clients(plan, spec, clients)
    return replace(plan, consequences=(*plan.consequences, *_limits_told(plan, spec)))


def _limits_told(plan: RunPlan, spec: RunSpec) -> list[str]:
    lines = []
    seconds, usd = number(plan.seconds), number(plan.usd)
    if spec.max_minutes is not None and seconds is not None and seconds > spec.max_minutes * 60:
        lines.append(f"Its limit of {spec.max_minutes:g} min will probably end it before its time.")
    if spec.max_usd is not None and usd is not None and usd > float(spec.max_usd):
        lines.append(f"Its limit of ${spec.max_usd} will probably end it before its time.")
    return lines


def offers(designs: Designs) -> tuple[Experiment, ...]:
    """What can be run, in the order in which it is offered."""
    return tuple(design.offer for design in designs().values())
