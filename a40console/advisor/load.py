"""Causes among the requests: gate, queue, KV cache, prefill, and prompts read again."""

from __future__ import annotations

from operator import mul, truediv

from a40console.advisor.judgement import Cleared, Judgement, Spoken, Unclear, unclear
from a40console.advisor.readings import KV_FULL_RATIO, ROOM_RATIO, Readings, is_fresh, shown
from a40console.advisor.wording import brief, count, duration, percent, short_name, threshold, whole
from a40console.model.figures import Figure, Missing, combine, number
from a40console.model.snapshot import PrefixCache, Slot

PREFILL_TOKENS = 512
PREFILL_AGE_S = 1.0
"""A prompt is a limit when it has this many tokens to compute, or has taken this long."""

REREAD_TOKENS = 512
QUERIED_TOKENS = 2048
"""Fewer tokens say nothing of a hit rate."""

GOOD_HIT_RATIO = 0.80
LOST_HIT_SHARE = 0.50
"""A hit rate below this share of what it could be is a loss."""

FEWER = "Fewer sessions at once, a smaller max_model_len, or an fp8 KV cache."
_FIND_LOSS = "Find what changes early in the prompt: a header, a timestamp, pruning at every turn."


def gate(readings: Readings) -> Judgement:
    """Requests that we hold ourselves."""
    if not readings.held:
        return Cleared("0 held at the gate")
    text = f"{count(readings.held, 'request')} held at the gate"
    evidence = (text, *_queue_evidence(readings))
    # Where the engine has a queue as well, that one explains the gate.
    return Spoken(
        text=text, evidence=evidence, strength="candidate" if readings.waiting else "cause"
    )


def kv(readings: Readings) -> Judgement:
    """No free KV blocks: requests wait for them, or lose theirs and are computed again."""
    held, waiting = readings.kv_held_ratio, readings.waiting
    full = held is not None and held >= KV_FULL_RATIO
    evidence = _queue_evidence(readings)
    share = shown(readings.snapshot.kv_cache.held_ratio, percent)
    if number(readings.trends.preemptions):
        times = shown(readings.trends.preemptions, lambda times: count(times, "preemption"))
        lost = f"{times} ({duration(readings.trends.long_s)})"
        roomy = held is not None and held < ROOM_RATIO
        return Spoken(
            text=f"KV pressure: {lost}, their prompts are computed again",
            evidence=(lost, *evidence),
            strength="candidate" if roomy else "cause",
            remedy=FEWER,
        )
    if full and waiting:
        text = f"{_waiting(readings)}: the KV cache is full"
        return Spoken(text=text, evidence=evidence, remedy=FEWER)
    if full:
        text = f"the KV cache is {share} held: the next prompt will wait"
        return Spoken(text=text, evidence=evidence, strength="candidate", remedy=FEWER)
    block = readings.snapshot.kv_cache
    if held is None:
        return unclear(block.age_s, block.held_ratio, otherwise="the cache's figures are old")
    if held < ROOM_RATIO:
        return Cleared(f"{share} held, below {threshold(ROOM_RATIO)}")
    return Unclear(
        f"{share} held: neither below {threshold(ROOM_RATIO)} nor from"
        f" {threshold(KV_FULL_RATIO)} on"
    )


def queue_at_limit(readings: Readings) -> Judgement:
    """A queue whose reason is known: as many run as may."""
    running, most, waiting = readings.running, readings.max_running, readings.waiting
    if not waiting or running is None or most is None or running < most:
        return None
    reached = shown(readings.most_running, whole)
    text = f"{_waiting(readings)}: max_running {reached} is reached"
    remedy = "Raise the profile's max_running if KV cache and speed allow it."
    return Spoken(text=text, evidence=_queue_evidence(readings), remedy=remedy)


def queue(readings: Readings) -> Judgement:
    """A queue, whatever its reason."""
    waiting = readings.waiting
    if waiting is None:
        block = readings.snapshot.requests
        return unclear(block.age_s, block.waiting, otherwise="the engine's figures are old")
    if not waiting:
        return Cleared("0 waiting in the engine")
    text = f"{_waiting(readings)} in the engine"
    return Spoken(text=text, evidence=_queue_evidence(readings))


