"""What the compaction experiment is asked with, and which arms come of it in a window. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from a40console.experiments.session_lengths import (
    REAL_THRESHOLD_TOKENS,
    SHIPPED_TURNS,
    Lengths,
    read_lengths,
    shipped,
)
from a40console.experiments.settled_values import whole, wholes, word, words, yes
from a40console.experiments.shrinking import WAYS, Shrinking, Way, way_of
from a40console.model.experiment import Experiment, Parameter, Value
from a40console.model.figures import Missing

AS_IS = "as-is"
LEAST_WINDOW_TOKENS = 512
FITTING_SHARE = 0.75
"""A threshold may take so much of the window: what a turn and a summary add needs the rest."""

SCALED_SHARE = 0.7
"""What a threshold becomes that the window does not allow."""

LOW_WATER = 0.5
"""The seeds' block compaction went from 35k to 19k tokens beside a short system prompt."""

LONGEST_LENGTHS = 20_000

OFFER = Experiment(
    name="compaction",
    title="Ways of keeping the context small",
    question="Which way of keeping a session's context small does the same work in least time?",
    parameters=(
        Parameter(
            name="ways",
            kind="choices",
            help="the arms: the client's own ways, an own agent's, and none as the ceiling",
            default=tuple(WAYS),
            choices=tuple(WAYS),
        ),
        Parameter(
            name="thresholds",
            kind="wholes",
            help="contexts past which an arm shrinks, as far as the window allows them",
            default=(REAL_THRESHOLD_TOKENS,),
            presets={"quick": (16_000,), "full": (REAL_THRESHOLD_TOKENS, 96_000)},
            least=128,
            most=4_000_000,
            unit="tokens",
        ),
        Parameter(
            name="turns",
            kind="whole",
            help="turns of the shipped session",
            default=SHIPPED_TURNS,
            presets={"quick": 80},
            least=4,
            most=1_000,
        ),
        Parameter(
            name="repeats",
            kind="whole",
            help="whole sessions of each arm, in rotated order",
            default=3,
            presets={"quick": 1, "full": 5},
            least=1,
            most=50,
        ),
        Parameter(
            name="facts",
            kind="whole",
            help="facts planted in the session and asked for after its end; 0 for none",
            default=12,
            presets={"quick": 4},
            least=0,
            most=64,
        ),
        Parameter(
            name="speculation",
            kind="choices",
            help="settings that are measured apart, each with all arms",
            default=(AS_IS,),
            presets={"full": ("off", "on")},
            choices=(AS_IS, "off", "on"),
        ),
        Parameter(
            name="low_water",
            kind="number",
            help="share of the room beside the system prompt to which block goes down",
            default=LOW_WATER,
            least=0.05,
            most=0.95,
        ),
        Parameter(
            name="reset_cache",
            kind="yes",
            help="empty the engine's prefix cache before each session, where it can be",
            default=True,
        ),
        Parameter(
            name="session",
            kind="text",
            help="id of an own session whose lengths are taken, never its text",
            default="",
        ),
        Parameter(
            name="lengths",
            kind="text",
            help="tokens of a session, SYSTEM;GIVEN/ANSWER,...: 2400;330/700*120",
            default="",
            longest=LONGEST_LENGTHS,
        ),
    ),
    presets={
        "quick": "one session an arm at a third of the real lengths: a look, no verdict",
        "standard": "three sessions an arm of 120 turns at 48,000 tokens: a verdict",
        "full": "five sessions an arm, at 48,000 and 96,000 tokens, speculation off and on apart",
    },
)


