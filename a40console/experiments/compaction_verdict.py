"""What follows from a compaction run: which way, by how much, and what it costs in recall. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from a40console.experiments.compaction_score import ArmScore, contrast, recall_is_judged
from a40console.model.figures import Missing, number
from a40console.model.run_result import Interval, Verdict, VerdictKind
from a40console.model.run_words import ratio_text
from a40console.model.statistics import Contrast

CLIENT_BUFFER_TOKENS = 13_000
"""Claude Code compacts so far before what it takes for its window, its answer's length apart."""

CLIENT_ANSWER_TOKENS = 8_192

_FASTER_IN_PAIRS = Missing("in the repeats that both completed it was the faster one")

_TURNS_OF_ITS_OWN = {
    "block": "an agent of one's own that drops its oldest messages at once, from high to low water",
    "per-turn": "an agent of one's own that drops its two oldest messages at every turn",
    "cc-clear": "Claude Code's clearing of old tool results, for which no setting is known here",
}


def verdict(
    scores: Sequence[ArmScore],
    *,
    turns: int,
    seed: int,
    window_tokens: int | Missing,
    scaled: bool,
) -> Verdict:
    """The verdict over all arms; with speculation measured apart, one for each setting.

    Args:
        scores: Every arm.
        turns: Of a session.
        seed: Of the resampling.
        window_tokens: Of the engine.
        scaled: Whether thresholds are other than real ones: no client can be told them.
    """
    settings = list(dict.fromkeys(score.setting for score in scores))
    each = {
        setting: _of_setting([score for score in scores if score.setting == setting], turns, seed)
        for setting in settings
    }
    if not each:
        return Verdict(kind="none", text="No session was run.")
    best = min(settings, key=lambda setting: _fastest_s(scores, setting))
    text = each[best].text
    if len(settings) > 1:
        text = " ".join(f"Speculation {setting}: {found.text}" for setting, found in each.items())
    paste, told = "", ""
    if each[best].kind != "none" and not scaled:
        paste, told = _client_line([s for s in scores if s.setting == best], window_tokens)
    return Verdict(
        kind=each[best].kind,
        text=f"{text} {told}".strip(),
        winner=each[best].winner,
        ratio=each[best].ratio,
        paste=paste,
    )


def _of_setting(scores: Sequence[ArmScore], turns: int, seed: int) -> Verdict:
    ways = [score for score in scores if score.arm.way != "none"]
    ranked = sorted((s for s in ways if s.complete), key=lambda s: number(s.wall_s) or 0.0)
    left_out = [f"{s.label}: {s.why_not}." for s in ways if not s.complete and s.why_not]
    if len(ranked) < 2:
        why = "Fewer than two ways did all the work." if len(ways) > 1 else "There is one way only."
        return Verdict(kind="none", text=" ".join([why, *left_out]))
    first, *others = ranked
    found = {other.label: _slower(first, other, seed) for other in others}
    parts = [_first_sentence(first, found, turns)]
    kind = _kind(found)
    if kind != "none":
        parts += [_ceiling_sentence(first, scores, seed), _recall_sentence(first, scores)]
    nearest = next(each for each in found.values() if each.kind == kind)
    return Verdict(
        kind=kind,
        text=" ".join(part for part in [*parts, *left_out] if part),
        winner=first.label if kind == "difference" else "",
        ratio=nearest.ratio,
    )


def _slower(first: ArmScore, other: ArmScore, seed: int) -> Contrast:
    """The contrast; none where the pairs say the contrary of each one's own sessions."""
    found = contrast(first, other, seed)
    if isinstance(found.ratio, Interval) and found.ratio.high < 1:
        return Contrast(kind="none", ratio=_FASTER_IN_PAIRS)
    return found


def _kind(found: Mapping[str, Contrast]) -> VerdictKind:
    """A difference only where every other way differs: the third may be as fast."""
    kinds = {each.kind for each in found.values()}
    if "no difference" in kinds:
        return "no difference"
    return "none" if "none" in kinds else "difference"


