"""Whether speculation changed an answer, and whether that is rounding or damage. Pure.

Rejection sampling is lossless but for rounding: a pass over several drafted tokens adds up its
numbers in another order, and where two tokens are as good as equally likely the other one may win.
Any other difference is a draft that was accepted and should not have been.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, TypeAlias

from a40console.experiments.bench import Reply
from a40console.model.figures import Estimated, Figure, Missing, number

NEAR_TIE_NATS = 0.25
"""bf16 keeps logits between 16 and 32 in steps of 0.125: two of them may be lost on the way."""

DAMAGE_NATS = 0.5
"""Above 32 the steps are 0.25: up to two of them a gap is neither rounding for sure nor damage."""

_FLOAT_NATS = 0.001
"""What is lost in a gap itself: logarithms of 32 bits, written down in digits."""

LONGEST_FRAGMENT = 80
SHORTEST_FRAGMENT = 2
GOES_ON_CHARACTERS = 12
"""So much of the right answer after a fragment is no accident."""

CONTEXT_CHARACTERS = 40

Kind: TypeAlias = Literal["exact", "near-tie", "corrupt", "unsteady", "unexplained"]

SEVERITY: tuple[Kind, ...] = ("exact", "near-tie", "unsteady", "unexplained", "corrupt")

NO_LOGPROBS = Missing("the engine tells no logprobs of the place")
_SAME = Missing("the same to the end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One probe, with speculation against without."""

    probe: str
    kind: Kind
    """`unsteady`: it differs from itself without speculation too; `unexplained`: it differs, and
    nothing tells whether that is rounding."""

    same_characters: int
    gap_nats: Figure
    """How much likelier the token without speculation was there, by the engine without it."""

    fragment: str = ""
    """What had just been written and came out again where the answers part."""

    why: str = ""
    """Why nothing follows of one that is `unsteady` or `unexplained`."""

    excerpt: str = ""
    """Where they part."""


def compare(
    probe: str, prompt: str, without: Reply, again: Reply | None, speculated: Reply
) -> Compared:
    """One answer with speculation against two without.

    Args:
        probe: Its name.
        prompt: What was to be gone on with.
        without: The answer without speculation.
        again: The same once more: whether the engine agrees with itself; None: not answered.
        speculated: The answer with it.
    """
    at = _parting(without.text, speculated.text)
    if at is None:
        return Compared(
            probe=probe, kind="exact", same_characters=len(without.text), gap_nats=_SAME
        )
    gap = gap_nats(without, speculated, at)
    fragment = spliced(prompt, without.text, speculated.text, at)
    steady = None if again is None else without.text == again.text
    kind, why = _judged(gap, fragment, steady=steady)
    return Compared(
        probe=probe,
        kind=kind,
        same_characters=at,
        gap_nats=gap,
        fragment=fragment,
        why=why,
        excerpt=_excerpt(probe, without.text, speculated.text, at, fragment),
    )


def gap_nats(without: Reply, speculated: Reply, at: int) -> Figure:
    """How far the token that speculation chose lay below the other one, where they first part.

    Both by the engine without speculation; ≈, as a least value, where the token was not even
    among the likeliest that it told. Tokens are found by their place in the text: an engine that
    drafts may tell logprobs of some tokens only.

    Args:
        without: The answer without speculation, with its logprobs.
        speculated: The answer with it.
        at: The character at which the two part.
    """
    steps = without.logprobs
    texts = [str(step["token"]) for step in steps]
    if not steps or not "".join(texts).startswith(without.text[: at + 1]):
        return NO_LOGPROBS
    ends = list(accumulate(map(len, texts)))
    index = next((place for place, end in enumerate(ends) if end > at), None)
    if index is None:
        return Missing("one answer ends where the other goes on")
    begin = ends[index] - len(texts[index])
    gaps = _gaps(steps[index], speculated.text[begin:])
    if index:  # one token may stand for the end of the one before and more
        before = begin - len(texts[index - 1])
        gaps += _gaps(steps[index - 1], speculated.text[before:], least=at - before + 1)
    if gaps:
        return min(gaps)
    likeliest = [float(each["logprob"]) for each in steps[index]["top_logprobs"] or ()]
    if not likeliest:
        return NO_LOGPROBS
    return Estimated(float(steps[index]["logprob"]) - min(likeliest))