class ImpossibleError(ValueError):
    """The experiment cannot be run so; the text is for the operator."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way with its limit."""

    name: str
    way: Way
    limit_tokens: int
    """0 for `none`."""

    def shrinking(self, low_water: float) -> Shrinking:
        """Its policy."""
        return way_of(self.way, self.limit_tokens, low_water)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Everything that is fixed before the first request."""

    arms: tuple[Arm, ...]
    lengths: Lengths
    repeats: int
    facts: int
    speculation: tuple[str, ...]
    low_water: float
    reset_cache: bool
    scaled: bool
    """Whether the thresholds are other than they were asked, because of the window."""

    notes: tuple[str, ...]
    """What is other than it was asked for, and why."""

    def label(self, arm: Arm, setting: str) -> str:
        """What an arm is called where speculation is measured apart."""
        return arm.name if len(self.speculation) == 1 else f"{arm.name} spec {setting}"


def conditions(
    settled: Mapping[str, Value], window_tokens: int | Missing, depth: int | Missing
) -> Conditions:
    """The arms and lengths that fit the engine.

    Args:
        settled: The parameters in force.
        window_tokens: What a request may hold.
        depth: The deepest speculation that the engine was started for.

    Raises:
        ImpossibleError: Where nothing sensible fits.
    """
    limits, notes = _limits(wholes(settled, "thresholds"), window_tokens)
    lengths, scaled = _lengths(settled, limits, fitted=bool(notes))
    ways = [way for way in WAYS if way in words(settled, "ways")]
    arms = [
        Arm(f"{way}-{short_tokens(limit)}", way, limit)
        for limit in limits
        for way in ways
        if way != "none"
    ]
    arms += [Arm("none", "none", 0)] if "none" in ways else []
    tightest = min(limits)
    if tightest < lengths.system * 1.25:
        raise ImpossibleError(
            f"a threshold of {tightest:,} tokens leaves no room beside a system prompt of "
            f"{lengths.system:,}: choose a higher one, or lengths with a shorter prompt"
        )
    speculation, told = _speculation(words(settled, "speculation"), depth)
    low_water = settled["low_water"]
    return Conditions(
        arms=tuple(arms),
        lengths=lengths,
        repeats=whole(settled, "repeats"),
        facts=whole(settled, "facts"),
        speculation=speculation,
        low_water=float(low_water) if isinstance(low_water, int | float) else LOW_WATER,
        reset_cache=yes(settled, "reset_cache"),
        scaled=not set(limits) <= set(wholes(settled, "thresholds")),
        notes=(*notes, *scaled, *told),
    )


def short_tokens(tokens: int) -> str:
    """`48k`, `1.4k`, `900`."""
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1000:.1f}".removesuffix(".0") + "k"


def _speculation(asked: tuple[str, ...], depth: int | Missing) -> tuple[tuple[str, ...], list[str]]:
    if asked == (AS_IS,):
        return asked, []
    if AS_IS in asked:
        raise ImpossibleError("speculation is as-is alone, or what it is turned to: off,on")
    if isinstance(depth, Missing):
        return (AS_IS,), [f"speculation is measured as it is: {depth.reason}"]
    if depth == 0:
        return (AS_IS,), ["speculation is measured as it is: the engine was started without"]
    if "off" in asked:
        return asked, ["speculation off is turned off live: the engine stays as it was started"]
    return asked, []


def _limits(asked: Sequence[int], window_tokens: int | Missing) -> tuple[list[int], list[str]]:
    limits = sorted(asked)
    if isinstance(window_tokens, Missing):
        return limits, [f"the window is not known ({window_tokens.reason}): thresholds as asked"]
    if window_tokens < LEAST_WINDOW_TOKENS:
        raise ImpossibleError(
            f"a window of {window_tokens:,} tokens holds no session: {LEAST_WINDOW_TOKENS:,} "
            "are the least"
        )
    fitting = [limit for limit in limits if limit <= window_tokens * FITTING_SHARE]
    if fitting == limits:
        return limits, []
    left_out = ", ".join(f"{limit:,}" for limit in limits if limit not in fitting)
    if fitting:
        return fitting, [f"no arm at {left_out} tokens: the window holds {window_tokens:,}"]
    scaled = int(window_tokens * SCALED_SHARE)
    note = f"the window of {window_tokens:,} tokens allows no threshold of {left_out}: {scaled:,}"
    return [scaled], [note]


def _lengths(
    settled: Mapping[str, Value], limits: list[int], *, fitted: bool
) -> tuple[Lengths, list[str]]:
    written, session = word(settled, "lengths"), word(settled, "session")
    if session and not written:
        raise ImpossibleError(f"the lengths of session {session} are not known")
    if written:
        try:
            lengths = read_lengths(written)
        except ValueError as error:
            raise ImpossibleError(str(error)) from error
        factor = min(1.0, min(limits) / min(wholes(settled, "thresholds"))) if fitted else 1.0
    else:
        lengths = shipped(whole(settled, "turns"))
        factor = min(1.0, min(limits) / REAL_THRESHOLD_TOKENS)
    if factor == 1.0:
        return lengths, []
    return lengths.scaled(factor), [
        f"all lengths are {factor:.3f} of the real ones, in proportion to the threshold"
    ]
