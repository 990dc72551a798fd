"""What an arm came to as its client counted it, beside what the engine counted. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from a40console.experiments.client import COUNT_ROLE
from a40console.model.figures import Figure, Missing, combine, number, total
from a40console.model.run_record import Sample
from a40console.model.run_result import Doubt

REQUESTS = "requests"
ERRORS = "errors"
PROMPT = "prompt_tokens"
CACHED = "cached_tokens"
GENERATED = "generated_tokens"
WITHOUT_USAGE = "without_usage"

TOLERATED_SHARE = 0.01
TOLERATED_COUNT = 2
"""Client and engine may differ by as much as the larger of both: a counter that moves as an
answer is already read."""

MOST_THROTTLED_SHARE = 0.05
MOST_CLOCK_STEP_S = 0.25

_NAMES = {
    REQUESTS: "requests",
    PROMPT: "prompt tokens",
    CACHED: "cached tokens",
    GENERATED: "generated tokens",
}
_NOTHING = "nothing was answered"
_NOT_BEFORE = Missing("not told before the arm")
_FELL = Missing("the counter fell: the engine began anew")


def deltas(before: Mapping[str, Figure], after: Mapping[str, Figure]) -> dict[str, Figure]:
    """What counters rose by; missing where either is, or where one fell: the engine began anew."""
    return {
        name: combine(_rise, before.get(name, _NOT_BEFORE), value, reason=_FELL.reason)
        for name, value in after.items()
    }


def client_totals(samples: Iterable[Sample]) -> dict[str, Figure]:
    """What the client counted of an arm's requests, as a server counts it.

    Returns:
        `requests` that were answered whole, `errors`; `prompt_tokens`, `cached_tokens` and
        `generated_tokens` of those answered, missing if one of them has no usage, and how many have
        none as `without_usage`.
    """
    sent = [sample for sample in samples if sample.role != COUNT_ROLE]
    answered = [sample for sample in sent if not sample.error]
    return {
        REQUESTS: len(answered),
        ERRORS: len(sent) - len(answered),
        PROMPT: total((each.prompt_tokens for each in answered), reason=_NOTHING),
        CACHED: total((each.cached_tokens for each in answered), reason=_NOTHING),
        GENERATED: total((each.generated_tokens for each in answered), reason=_NOTHING),
        WITHOUT_USAGE: sum(isinstance(each.generated_tokens, Missing) for each in answered),
    }


def doubts_of_arm(
    arm: str,
    *,
    wall_s: float,
    client: Mapping[str, Figure],
    server: Mapping[str, Figure],
    machine: Mapping[str, Figure],
) -> tuple[Doubt, ...]:
    """What speaks against an arm, out of the three mappings of its `ArmEnd`.

    Args:
        arm: Its name.
        wall_s: How long it took.
        client: `client_totals` and `LoadHealth.figures` together.
        server: Deltas, under the names of `client_totals` where they mean the same: cached tokens
            are in prompt tokens, requests are those that were answered whole.
        machine: `vcpu_throttled_s`, `gpu_throttled_s`.
    """
    found = (
        _stepped(client),
        _failed(client),
        _without_usage(client),
        *_counted_otherwise(client, server),
        _throttled("vcpu-throttled", "the container's CPU quota", wall_s, machine),
        _throttled("gpu-throttled", "the GPU", wall_s, machine),
    )
    return tuple(
        Doubt(code=code, text=text, invalidates=invalidates, arm=arm)
        for code, text, invalidates in filter(None, found)
    )


_Found = tuple[str, str, bool]
"""Code, text, and whether it invalidates."""


def _rise(before: float, after: float) -> float | None:
    return after - before if after >= before else None


def _stepped(client: Mapping[str, Figure]) -> _Found | None:
    step_s = _of(client, "clock_step_s")
    if step_s is None or step_s <= MOST_CLOCK_STEP_S:
        return None
    text = (
        f"the wall clock was set by {step_s:.1f} s, or the machine stood still so long: "
        "server and client may not have counted the same time"
    )
    return "clock-step", text, True


def _failed(client: Mapping[str, Figure]) -> _Found | None:
    errors, answered = _of(client, ERRORS), _of(client, REQUESTS)
    if not errors or answered is None:
        return None
    text = f"{errors:.0f} of {errors + answered:.0f} requests failed; no latency is theirs"
    return "request-errors", text, not answered


def _without_usage(client: Mapping[str, Figure]) -> _Found | None:
    without, answered = _of(client, WITHOUT_USAGE), _of(client, REQUESTS)
    if not without or answered is None:
        return None
    text = (
        f"the server told no usage for {without:.0f} of {answered:.0f} requests: "
        "nothing is told in tokens, pieces of a stream are none"
    )
    return "no-usage", text, False


def _counted_otherwise(
    client: Mapping[str, Figure], server: Mapping[str, Figure]
) -> tuple[_Found | None, ...]:
    """Where client and engine counted differently: others sent too, or one counts wrong."""
    foreign = _foreign(client, server)
    if foreign is not None:
        return (foreign,)
    failed = _of(client, ERRORS) or 0.0
    odd = []
    for name, word in _NAMES.items():
        ours, theirs = _of(client, name), _of(server, name)
        if ours is None or theirs is None or _near(ours, theirs):
            continue
        if theirs > ours and failed:
            continue  # it began to answer what then failed, and told nobody how far it came
        odd.append(f"{word}: the client {ours:.0f}, the engine {theirs:.0f}")
    if not odd:
        return ()
    return (
        ("counters-disagree", "client and engine counted differently: " + "; ".join(odd), False),
    )


def _foreign(client: Mapping[str, Figure], server: Mapping[str, Figure]) -> _Found | None:
    """Requests of others, by their number or by what was read for them."""
    failed = _of(client, ERRORS) or 0.0
    seen, largest = [], 0.0
    for name, allowed in ((REQUESTS, failed), (PROMPT, None if failed else TOLERATED_COUNT)):
        ours, theirs = _of(client, name), _of(server, name)
        if ours is None or theirs is None or allowed is None:
            continue
        more = theirs - ours
        if more > allowed and (name == REQUESTS or not _near(ours, theirs)):
            seen.append(f"{more:.0f} more {_NAMES[name]} than the {ours:.0f} of the run")
            largest = max(largest, more / ours if ours else 1.0)
    if not seen:
        return None
    text = "the engine also worked for others: " + " and ".join(seen)
    return "foreign-traffic", text, largest > TOLERATED_SHARE


def _near(ours: float, theirs: float) -> bool:
    return abs(ours - theirs) <= max(TOLERATED_COUNT, TOLERATED_SHARE * max(ours, theirs))


def _throttled(code: str, what: str, wall_s: float, machine: Mapping[str, Figure]) -> _Found | None:
    spent_s = _of(machine, code.replace("-", "_") + "_s")
    if spent_s is None or wall_s <= 0 or spent_s <= MOST_THROTTLED_SHARE * wall_s:
        return None
    text = f"{what} held it back for {spent_s:.1f} of {wall_s:.1f} s ({spent_s / wall_s:.0%})"
    return code, text, False


def _of(figures: Mapping[str, Figure], name: str) -> float | None:
    return number(figures.get(name, Missing("not told")))
