"""What a switch will cost, from what is known at this moment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from a40console.model.figures import Estimated, Figure, Missing, combine, measured, number, total
from a40console.model.instants import unix_s
from a40console.model.profile import Profile
from a40console.model.snapshot import RecentRequest, Session, Snapshot
from a40console.model.switch_cost import SwitchCost, WideClient

LIVE_S = 3600.0
"""A session that was quiet for longer is not waited for."""

LONG_PROMPT_TOKENS = 2048
NO_LONG_PROMPT = Missing(
    f"no prompt of {LONG_PROMPT_TOKENS:,} tokens or more was read among the last requests"
)

_ASIDE = frozenset({"download"})
"""Phases that are over before anything stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known besides the snapshot."""

    drain_s: float
    starts: Sequence[Mapping[str, float]]
    """Seconds by phase, of the profile's starts that came to serve."""


def switch_cost(profile: Profile, snapshot: Snapshot, known: Known) -> SwitchCost:
    """The cost of letting a profile serve in place of what does."""
    sessions = tuple(_live(snapshot))
    tokens = total((one.context_tokens for one in sessions), reason="no session is known")
    rates = _prefill_rates(snapshot)
    speed: Figure = Estimated(max(rates)) if rates else NO_LONG_PROMPT
    window: Figure = measured(profile.max_model_len, "the profile leaves it to the engine")
    seconds = [sum(s for name, s in start.items() if name not in _ASIDE) for start in known.starts]
    start_s: Figure = Missing("no earlier start of it tells")
    if seconds:
        start_s = Estimated(round(median(seconds), 1))
    return SwitchCost(
        profile=profile.name,
        before=snapshot.engine.profile,
        running=snapshot.requests.running,
        drain_s=known.drain_s,
        sessions=len(sessions),
        reread_tokens=tokens,
        prefill_tokens_per_s=speed,
        prefill_prompts=len(rates),
        reread_s=combine(lambda a, b: a / b if b else None, tokens, speed),
        window_tokens=window,
        too_wide=tuple(_too_wide(sessions, number(window))),
        start_s=start_s,
        starts=len(seconds),
        simulated=profile.kind == "sim",
        simulated_before=snapshot.simulated,
    )


def _live(snapshot: Snapshot) -> Iterator[Session]:
    """Sessions whose contexts are worth something: of the last hour, of this engine."""
    now_s = unix_s(snapshot.at) or 0.0
    for session in () if isinstance(snapshot.sessions, Missing) else snapshot.sessions:
        if now_s - (unix_s(session.last_at) or 0.0) <= LIVE_S:
            yield session


def _prefill_rates(snapshot: Snapshot) -> list[float]:
    """Tokens a second of each long prompt that the engine read and whose request ended lately.

    What a short one takes is overhead, and tells nothing of a long one.
    """
    now_s, uptime_s = unix_s(snapshot.at) or 0.0, number(snapshot.engine.uptime_s)
    rates = []
    for request in snapshot.recent:
        read, seconds = _computed_tokens(request), number(request.prefill_s)
        its_own = uptime_s is None or now_s - (unix_s(request.ended_at) or 0.0) <= uptime_s
        if its_own and seconds and read >= LONG_PROMPT_TOKENS:
            rates.append(read / seconds)
    return rates


def _computed_tokens(request: RecentRequest) -> float:
    """Tokens of its prompt that were not in the cache; 0 where that is not told."""
    prompt, cached = number(request.prompt_tokens), number(request.cached_tokens)
    return 0.0 if prompt is None or cached is None else prompt - cached


def _too_wide(sessions: Iterable[Session], window: float | None) -> Iterator[WideClient]:
    """Those that go on beyond the new window before they sum their history up."""
    for session in sessions:
        believes = number(session.compacts_at_tokens)
        if window is not None and believes is not None and believes > window:
            yield WideClient(
                session=session.session, client=session.client, believes_tokens=believes
            )