def _waiting(readings: Readings) -> str:
    requests = shown(readings.snapshot.requests.waiting, lambda n: count(n, "request"))
    return f"{requests} waiting"


def _queue_evidence(readings: Readings) -> tuple[str, ...]:
    evidence, requests = list[str](), readings.snapshot.requests
    if readings.waiting is not None:
        evidence.append(f"{shown(requests.waiting, whole)} waiting in the engine")
    if readings.running is not None:
        most = shown(readings.most_running, whole)
        at_most = f" of at most {most}" if most else ""
        evidence.append(f"{shown(requests.running, whole)} running{at_most}")
    if readings.kv_held_ratio is not None:
        evidence.append(f"KV {shown(readings.snapshot.kv_cache.held_ratio, percent)} held")
    for reason, figure in requests.waiting_by_reason.items():
        if number(figure):
            evidence.append(f"{shown(figure, whole)} for {reason}")
    return tuple(evidence)


def prefill(readings: Readings) -> Judgement:
    """Prompts are computed: their requests have no token yet, and the others decode beside it."""
    slots = readings.slots
    if slots is None:
        return _prefill_by_rate(readings)
    prompts = [slot for slot in slots if slot.phase == "prefill"]
    long = [slot for slot in prompts if _is_long(slot)]
    if long:
        largest = max(long, key=lambda slot: number(_tokens_left(slot)) or 0)
        return _prefill_of(readings, largest, len(long))
    if not prompts:
        return Cleared("no prompt in prefill")
    young, shortest = f"{count(len(prompts), 'prompt')} in prefill", duration(PREFILL_AGE_S)
    if all(_cached_known(slot) for slot in prompts):
        return Unclear(f"{young}, below {PREFILL_TOKENS} tokens and {shortest}")
    return Unclear(f"{young} for less than {shortest}: what is cached is not known yet")


def _prefill_of(readings: Readings, slot: Slot, prompts: int) -> Spoken:
    who = next((name for name in (slot.agent, slot.session) if not isinstance(name, Missing)), "")
    left, rate = _tokens_left(slot), readings.prefill_speed
    at_most = "" if _cached_known(slot) else "at most "
    size = f" of {at_most}{tokens} tokens" if (tokens := shown(left, whole)) else ""
    text = f"prefill{size}" + (f" ({short_name(who)})" if who else "")
    evidence = [f"{count(prompts, 'prompt')} in prefill"]
    if speed := shown(rate, brief):
        evidence.append(f"{speed} prompt tok/s computed {readings.speed_window}")
    if (left_s := number(combine(truediv, left, rate))) is not None:
        text += f", {at_most or '≈ '}{duration(left_s)} left"
    if age := shown(slot.age_s, duration):
        evidence.append(f"for {age}")
    return Spoken(text=text, evidence=tuple(evidence))


def _prefill_by_rate(readings: Readings) -> Judgement:
    """Without slots only the counters tell."""
    rate, speed = readings.prefill_tokens_per_s, readings.generation_tokens_per_s
    block = readings.snapshot.throughput
    if rate is None:
        return unclear(
            block.age_s, block.prefill_tokens_per_s, otherwise="the engine's figures are old"
        )
    prompts = shown(block.prefill_tokens_per_s, brief)
    computed = f"{prompts} prompt tok/s computed {readings.speed_window}"
    if not rate:
        return Cleared(computed)
    if speed == 0:
        text = "prefill: prompts are computed, nothing is generated yet"
        generated = shown(block.generation_tokens_per_s, brief)
        evidence = (computed, f"{generated} tok/s generated {readings.speed_window}")
        return Spoken(text=text, evidence=evidence)
    return Spoken(
        text="prompts are computed beside what decodes",
        evidence=(computed,),
        strength="candidate",
    )


def _tokens_left(slot: Slot) -> Figure:
    """Prompt tokens still to compute, at most: what is cached or done is taken off if known."""
    cached, done = (
        0 if isinstance(figure, Missing) else figure
        for figure in (slot.cached_tokens, slot.prefill_ratio)
    )
    return combine(lambda p, c, d: max(0.0, (p - c) * (1 - d)), slot.prompt_tokens, cached, done)


