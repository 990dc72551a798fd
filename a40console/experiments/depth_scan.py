"""What depths of speculation bring: tokens a pass, time a pass, and whether deeper could pay. Pure.

The acceptance rate is no goal: what counts is tokens a pass against the time of a pass. The last
position's share bounds what a deeper draft can add, as no later position is accepted more often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from a40console.experiments.result_words import percent
from a40console.model.figures import Estimated, Figure, Missing, combine, number, ratio, total
from a40console.model.run_record import ArmEnd

DRAFTS_FOR_A_VERDICT = 100

_UNCOUNTED = "no pass was counted"


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthFigures:
    """One depth, alone in the engine, over all repeats."""

    depth: int
    tokens_per_s: Figure
    drafts: Figure
    acceptance: Figure
    """Accepted of what was drafted, 0 … 1."""

    tokens_per_pass: Figure
    """The verified token and passes without drafts included."""

    last_position: Figure
    """Share (0 … 1) of the drafts that were accepted to their end; ≈ where some were shorter."""

    @property
    def pass_s(self) -> Figure:
        """Seconds of a pass, the prompts' passes among them."""
        return ratio(self.tokens_per_pass, self.tokens_per_s, reason=_UNCOUNTED)

    @classmethod
    def of(cls, depth: int, tokens_per_s: Figure, ends: Sequence[ArmEnd]) -> DepthFigures:
        """From what the engine counted around the repeats."""
        drafts, accepted = summed(ends, "drafts"), summed(ends, "accepted_tokens")
        drafted = summed(ends, "drafted_tokens")
        last = ratio(summed(ends, f"accepted_tokens_at_{depth}"), drafts, reason="no drafts")
        whole = number(combine(lambda all_, one: float(all_ == one * depth), drafted, drafts))
        share = number(last)
        return cls(
            depth=depth,
            tokens_per_s=tokens_per_s,
            drafts=drafts,
            acceptance=ratio(accepted, drafted, reason="no drafts"),
            tokens_per_pass=tokens_per_pass(ends),
            last_position=last if whole or share is None else Estimated(share),
        )


def summed(ends: Sequence[ArmEnd], counter: str) -> Figure:
    """A counter's rise over all repeats; missing if it is in one of them."""
    missing = Missing("the engine does not count it")
    return total((end.server.get(counter, missing) for end in ends), reason="no repeat has ended")


def tokens_per_pass(ends: Sequence[ArmEnd]) -> Figure:
    """Tokens that the engine brought forth a pass; of one stream, that stream's."""
    return ratio(summed(ends, "generated_tokens"), summed(ends, "passes"), reason=_UNCOUNTED)


def tail_verdict(depths: Sequence[DepthFigures], at: int) -> str:
    """What the last position of a depth says.

    Args:
        depths: All that were measured of one kind of text, the shallowest first.
        at: Which of them.
    """
    one = depths[at]
    if isinstance(one.drafts, Missing):
        return one.drafts.reason
    count = int(number(one.drafts) or 0)
    if count < DRAFTS_FOR_A_VERDICT:
        return f"{count} draft{'s' if count != 1 else ''}: too few for a verdict"
    share = number(one.last_position)
    if share is None:
        return "the engine does not tell positions"
    told = f"last position {percent(share)}"
    if at + 1 < len(depths):
        return f"{told}; {_measured_deeper(one, depths[at + 1])}"
    return f"{told}; {_could_pay(one, depths[:at])}"


def _measured_deeper(one: DepthFigures, deeper: DepthFigures) -> str:
    gain = number(ratio(deeper.tokens_per_s, one.tokens_per_s))
    if gain is None:
        return f"{deeper.depth} was not measured"
    return f"{deeper.depth} is {gain:.2f} × this"


def _could_pay(deepest: DepthFigures, shallower: Sequence[DepthFigures]) -> str:
    """Whether twice as deep could be faster, at the very best: by means, which have no bounds."""
    growth_s = _growth_s(deepest, shallower)
    rate, per_pass = number(deepest.tokens_per_s), number(deepest.tokens_per_pass)
    pass_s, share = number(deepest.pass_s), number(deepest.last_position)
    if rate is None or per_pass is None or pass_s is None or share is None:
        return "passes are not counted: whether deeper pays is unknown"
    if growth_s is None:
        return "of one depth the rise in pass time is unknown, and so whether deeper pays"
    more = deepest.depth
    at_best = (per_pass + more * share) / (pass_s + more * growth_s)
    told = f"{2 * more} would yield {at_best:.0f} tok/s at the very best, by these means"
    return f"deeper hardly pays: {told}" if at_best <= rate else f"deeper may pay: {told}"


def _growth_s(deepest: DepthFigures, shallower: Sequence[DepthFigures]) -> float | None:
    """Seconds that one more drafted token adds to a pass, as measured."""
    for other in shallower:
        long_s, short_s = number(deepest.pass_s), number(other.pass_s)
        if long_s is not None and short_s is not None and deepest.depth > other.depth:
            return max(0.0, (long_s - short_s) / (deepest.depth - other.depth))
    return None
