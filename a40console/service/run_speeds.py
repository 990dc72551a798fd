"""How fast an engine was, in earlier runs and with its clients: what a plan may rest on. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from a40console.ledger.store import Ledger
from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.instants import unix_s
from a40console.model.run import Run, RunEnvironment
from a40console.model.run_record import Sample
from a40console.model.snapshot import RecentRequest, Snapshot

LOOKED_AT = 40
"""Runs among which one on the same profile is looked for."""

LEAST_GENERATED = 8
"""Tokens of an answer: fewer say nothing of a speed."""

LEAST_READ = 256
"""Tokens of a prompt that were computed: with fewer, what every request costs hides the speed."""

_LONGEST = 5
"""So many of the longest prompts say how fast they are read: their median."""

UNMEASURED = Missing("nothing was measured on this engine yet")
UNREAD = Missing(f"no prompt of {LEAST_READ} tokens or more was read on this engine yet")


@dataclass(frozen=True, slots=True)
class Speeds:
    """Of one stream."""

    generation_tokens_per_s: Figure
    prefill_tokens_per_s: Figure


NO_SPEEDS = Speeds(UNMEASURED, UNREAD)


def speeds_in(ledger: Ledger, profile: str, *, simulated: bool) -> Speeds:
    """What the newest runs on a profile showed that measured each: a tiny one may say only one.

    Args:
        ledger: The runs that have ended.
        profile: The profile's name.
        simulated: Whether its engine is a simulation: real and simulated runs say nothing of each
            other.
    """
    found = NO_SPEEDS
    for run in ledger.runs(LOOKED_AT):
        if _was_on(run, profile, simulated=simulated):
            earlier = speeds_of(ledger.samples(run.id))
            found = Speeds(
                known_first(found.generation_tokens_per_s, earlier.generation_tokens_per_s),
                known_first(found.prefill_tokens_per_s, earlier.prefill_tokens_per_s),
            )
        if all(
            number(figure) for figure in (found.generation_tokens_per_s, found.prefill_tokens_per_s)
        ):
            break
    return found


def known_first(*figures: Figure) -> Figure:
    """The first that is known; else the last, with its reason."""
    return next((figure for figure in figures if number(figure) is not None), figures[-1])


def read_per_s(snapshot: Snapshot) -> Figure:
    """Prompt tokens per second, by the longest prompts that this engine read lately.

    The rate that the engine's counters have is no speed: a tiny prompt counts as if it had taken
    the whole second.
    """
    now_s, uptime_s = unix_s(snapshot.at) or 0.0, number(snapshot.engine.uptime_s) or 0.0
    read = sorted(
        (_computed_tokens(each), number(each.prefill_s) or 0.0)
        for each in snapshot.recent
        if now_s - (unix_s(each.ended_at) or 0.0) <= uptime_s
    )
    known = [tokens / seconds for tokens, seconds in read if seconds and tokens >= LEAST_READ]
    return Estimated(round(median(known[-_LONGEST:]), 3)) if known else UNREAD


def _computed_tokens(request: RecentRequest) -> float:
    """Tokens of its prompt that were not in the cache; 0 where that is not told."""
    prompt, cached = number(request.prompt_tokens), number(request.cached_tokens)
    return 0.0 if prompt is None or cached is None else prompt - cached


def _was_on(run: Run, profile: str, *, simulated: bool) -> bool:
    """Whether a run that stands was on it here: another machine's engine is as fast as it is."""
    where, ours = run.environment, isinstance(run.origin, Missing) and not run.reference
    return (
        ours
        and run.state in ("done", "partial")
        and isinstance(where, RunEnvironment)
        and (where.profile, where.simulated) == (profile, simulated)
    )


def speeds_of(samples: Iterable[Sample]) -> Speeds:
    """The fastest arm's medians: an arm with many streams has less for each."""
    by_arm: dict[str, list[Sample]] = {}
    for sample in samples:
        if not sample.error:
            by_arm.setdefault(sample.arm, []).append(sample)
    generated = [_median(map(_generation, arm)) for arm in by_arm.values()]
    read = [_median(map(_prefill, arm)) for arm in by_arm.values()]
    return Speeds(_fastest(generated, UNMEASURED), _fastest(read, UNREAD))


def _generation(sample: Sample) -> float | None:
    tokens, total_s, first_s = map(number, (sample.generated_tokens, sample.total_s, sample.ttft_s))
    if tokens is None or total_s is None or first_s is None or tokens < LEAST_GENERATED:
        return None
    return (tokens - 1) / (total_s - first_s) if total_s > first_s else None


def _prefill(sample: Sample) -> float | None:
    tokens, first_s = number(sample.prompt_tokens), number(sample.ttft_s)
    if tokens is None or not first_s:
        return None
    read = tokens - (number(sample.cached_tokens) or 0)
    return read / first_s if read >= LEAST_READ else None


def _median(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate]
    return median(known) if known else None


def _fastest(rates: Iterable[float | None], otherwise: Missing) -> Figure:
    known = [rate for rate in rates if rate]
    return Estimated(round(max(known), 3)) if known else otherwise