def _cached_known(slot: Slot) -> bool:
    return not isinstance(slot.cached_tokens, Missing)


def _is_long(slot: Slot) -> bool:
    """By its tokens once it is known how many of them are cached, by its age in any case."""
    left, age_s = number(_tokens_left(slot)), number(slot.age_s)
    long = _cached_known(slot) and left is not None and left >= PREFILL_TOKENS
    return long or (age_s is not None and age_s >= PREFILL_AGE_S)


def cache(readings: Readings) -> Judgement:
    """Prompts are computed again that the prefix cache held, or could have held."""
    if (reread := _reread(readings)) is not None:
        return reread
    block = readings.snapshot.prefix_cache
    hit, queried = number(block.hit_ratio), number(block.queried_tokens)
    if hit is None or queried is None or not is_fresh(block.age_s):
        return unclear(
            block.age_s, block.hit_ratio, block.queried_tokens, otherwise="its figures are old"
        )
    hits, could = _hits(block), _could_be(block)
    if queried < QUERIED_TOKENS:
        return Unclear(f"{hits}: fewer than {whole(QUERIED_TOKENS)} tokens were asked for")
    if hit >= GOOD_HIT_RATIO:
        return Cleared(f"{hits}, from {threshold(GOOD_HIT_RATIO)} on nothing is lost")
    if could is None:
        return Unclear(f"{hits}: what could have hit is not known")
    best, known_as, proven = could
    if hit >= LOST_HIT_SHARE * best:
        return Cleared(f"{hits}, more than half of {known_as}")
    return Spoken(
        text=f"prefix-cache loss: {hits}, {known_as}",
        evidence=(f"{_tokens_hit(block)} prompt tokens hit", known_as),
        # Prompts that are new look the same where what was reusable is not known.
        strength="candidate" if proven else "weak",
        remedy=_FIND_LOSS,
    )


def _reread(readings: Readings) -> Judgement:
    """A prompt in prefill that the session had computed before, token for token."""
    again = [
        (tokens, slot)
        for slot in readings.slots or ()
        if slot.phase == "prefill" and (tokens := number(slot.reread_tokens) or 0) >= REREAD_TOKENS
    ]
    if not again:
        return None
    slot = max(again, key=lambda entry: entry[0])[1]
    lost = f"{shown(slot.reread_tokens, whole)} tokens"
    evidence = [f"{lost} computed again", f"{count(len(again), 'prompt')} so"]
    loss = readings.snapshot.prefix_cache.last_loss
    because = ""
    if not isinstance(loss, Missing) and loss.session == slot.session:
        because = f": {loss.cause}"
        cost = shown(loss.tokens, whole)
        evidence.append(f"turn {loss.turn}: {loss.cause}, {cost} tokens ({loss.at})")
    who = "" if isinstance(slot.session, Missing) else f" ({short_name(slot.session)})"
    return Spoken(
        text=f"prefix-cache loss: {lost} are read again{who}{because}",
        evidence=tuple(evidence),
        remedy=_FIND_LOSS,
    )


def _hits(block: PrefixCache) -> str:
    prompts = shown(block.prompts, lambda n: count(n, "prompt"))
    of = f" of {prompts}" if prompts else ""
    return f"{shown(block.hit_ratio, percent)} hit{of} ({duration(block.window_s)})"


def _tokens_hit(block: PrefixCache) -> str:
    hit = combine(mul, block.hit_ratio, block.queried_tokens)
    return f"{shown(hit, whole)} of {shown(block.queried_tokens, whole)}"


def _could_be(block: PrefixCache) -> tuple[float, str, bool] | None:
    """The hit rate that could be expected, in words too, and whether that is known or hoped for."""
    if (reusable := number(block.reusable_ratio)) is not None:
        return reusable, f"{shown(block.reusable_ratio, percent)} was reusable", True
    since_start = number(block.hit_ratio_since_start)
    if since_start is None or since_start < LOST_HIT_SHARE:
        return None
    return since_start, f"{shown(block.hit_ratio_since_start, percent)} since start", False