def _gaps(step: Mapping[str, Any], text: str, least: int = 1) -> list[float]:
    """How far below the chosen token those stood that a text goes on with, in nats."""
    return [
        float(step["logprob"]) - float(each["logprob"])
        for each in step["top_logprobs"] or ()
        if each["token"] != step["token"]
        and len(each["token"]) >= least
        and text.startswith(each["token"])
    ]


def spliced(prompt: str, without: str, speculated: str, at: int) -> str:
    """The fragment that came out again in the wrong place; empty where none did.

    It begins where the answers part and stood there before. After it the answer goes on as the
    one without speculation does, or it ends as what stands before it ends: then the model was
    thrown back, and goes on from there a second time.

    Args:
        prompt: What stands before the answers.
        without: The answer without speculation.
        speculated: The answer with it.
        at: Where the two part.
    """
    before = prompt + speculated[:at]
    for length in range(SHORTEST_FRAGMENT, min(LONGEST_FRAGMENT, len(speculated) - at) + 1):
        fragment = speculated[at : at + length]
        if fragment not in before:
            return ""  # nor is a longer one
        if fragment.strip() and _goes_on(before, without[at:], speculated[at:], length):
            return fragment
    return ""


def _goes_on(before: str, without: str, speculated: str, length: int) -> bool:
    """Whether what follows a fragment of that length shows that it was put in."""
    rest = speculated[length : length + GOES_ON_CHARACTERS]
    if len(rest) == GOES_ON_CHARACTERS and without.startswith(rest):
        return True
    tail = speculated[max(0, length - 4) : length]
    return bool(tail.strip()) and before.endswith(tail)


def _judged(gap: Figure, fragment: str, *, steady: bool | None) -> tuple[Kind, str]:
    """What the difference is, and why nothing follows of it where nothing does.

    A wide gap proves damage only where the engine is else steady.
    """
    nats = number(gap)
    least = isinstance(gap, Estimated)  # a least value proves no near-tie
    if nats is not None and not least and nats <= NEAR_TIE_NATS + _FLOAT_NATS:
        return "near-tie", ""
    wide = nats is not None and nats > DAMAGE_NATS + _FLOAT_NATS
    if fragment or (wide and steady):
        return "corrupt", ""
    if steady is False:
        return "unsteady", "the engine differs from itself there without speculation too"
    if isinstance(gap, Missing):
        return "unexplained", gap.reason
    if wide:
        return "unexplained", "only one answer without speculation tells what is steady there"
    if least:
        return "unexplained", "the token is not among the likeliest that the engine tells"
    return "unexplained", (
        f"a gap between {NEAR_TIE_NATS:g} and {DAMAGE_NATS:g} nats may be rounding or not"
    )


def _parting(left: str, right: str) -> int | None:
    """Where two texts part; None where they are the same."""
    if left == right:
        return None
    shorter = min(len(left), len(right))
    return next((at for at in range(shorter) if left[at] != right[at]), shorter)


def _excerpt(probe: str, without: str, speculated: str, at: int, fragment: str) -> str:
    lead = speculated[max(0, at - CONTEXT_CHARACTERS) : at]
    lines = [
        f"{probe}, after {lead!r}",
        f"  without: {without[at : at + CONTEXT_CHARACTERS]!r}",
        f"  with:    {speculated[at : at + CONTEXT_CHARACTERS]!r}",
    ]
    if fragment:
        lines.append(f"  {fragment!r} came out again")
    return "\n".join(lines)
