"""What is told of a run beside its results: when, where, on what, how it was asked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from a40console.model.figures import Estimated, Figure, Missing, Text, total
from a40console.model.run import Run, RunEnvironment, RunSpec
from a40console.model.run_record import ArmEnd
from a40console.model.run_words import DASH, ESTIMATE, figure_text, visible
from a40console.model.wording import dollars, duration

Fact = tuple[str, str]
"""A name and what is known of it."""

_PROTOCOL = "protocol"
"""The experiment on the Messages API, which asks by it whatever the target's own dialect."""


def title(run: Run) -> str:
    """What was run, how thoroughly, when."""
    asked = [visible(run.spec.experiment)]
    asked += [] if run.reference else [visible(run.spec.preset)]
    at = run.asked_at if isinstance(run.started_at, Missing) else run.started_at
    return f"{', '.join(asked)} · {moment(at)}"


def in_order(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Runs as they are listed: those that wait, the next one first, then the others as they are."""
    told = tuple(runs)
    waiting = [run for run in told if run.state == "queued"]
    waiting.sort(key=lambda run: (run.asked_at, run.id))
    return (*waiting, *(run for run in told if run.state != "queued"))


def run_facts(run: Run, arm_ends: Sequence[ArmEnd] = ()) -> list[Fact]:
    """The run itself: how it was asked, when it ran, what it cost."""
    spec = run.spec
    facts = [("run", run.id), ("state", _state(run))]
    facts += [] if run.reference else [("target", target(spec)), ("seed", str(spec.seed))]
    if spec.note:
        facts.append(("asked with the note", visible(spec.note)))
    facts += [("started", moment(run.started_at)), ("took", _took(run))]
    if arm_ends:
        facts.append(("measured cost", usd_text(total(end.usd for end in arm_ends))))
    if limits := _limits(spec):
        facts.append(("limits", limits))
    if isinstance(run.origin, str):
        facts.append(("from", visible(run.origin)))
    facts += [(visible(name), visible(value)) for name, value in sorted(run.settled.items())]
    return facts


def environment_facts(environment: RunEnvironment) -> list[Fact]:
    """Everything that a comparison must know of where it was made."""
    machine = _text(environment.gpu)
    if environment.gpu_count > 1:
        machine = f"{environment.gpu_count} × {machine}"
    engine = f"{visible(environment.engine_kind)} {_text(environment.engine_version)}"
    facts = [
        ("engine", engine + (", SIMULATED" if environment.simulated else "")),
        ("model", _text(environment.model)),
        ("model digest", _text(environment.model_digest)),
        ("profile", _text(environment.profile)),
        ("config digest", _text(environment.config_digest)),
        ("GPU", machine),
        ("driver", _text(environment.driver)),
        ("vCPU quota", _number(environment.vcpu_quota, 1)),
        ("price", _price(environment.usd_per_h)),
        ("machine", _text(environment.host)),
        ("a40console", visible(environment.console)),
    ]
    if environment.argv:
        facts.append(("argv asked", visible(" ".join(environment.argv))))
    facts += [
        (f"in force: {visible(name)}", visible(value))
        for name, value in sorted(environment.effective.items())
    ]
    return facts


def target(spec: RunSpec) -> str:
    """Where its requests went."""
    to = spec.target
    named = {"engine": "our engine", "gateway": "the gateway"}.get(to.kind, visible(to.url))
    model = f", model {visible(to.model)}" if to.model else ""
    spoken = "Messages API" if spec.experiment == _PROTOCOL else f"{to.dialect} dialect"
    return f"{named}, {spoken}{model}"


def moment(at: Text) -> str:
    """An instant to the minute, UTC."""
    if isinstance(at, Missing):
        return f"{DASH} {visible(at.reason)}"
    read = _instant(at)
    return visible(at) if read is None else f"{read:%Y-%m-%d %H:%M} UTC"


def usd_text(figure: Figure) -> str:
    """Dollars, or why they are not known."""
    match figure:
        case Missing():
            return _number(figure, 2)
        case Estimated(value):
            return ESTIMATE + dollars(value)
        case _:
            return dollars(figure)


def _took(run: Run) -> str:
    if isinstance(run.started_at, Missing):
        return f"{DASH} {visible(run.started_at.reason)}"
    if isinstance(run.ended_at, Missing):
        return f"{DASH} {visible(run.ended_at.reason)}"
    began, ended = _instant(run.started_at), _instant(run.ended_at)
    if began is None or ended is None:
        return f"{DASH} its times cannot be read"
    return duration((ended - began).total_seconds())


def _instant(at: str) -> datetime | None:
    """In UTC; None of what is no instant, or one that no calendar has there."""
    try:
        read = datetime.fromisoformat(at)
        return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _state(run: Run) -> str:
    return f"{run.state}: {visible(run.reason)}" if run.reason else run.state


def _limits(spec: RunSpec) -> str:
    asked = [usd_text(float(spec.max_usd))] if spec.max_usd is not None else []
    asked += [f"{spec.max_minutes:g} minutes"] if spec.max_minutes is not None else []
    return ", ".join(asked)


def _price(usd_per_h: Figure) -> str:
    told = usd_text(usd_per_h)
    return told if isinstance(usd_per_h, Missing) else f"{told}/h"


def _text(text: Text) -> str:
    return f"{DASH} {visible(text.reason)}" if isinstance(text, Missing) else visible(text)


def _number(figure: Figure, digits: int) -> str:
    if isinstance(figure, Missing):
        return f"{DASH} {visible(figure.reason)}"
    return figure_text(figure, digits)
