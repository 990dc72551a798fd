"""What a switch of the engine will cost those who use it, told before it is confirmed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from a40console.model.figures import Figure, Missing, Text, is_estimate, number
from a40console.model.wording import duration, short_name


@dataclass(frozen=True, slots=True, kw_only=True)
class WideClient:
    """A session whose client believes a larger window than there will be."""

    session: str
    client: Text
    believes_tokens: float
    """It goes on until its context has so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchCost:
    """Contexts to read again, clients that will not fit, and the time without an engine."""

    profile: str
    before: Text
    """The profile that serves."""

    running: Figure
    """Requests under way, which may end first."""

    drain_s: float
    """For so long at the most."""

    sessions: int
    """Sessions of the last hour: their contexts are in the cache that goes."""

    reread_tokens: Figure
    """Their contexts together."""

    prefill_tokens_per_s: Figure
    """The fastest reading of a long prompt among the requests that ended last, by the engine that
    serves."""

    prefill_prompts: int
    """How many long prompts that was chosen from."""

    reread_s: Figure
    window_tokens: Figure
    """Of the new engine."""

    too_wide: tuple[WideClient, ...]
    start_s: Figure
    """Until it serves, by its earlier starts, the canary included."""

    starts: int
    """How many of them."""

    simulated: bool
    """Whether the engine that is to serve is simulated."""

    simulated_before: bool
    """Whether the one that serves is."""


def told(cost: SwitchCost) -> tuple[str, ...]:
    """The cost in sentences, the most telling first."""
    after, before = _mark(cost.simulated), _mark(cost.simulated_before)
    return (
        *(f"{after}{text}" for text in (*_same(cost), _downtime(cost))),
        *(f"{before}{text}" for text in (*_running(cost), _reread(cost))),
        *(f"{after}{text}" for text in _windows(cost)),
    )


def _mark(simulated: bool) -> str:
    """Before what is said of a simulated engine."""
    return "SIMULATED: " if simulated else ""


def _same(cost: SwitchCost) -> Iterator[str]:
    if cost.before == cost.profile:
        yield f"{cost.profile} serves already: it is started anew, as its file is now."


def _downtime(cost: SwitchCost) -> str:
    if isinstance(cost.start_s, Missing):
        return f"Clients wait while {cost.profile} starts: how long, {cost.start_s.reason}."
    based = "its last start" if cost.starts == 1 else f"the median of {cost.starts} starts"
    return f"Clients wait {_span(cost.start_s)} for {cost.profile} to start ({based})."


def _running(cost: SwitchCost) -> Iterator[str]:
    running = number(cost.running)
    if running:
        are = "1 request is" if running == 1 else f"{running:,.0f} requests are"
        yield f"{are} running: what has not ended after {cost.drain_s:g} s is cut."


def _reread(cost: SwitchCost) -> str:
    if not cost.sessions:
        return "No session has a context to read again."
    of = "1 session" if cost.sessions == 1 else f"{cost.sessions} sessions"
    if isinstance(cost.reread_tokens, Missing):
        return f"The contexts of {of} are read again: how much, {cost.reread_tokens.reason}."
    text = f"The contexts of {of} are read again: {_tokens(cost.reread_tokens)} tokens"
    speed = number(cost.prefill_tokens_per_s)
    if isinstance(cost.reread_s, Missing) or speed is None:
        return f"{text}; how long that takes, {_reason(cost.reread_s)}."
    of = "1 long prompt" if cost.prefill_prompts == 1 else f"{cost.prefill_prompts} long prompts"
    return f"{text}, {_span(cost.reread_s)} at the {speed:,.0f} tok/s measured here ({of})."


def _windows(cost: SwitchCost) -> Iterator[str]:
    window = number(cost.window_tokens)
    if window is None or not cost.too_wide:
        return
    names = ", ".join(
        f"{one.client if isinstance(one.client, str) else 'a client'} {short_name(one.session)} "
        f"({one.believes_tokens:,.0f})"
        for one in cost.too_wide[:3]
    )
    more = f" and {len(cost.too_wide) - 3} more" if len(cost.too_wide) > 3 else ""
    yield f"The window becomes {window:,.0f} tokens; clients that believe in more: {names}{more}."


def _span(figure: Figure) -> str:
    seconds = number(figure)
    if seconds is None:
        return "?"
    return f"≈ {duration(seconds)}" if seconds >= 1 else "less than 1 s"


def _tokens(figure: Figure) -> str:
    tokens = number(figure) or 0.0
    return f"≈ {tokens:,.0f}" if is_estimate(figure) else f"{tokens:,.0f}"


def _reason(figure: Figure) -> str:
    return figure.reason if isinstance(figure, Missing) else "is not known"
