"""What a switch will cost, from what is known at this moment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from a40console.model.figures import Estimated, Figure, Missing, combine, measured, number, total
from a40console.model.instants import unix_s
from a40console.model.profile import Profile
from a40console.model.snapshot import Session, Snapshot
from a40console.model.switch_cost import SwitchCost, WideClient

LIVE_S = 3600.0
"""A session that was quiet for longer is not waited for."""

_ASIDE = frozenset({"download"})
"""Phases that are over before anything stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known besides the snapshot."""

    drain_s: float
    prefill_rates: Sequence[Figure]
    """Of the last hour."""

    starts: Sequence[Mapping[str, float]]
    """Seconds by phase, of the profile's starts that came to serve."""


def switch_cost(profile: Profile, snapshot: Snapshot, known: Known) -> SwitchCost:
    """The cost of letting a profile serve in place of what does."""
    sessions = tuple(_live(snapshot))
    tokens = total((one.context_tokens for one in sessions), reason="no session is known")
    speed = _speed(known.prefill_rates)
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
        reread_s=combine(lambda a, b: a / b if b else None, tokens, speed),
        window_tokens=window,
        too_wide=tuple(_too_wide(sessions, number(window))),
        start_s=start_s,
        starts=len(seconds),
        simulated=snapshot.simulated or profile.kind == "sim",
    )


def _live(snapshot: Snapshot) -> Iterator[Session]:
    """Sessions whose contexts are worth something: of the last hour, of this engine."""
    now_s = unix_s(snapshot.at) or 0.0
    for session in () if isinstance(snapshot.sessions, Missing) else snapshot.sessions:
        if now_s - (unix_s(session.last_at) or 0.0) <= LIVE_S:
            yield session


def _speed(rates: Iterable[Figure]) -> Figure:
    """The fastest reading of the hour: a second that a prompt filled only in part shows less."""
    found = [rate for figure in rates if (rate := number(figure))]
    if not found:
        return Missing("no prompt was read in the last hour")
    return Estimated(max(found))


def _too_wide(sessions: Iterable[Session], window: float | None) -> Iterator[WideClient]:
    """Those that go on beyond the new window before they sum their history up."""
    for session in sessions:
        believes = number(session.compacts_at_tokens)
        if window is not None and believes is not None and believes > window:
            yield WideClient(
                session=session.session, client=session.client, believes_tokens=believes
            )
