"""Every setting in which two runs differ, and whether an effect could be its. Pure.

One change shows in several places: the flag that asks it, what the engine says is in force, a
digest. It is counted once, and what follows from it is told as a note. What was asked but is in
force on neither side, or on both, is a note too: it changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

from a40console.ledger.asked_settings import asked_settings, in_force
from a40console.model.figures import Estimated, Figure, Missing, Text
from a40console.model.run import Difference, Run, RunEnvironment

Weight: TypeAlias = Literal["variable", "environment", "note"]

NOT_SET = "not set"
_LIVE = frozenset({"speculation"})
"""What may be changed while an engine runs, and so without its command line."""

_FORCED = {"async_scheduling": "speculation", "num_speculative_tokens": "speculation"}
"""What an engine cannot have, or only has, with another setting: both change as one."""

_PLACE = ("engine_kind", "engine_version", "console", "gpu", "driver", "vcpu_quota", "host")
_DIGEST_CHARS = 12
_UNKNOWN = "not known ("
"""What is unknown of both, for whatever reason, is no difference that was seen."""


def differences(left: Run, right: Run) -> tuple[Difference, ...]:
    """All of them, those that count first."""
    found = (*_spec(left, right), *_environments(left, right))
    return tuple(sorted(found, key=lambda difference: difference.weight == "note"))


def counting(found: tuple[Difference, ...]) -> tuple[Difference, ...]:
    """Those to which an effect could be due."""
    return tuple(difference for difference in found if difference.weight != "note")


def _spec(left: Run, right: Run) -> Iterator[Difference]:
    ours, theirs = left.spec, right.spec
    settled = bool(left.settled and right.settled)
    yield from _differ("experiment", ours.experiment, theirs.experiment)
    yield from _differ("seed", str(ours.seed), str(theirs.seed))
    for name in ("kind", "url", "model", "dialect"):
        pair = getattr(ours.target, name), getattr(theirs.target, name)
        yield from _differ(f"target.{name}", *pair)
    if settled:
        yield from _mappings("settled", left.settled, right.settled)
    else:
        yield from _mappings("parameters", ours.parameters, theirs.parameters)
    yield from _differ("preset", ours.preset, theirs.preset, "note" if settled else "variable")
    for name in ("max_usd", "max_minutes", "when", "accept_intrusion"):
        one, other = _limit(getattr(ours, name)), _limit(getattr(theirs, name))
        yield from _differ(name, one, other, "note")


def _limit(value: object) -> str:
    return NOT_SET if value is None else str(value)


def _environments(left: Run, right: Run) -> Iterator[Difference]:
    ours, theirs = left.environment, right.environment
    if isinstance(ours, Missing) or isinstance(theirs, Missing):
        yield from _differ("environment", _told(ours), _told(theirs), "environment")
        return
    for name in _PLACE:
        pair = _value(getattr(ours, name)), _value(getattr(theirs, name))
        yield from _differ(f"environment.{name}", *pair, "environment")
    yield from _differ(
        "environment.gpu_count", str(ours.gpu_count), str(theirs.gpu_count), "environment"
    )
    yield from _model(ours, theirs)
    configured = tuple(_configuration(ours, theirs))
    yield from configured
    named = bool(counting(configured)) or isinstance(ours.config_digest, Missing)
    weight: Weight = "note" if named or isinstance(theirs.config_digest, Missing) else "variable"
    digests = _short(ours.config_digest), _short(theirs.config_digest)
    yield from _differ("environment.config_digest", *digests, weight)
    yield from _differ("environment.profile", _value(ours.profile), _value(theirs.profile), "note")
    # A price changes dollars and nothing else.
    prices = _value(ours.usd_per_h), _value(theirs.usd_per_h)
    yield from _differ("environment.usd_per_h", *prices, "note")


def _told(environment: RunEnvironment | Missing) -> str:
    return _value(environment) if isinstance(environment, Missing) else "known"


def _model(ours: RunEnvironment, theirs: RunEnvironment) -> Iterator[Difference]:
    """One model under two names is one; without both digests the names have to do."""
    known = not isinstance(ours.model_digest, Missing) and not isinstance(
        theirs.model_digest, Missing
    )
    same = known and ours.model_digest == theirs.model_digest
    weight: Weight = "note" if same else "variable"
    names = _value(ours.model), _value(theirs.model)
    if names[0] != names[1] or same:
        yield from _differ("environment.model", *names, weight)
        return
    digests = _short(ours.model_digest), _short(theirs.model_digest)
    yield from _differ("environment.model_digest", *digests, "variable")


def _configuration(ours: RunEnvironment, theirs: RunEnvironment) -> Iterator[Difference]:
    """What the engine was asked and what it says is in force, each change once."""
    asked = asked_settings(ours.argv), asked_settings(theirs.argv)
    force = in_force(ours.effective), in_force(theirs.effective)
    changed: dict[str, Iterable[Difference]] = {}
    following: dict[str, tuple[str, str]] = {}
    for name in sorted({*asked[0], *asked[1], *force[0], *force[1]}):
        wanted = asked[0].get(name, NOT_SET), asked[1].get(name, NOT_SET)
        runs = force[0].get(name, NOT_SET), force[1].get(name, NOT_SET)
        if runs[0] == runs[1] != NOT_SET:
            yield from _differ(f"asked.{name}", *wanted, "note")
        elif runs[0] == runs[1]:
            changed[name] = tuple(_differ(f"asked.{name}", *wanted))
        elif wanted[0] == wanted[1] and name not in _LIVE:
            following[name] = runs
        else:
            changed[name] = tuple(_differ(f"effective.{name}", *runs))
    for name, found in changed.items():
        forced = bool(changed.get(_FORCED.get(name, "")))
        yield from (replace(one, weight="note") if forced else one for one in found)
    for name, runs in following.items():
        yield from _differ(
            f"effective.{name}", *runs, "note" if any(changed.values()) else "variable"
        )


def _mappings(
    group: str, left: Mapping[str, str], right: Mapping[str, str]
) -> Iterator[Difference]:
    for name in sorted({*left, *right}):
        yield from _differ(f"{group}.{name}", left.get(name, NOT_SET), right.get(name, NOT_SET))


def _differ(name: str, left: str, right: str, weight: Weight = "variable") -> Iterator[Difference]:
    if left != right and not (left.startswith(_UNKNOWN) and right.startswith(_UNKNOWN)):
        yield Difference(name=name, left=left, right=right, weight=weight)


def _value(value: Text | Figure) -> str:
    match value:
        case Missing(reason):
            return f"{_UNKNOWN}{reason})"
        case Estimated(number):
            return f"≈ {number:g}"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _short(digest: Text) -> str:
    return _value(digest) if isinstance(digest, Missing) else digest[:_DIGEST_CHARS]
