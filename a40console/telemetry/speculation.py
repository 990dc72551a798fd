"""The measured part of the speculation block: what drafts bring, by the engine's counters."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import Literal

from a40console.model.figures import Estimated, Figure, Missing, Text, measured, number, ratio
from a40console.model.snapshot import SpeculationInfo
from a40console.telemetry.blocks import Source
from a40console.telemetry.depth_speeds import DepthSpeeds
from a40console.telemetry.reading import LiveDepth
from a40console.telemetry.windows import LONG_WINDOW_S, Change

DRAFTS_FOR_A_VERDICT = 100

_OFF = Missing("speculation is off")
_NOT_CONTROLLED = Missing("known to whoever started the engine")


def speculation(
    source: Source,
    *,
    enabled: bool | None,
    live: LiveDepth | None = None,
    speeds: DepthSpeeds | None = None,
) -> SpeculationInfo:
    """What speculation brought in the last minute.

    Who controls it, and how deep it was asked to draft, the caller knows: those fields hold what
    the engine shows by itself.

    Args:
        source: Whose counters.
        enabled: Whether the engine was started with speculation; None where it does not tell.
        live: The depth in force, where the engine's worker tells it.
        speeds: What was measured at which depth, where that is told.
    """
    if live is None:
        return _measured(source, source.change(), enabled=enabled)
    change = _at_this_depth(source, live)
    info = _with_depth(_measured(source, change, enabled=live.tokens > 0, live=live), live)
    if speeds is None:
        return info
    return replace(
        info,
        off_tokens_per_s_at_this_load=speeds.without(source.now_s),
        measured_at_this_load=speeds.at_this_load(source.now_s),
    )


def _at_this_depth(source: Source, live: LiveDepth) -> Change | Missing:
    """The window, begun anew where the depth was changed within it."""
    change = source.change()
    if isinstance(change, Missing) or change.end.live_depth is None:
        return change
    start = change.end
    for reading in reversed(tuple(source.ring)):
        if reading.live_depth is None or reading.live_depth.tokens != live.tokens:
            break
        start = reading
    if start.at_s <= change.start.at_s:
        return change
    if start is change.end:
        return Missing("the depth was changed a moment ago")
    return Change(start, change.end)


def _measured(
    source: Source,
    change: Change | Missing,
    *,
    enabled: bool | None,
    live: LiveDepth | None = None,
) -> SpeculationInfo:
    drafts = _OFF if enabled is False else _delta(change, "drafts", source)
    positions = _positions(change, enabled=enabled, live=live)
    known = None if isinstance(positions, Missing) else len(positions)
    return SpeculationInfo(
        window_s=_window_s(source, change),
        source=source.name,
        age_s=source.age_s,
        mode=_mode(enabled),
        control="none",
        started_with=measured(known, "the engine does not tell") if enabled else _if_off(enabled),
        depth=_NOT_CONTROLLED if enabled is not False else _OFF,
        depth_max=measured(known, "the engine does not tell") if enabled else _if_off(enabled),
        method=_NOT_CONTROLLED if enabled is not False else _OFF,
        tokens_per_pass=tokens_per_pass(change),
        accepted_per_draft=_per_draft(change, drafts),
        acceptance_ratio=_acceptance(change, drafts),
        accepted_ratio_per_position=positions,
        drafts=drafts,
        tail_verdict=tail_verdict(drafts, positions),
        locked_reason=None,
        off_tokens_per_s_at_this_load=Missing("the engine does not tell its depth"),
    )


def _with_depth(info: SpeculationInfo, live: LiveDepth) -> SpeculationInfo:
    """The measured part, with what the engine's worker says of the depth."""
    return replace(
        info,
        control="live" if live.changeable else "restart",
        started_with=live.deepest,
        depth=live.tokens or _OFF,
        depth_max=live.deepest,
        method=live.method if live.tokens else _OFF,
    )


def _window_s(source: Source, change: Change | Missing) -> float:
    """What the figures span: less than the long window where the depth was changed within it."""
    whole_s = source.window_s(LONG_WINDOW_S)
    return whole_s if isinstance(change, Missing) else min(whole_s, round(change.span_s, 3))