def _first_sentence(first: ArmScore, found: Mapping[str, Contrast], turns: int) -> str:
    alike = [label for label, each in found.items() if each.kind == "no difference"]
    told = ", ".join(f"{label} {_span(each)}" for label, each in found.items() if each.differs)
    untold = [label for label, each in found.items() if each.kind == "none"]
    slower = f" Beyond noise slower, times as long: {told}." if told else ""
    why = _reason(found[untold[0]]) if untold else ""
    if alike:
        said = (
            f"No difference beyond noise between {' and '.join([first.label, *alike])} "
            f"({alike[0]} takes {_span(found[alike[0]])} as long).{slower}"
        )
        return f"{said} Not to be compared: {', '.join(untold)} ({why})." if untold else said
    if untold:
        return (
            f"No verdict, as {' and '.join(untold)} cannot be compared: {why}. {first.label} was "
            f"fastest, with {number(first.wall_s) or 0:,.1f} s for {turns} turns.{slower}"
        )
    return f"{first.label} does the same {turns} turns in least time. Times as long: {told}."


def _ceiling_sentence(first: ArmScore, scores: Sequence[ArmScore], seed: int) -> str:
    """How the session fares that is never made smaller, where the window holds it."""
    whole = next((score for score in scores if score.arm.way == "none" and score.complete), None)
    if whole is None:
        return ""
    found = contrast(first, whole, seed)
    if found.kind == "none":
        return ""
    said = "" if found.differs else ", no difference beyond noise"
    return f"Without any shrinking it takes {_span(found)} as long{said}."


def _recall_sentence(first: ArmScore, scores: Sequence[ArmScore]) -> str:
    """How many facts the fastest keeps, and who kept the greatest share; so few prove no more."""
    kept = first.kept()
    if not kept.of:
        return ""
    most = max(scores, key=_kept_share)
    text = f"{first.label} keeps {kept} planted facts in the context"
    text += f" and answers {first.known()}" if recall_is_judged(scores) else ""
    if _kept_share(most) <= _kept_share(first):
        return f"{text}."
    return f"{text}; {most.label} keeps {most.kept()}."


def _kept_share(score: ArmScore) -> float:
    """0 … 1, and below all of them where nothing was asked."""
    share = number(score.kept().share)
    return -1.0 if share is None else share


def _client_line(scores: Sequence[ArmScore], window_tokens: int | Missing) -> tuple[str, str]:
    """The line for Claude Code, and what is to be said of it."""
    ways = [s for s in scores if s.complete and s.arm.way != "none"]
    fastest = min(ways, key=lambda s: number(s.wall_s) or 0.0)
    own = _TURNS_OF_ITS_OWN.get(fastest.arm.way, "")
    told = f"{fastest.label} is {own}." if own else ""
    settable = [s for s in ways if s.arm.way == "cc-auto"]
    if not settable:
        return "", told
    best = min(settable, key=lambda s: number(s.wall_s) or 0.0)
    believed = best.arm.limit_tokens + CLIENT_BUFFER_TOKENS + CLIENT_ANSWER_TOKENS
    if not isinstance(window_tokens, Missing) and believed > window_tokens:
        at = max(0, window_tokens - CLIENT_BUFFER_TOKENS - CLIENT_ANSWER_TOKENS)
        return "", (
            f"{told} Claude Code cannot be told to compact at {best.arm.limit_tokens:,} tokens in "
            f"a window of {window_tokens:,}: it does so at {at:,} at the latest."
        ).strip()
    line = (
        f"CLAUDE_CODE_MAX_CONTEXT_TOKENS={believed} "
        f"CLAUDE_CODE_MAX_OUTPUT_TOKENS={CLIENT_ANSWER_TOKENS}"
    )
    return line, f"{told} The line has Claude Code do as {best.label}.".strip()


def _fastest_s(scores: Sequence[ArmScore], setting: str) -> float:
    walls = [
        wall
        for score in scores
        if score.setting == setting and score.arm.way != "none"
        if (wall := number(score.wall_s)) is not None
    ]
    return min(walls, default=float("inf"))


def _span(found: Contrast) -> str:
    return ratio_text(found.ratio) if isinstance(found.ratio, Interval) else "–"


def _reason(found: Contrast) -> str:
    return found.ratio.reason if isinstance(found.ratio, Missing) else "too few repeats"
