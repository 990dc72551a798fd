"""The join: engine rows, gateway rows and counters into the slots shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from a40console.model.figures import Estimated, Figure, Missing, combine, measured, number
from a40console.model.request import EngineRow, Phase
from a40console.model.snapshot import Slot
from a40console.telemetry.matching import Pair
from a40console.telemetry.request_cells import (
    NOT_OURS,
    cached_tokens,
    counted,
    marked,
    method_of,
    request_id,
    reread_tokens,
    told,
    ttft_s,
)
from a40console.telemetry.timeline import Share

_JUST_BEGAN = Missing("just began")
_STANDING = Missing("no whole token in the window beyond its first")
"""The engine reads another's prompt, or stands: the first token came without decoding time."""

_NOT_DECODING: Mapping[Phase, Missing] = {
    "held": Missing("held at the gateway"),
    "queued": Missing("queued in the engine"),
    "prefill": Missing("in prefill"),
    "idle": Missing("idle"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast a live request is, and where that comes from."""

    tokens_per_s: Figure
    window_tokens_per_s: Figure
    passes_per_s: Figure
    tokens_per_pass: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a slot needs besides its rows."""

    now_s: float
    engine: Literal["vLLM", "llama.cpp"]
    queued_ids: frozenset[str]
    """Gateway requests that the engine has not begun, as far as its gauges tell."""

    assigned: Mapping[str, float]
    """Tokens apportioned to gateway requests."""


class Seats:
    """Numbers for requests that keep their place on the screen while they live."""

    def __init__(self) -> None:
        self._seats: dict[str, int] = {}

    def assign(self, keys: Sequence[str], *, taken: Mapping[str, int]) -> dict[str, int]:
        """A number for each key: the engine's own slot where it has one, else the lowest free."""
        used = set(taken.values())
        seats = dict(taken)
        for key in keys:
            kept = self._seats.get(key)
            if key not in seats and kept is not None and kept not in used:
                seats[key] = kept
                used.add(kept)
        lowest = 0
        for key in keys:
            if key in seats:
                continue
            while lowest in used:
                lowest += 1
            seats[key] = lowest
            used.add(lowest)
        self._seats = seats
        return seats


def phase_of(pair: Pair, context: Context) -> Phase:
    """Where the request is: by the engine's word, or by what the gateway has seen since."""
    gateway = pair.gateway
    if pair.engine is not None:
        seen = gateway is not None and gateway.first_token_at_s is not None
        # A request with tokens that is queued again was preempted: there the engine knows better.
        return "decode" if seen and not pair.engine.generated_tokens else pair.engine.phase
    if gateway is None or gateway.sent_at_s is None:
        return "held"
    if gateway.first_token_at_s is not None or context.assigned.get(gateway.request_id):
        return "decode"
    return "queued" if gateway.request_id in context.queued_ids else "prefill"


def first_token_at_s(pair: Pair) -> float | None:
    """When decoding began: the engine's own instant, else the gateway's."""
    if pair.engine is not None and pair.engine.first_token_at_s is not None:
        return pair.engine.first_token_at_s
    return None if pair.gateway is None else pair.gateway.first_token_at_s


def is_uncounted(pair: Pair, context: Context) -> bool:
    """Whether a request streams and nothing tells how many tokens."""
    gateway = pair.gateway
    return (
        pair.engine is None
        and gateway is not None
        and not pair.metered
        and gateway.first_token_at_s is not None
        and gateway.request_id not in context.assigned
    )


def no_speed(why: Missing) -> Speed:
    """A request whose speed cannot be told."""
    return Speed(tokens_per_s=why, window_tokens_per_s=why, passes_per_s=why, tokens_per_pass=why)


def speed(
    share: Share | None,
    *,
    phase: Phase,
    rough: bool,
    engine_passes: Callable[[float], Figure],
    window_s: float,
    speculating: bool | None = None,
) -> Speed:
    """The speeds of one request; its pass/s times its tok/pass is its tok/s.

    Args:
        share: What it emitted in the window; None where no reading has it yet.
        phase: Where it is: outside decode there is no speed, which is not 0.
        rough: Whether its tokens are an estimate.
        engine_passes: The engine's passes a second over the last so many seconds, taken for the
            time that it decoded where its own passes are not counted.
        window_s: How much of the window the readings cover.
        speculating: Whether the engine drafts; where it does not, a pass emits one token.
    """
    # A request that no reading has yet had emitted nothing by the last one: a count, not a guess.
    window: Figure = 0.0 if window_s > 0 else Missing("one reading so far")
    if share is not None:
        window = marked(share.window_rate, rough=rough)
    rate = None if share is None else share.decode_rate
    if phase != "decode" or share is None or rate is None or share.decode_tokens < 1:
        why = _NOT_DECODING.get(phase, _JUST_BEGAN if rate is None else _STANDING)
        return Speed(
            tokens_per_s=why, window_tokens_per_s=window, passes_per_s=why, tokens_per_pass=why
        )
    tokens = marked(rate, rough=rough)
    if speculating is False and share.decode_passes is None:
        passes: Figure = Estimated(rate)
    else:
        passes = _passes(share, engine_passes, rough=rough)
    return Speed(
        tokens_per_s=tokens,
        window_tokens_per_s=window,
        passes_per_s=passes,
        tokens_per_pass=combine(
            lambda a, b: a / b if b else None, tokens, passes, reason="no pass in the window"
        ),
    )


def _passes(share: Share, engine_passes: Callable[[float], Figure], *, rough: bool) -> Figure:
    if share.decode_passes is not None:
        return marked(share.decode_passes / share.decode_s, rough=rough)
    of_engine = engine_passes(share.decode_s)
    known = number(of_engine)
    return of_engine if known is None else Estimated(known)


def build_slot(pair: Pair, *, seat: int, shown: Speed, context: Context) -> Slot:
    """One live request as the console shows it."""
    engine, gateway = pair.engine, pair.gateway
    phase = phase_of(pair, context)
    return Slot(
        slot=seat,
        request_id=request_id(pair),
        session=told(pair, "session", "the client names no session"),
        agent=told(pair, "agent", "agents are not told apart"),
        client=told(pair, "client", "the client does not name itself"),
        model=told(pair, "model", "the request names no model"),
        direct=gateway is None,
        phase=phase,
        prompt_tokens=_prompt_tokens(pair, phase),
        cached_tokens=cached_tokens(pair),
        reread_tokens=reread_tokens(pair),
        generated_tokens=_generated(pair, phase, context),
        max_tokens=measured(counted(engine, gateway, "max_tokens"), "no limit was asked for"),
        prefill_ratio=_prefill_ratio(engine, phase, context),
        tokens_per_s=shown.tokens_per_s,
        passes_per_s=shown.passes_per_s,
        tokens_per_pass=shown.tokens_per_pass,
        window_tokens_per_s=shown.window_tokens_per_s,
        ttft_s=ttft_s(pair),
        age_s=_age(pair, context.now_s),
        method=method_of(pair),
    )


def direct_rest(rate: float, *, seat: int, engine_passes: Figure) -> Slot:
    """What the engine generates beyond all known requests, as one row: only its rate is known."""
    unknown = Missing("only its rate is known")
    passes = number(engine_passes)
    return Slot(
        slot=seat,
        request_id="direct",
        session=NOT_OURS,
        agent=NOT_OURS,
        client=NOT_OURS,
        model=NOT_OURS,
        direct=True,
        phase="decode",
        prompt_tokens=unknown,
        cached_tokens=unknown,
        reread_tokens=unknown,
        generated_tokens=unknown,
        max_tokens=unknown,
        prefill_ratio=unknown,
        tokens_per_s=Estimated(rate),
        passes_per_s=unknown if passes is None else Estimated(passes),
        tokens_per_pass=Estimated(rate / passes) if passes else unknown,
        window_tokens_per_s=Estimated(rate),
        ttft_s=unknown,
        age_s=unknown,
        method="apportioned",
    )


def _prompt_tokens(pair: Pair, phase: Phase) -> Figure:
    reason = "known with the first token" if phase != "decode" else "the engine did not tell"
    return measured(counted(pair.engine, pair.gateway, "prompt_tokens"), reason)


def _generated(pair: Pair, phase: Phase, context: Context) -> Figure:
    engine, gateway = pair.engine, pair.gateway
    if pair.metered and gateway is not None:
        return gateway.generated_tokens or 0
    if engine is not None:
        return marked(engine.generated_tokens, rough=pair.rough)
    assigned = None if gateway is None else context.assigned.get(gateway.request_id)
    if assigned is not None:
        return Estimated(round(assigned))
    if phase in ("held", "queued"):
        return 0
    return Missing("nothing delivered yet" if phase == "prefill" else "no counter to share yet")


def _prefill_ratio(engine: EngineRow | None, phase: Phase, context: Context) -> Figure:
    if phase != "prefill":
        return Missing("not in prefill")
    known = None if engine is None else engine.prefill_ratio
    return measured(known, f"{context.engine} does not report it")


def _age(pair: Pair, now_s: float) -> Figure:
    if pair.gateway is not None:
        return max(0.0, now_s - pair.gateway.received_at_s)
    since_s = None if pair.engine is None else pair.engine.arrived_at_s
    return Missing("the engine does not tell") if since_s is None else max(0.0, now_s - since_s)