def tokens_per_pass(change: Change | Missing) -> Figure:
    """Tokens that a sequence gets out of a pass, drafted or not, the verified token included."""
    if isinstance(change, Missing):
        return change
    return ratio(
        change.delta("generated_tokens"),
        change.delta("sequence_passes"),
        reason="no pass in the window",
    )


def _mode(enabled: bool | None) -> Literal["off", "on"] | Missing:
    if enabled is None:
        return Missing("the engine does not tell")
    return "on" if enabled else "off"


def _if_off(enabled: bool | None) -> Missing:
    return _OFF if enabled is False else Missing("the engine does not tell")


def _delta(change: Change | Missing, name: Literal["drafts"], source: Source) -> Figure:
    if isinstance(change, Missing):
        return change
    moved = change.delta(name)
    running = number(source.gauge("running"))
    if source.name.startswith("llamacpp") and number(moved) == 0 and running:
        return Missing("llama.cpp counts drafts when a request ends")
    return moved


def _per_draft(change: Change | Missing, drafts: Figure) -> Figure:
    if isinstance(change, Missing):
        return change
    return (
        ratio(change.delta("accepted_tokens"), drafts, reason="no drafts in the window")
        if (number(drafts) is not None)
        else drafts
    )


def _acceptance(change: Change | Missing, drafts: Figure) -> Figure:
    if isinstance(drafts, Missing):
        return drafts
    if isinstance(change, Missing):
        return change
    accepted, drafted = change.delta("accepted_tokens"), change.delta("draft_tokens")
    return ratio(accepted, drafted, reason="no drafts in the window")


def _positions(
    change: Change | Missing, *, enabled: bool | None, live: LiveDepth | None
) -> tuple[Figure, ...] | Missing:
    """Accepted at each position ÷ drafts long enough to propose it.

    Where only the total of drafts is known the quotient is exact if all were of full length, and
    else an estimate that is too low for the later positions.
    """
    if enabled is False:
        return _OFF
    if isinstance(change, Missing):
        return change
    after = change.end.accepted_per_position
    if after is None:
        return Missing("no drafts by position yet" if enabled else "the engine does not tell")
    if live is not None:
        after = after[: live.tokens]  # longer drafts are of another depth
    before = _padded(change.start.accepted_per_position, len(after))
    accepted = [end - start for end, start in zip(after, before, strict=True)]
    drafted, exact = _drafted(change, len(after))
    if drafted is None:
        return Missing("drafts are not counted")
    return tuple(
        _share(part, whole, exact=exact) for part, whole in zip(accepted, drafted, strict=True)
    )


def _drafted(change: Change, length: int) -> tuple[list[float] | None, bool]:
    """Drafts long enough for each position, and whether that is exact."""
    if (after := change.end.drafted_per_position) is not None:
        ends = _padded(after, length)
        starts = _padded(change.start.drafted_per_position, length)
        return [end - start for end, start in zip(ends, starts, strict=True)], True
    drafts = number(change.delta("drafts"))
    if drafts is None:
        return None, False
    tokens = number(change.delta("draft_tokens"))
    return [drafts] * length, tokens == drafts * length


def _padded(counts: tuple[float, ...] | None, length: int) -> tuple[float, ...]:
    return ((counts or ()) + (0.0,) * length)[:length]


def _share(part: float, whole: float, *, exact: bool) -> Figure:
    if isnan(part):
        return Missing("the engine's count is no number")
    if whole <= 0:
        return Missing("no draft of this length in the window")
    return part / whole if exact else Estimated(part / whole)


def tail_verdict(drafts: Figure, positions: tuple[Figure, ...] | Missing) -> Text:
    """What the last position says; whether deeper pays needs the measured pass time as well."""
    if isinstance(drafts, Missing):
        return drafts
    count = int(number(drafts) or 0)
    if not count:
        return Missing("no drafts in the window")
    if count < DRAFTS_FOR_A_VERDICT:
        return f"{count} draft{'s' if count != 1 else ''}: too few"
    if isinstance(positions, Missing):
        return positions
    last = number(positions[-1])
    if last is None:
        return Missing("no draft of full length in the window")
    return f"last position {last:.0%}".replace("%", " %")
