"""What one session of an arm came to, turn by turn, and its score. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from a40console.experiments.planted import Fact
from a40console.model.figures import Figure, Missing, combine, number, total
from a40console.model.statistics import median, percentile

RECOVERED_SHARE = 0.05
"""A turn has recovered once all but this share of its prompt is cached, or the turn's own."""

NOISE_SHARE = 0.02
"""What a turn reads again below this share is what whole blocks leave out."""

LEAST_PLACES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLog:
    """One turn."""

    turn: int
    seconds: float
    """From its message to the end of its answer, a summary before it included."""

    ttft_s: Figure
    prompt_tokens: Figure
    cached_tokens: Figure
    generated_tokens: Figure
    """Of the answer; a summary's are not counted as work done."""

    new_tokens: float
    """Of the prompt that no request of the session held before."""

    own_tokens: float
    """Of its message and the answer before it: what a turn reads that shrinks nothing."""

    asked_tokens: int
    """How long the answer had to be."""

    shrank: bool
    summary_s: Figure = 0.0

    @property
    def reread_tokens(self) -> Figure:
        """What the session had sent before and the engine computed again."""

        def formula(prompt: float, cached: float) -> float:
            again = max(0.0, prompt - cached - self.new_tokens)
            return again if again >= prompt * NOISE_SHARE else 0.0

        return combine(formula, self.prompt_tokens, self.cached_tokens)

    @property
    def recovered(self) -> bool | None:
        """Whether the cache served it again; None where the engine does not tell."""
        prompt, cached = number(self.prompt_tokens), number(self.cached_tokens)
        if prompt is None or cached is None:
            return None
        return prompt - cached - self.own_tokens < prompt * RECOVERED_SHARE


@dataclass(frozen=True, slots=True)
class Recall:
    """A fact, and whether it was still there."""

    fact: Fact
    kept: bool
    """Whether it stood in what the model was given."""

    answered: bool
    """Whether the model was asked, and answered at all."""

    known: bool


@dataclass(slots=True, kw_only=True)
class SessionLog:
    """One session."""

    label: str
    """The arm, with the speculation setting where it is one of several."""

    setting: str
    repeat: int
    turns_asked: int
    turns: list[TurnLog] = field(default_factory=list)
    overflow: str = ""
    """Why it ended early: a turn that does not fit the window."""

    errors: list[str] = field(default_factory=list)
    recalls: list[Recall] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether it did the whole work: only then its seconds compare."""
        return not self.overflow and not self.errors and len(self.turns) == self.turns_asked

    @property
    def why_not(self) -> str:
        """Why it is not complete; empty where it is."""
        if self.overflow:
            return self.overflow
        if self.errors:
            return f"{len(self.errors)} of {self.turns_asked} turns failed: {self.errors[0]}"
        if len(self.turns) < self.turns_asked:
            return f"ended after {len(self.turns)} of {self.turns_asked} turns"
        return ""

    @property
    def wall_s(self) -> float:
        """Seconds of all its turns."""
        return sum(turn.seconds for turn in self.turns)

    @property
    def generated_tokens(self) -> Figure:
        """Of its answers, summaries not among them."""
        return total((turn.generated_tokens for turn in self.turns), reason="no turn was answered")

    @property
    def unequal_share(self) -> float:
        """How far its answers together are from the length that they had to have, as a share."""
        asked = sum(turn.asked_tokens for turn in self.turns)
        made = sum(number(turn.generated_tokens) or 0.0 for turn in self.turns)
        return abs(made - asked) / asked if asked else 0.0

    @property
    def tokens_per_s(self) -> Figure:
        """Sustained: answers over all seconds, summaries' seconds among them."""
        return combine(
            lambda tokens: tokens / self.wall_s if self.wall_s > 0 else None, self.generated_tokens
        )

    @property
    def reread_tokens(self) -> Figure:
        """Of all turns."""
        return total((turn.reread_tokens for turn in self.turns), reason="no turn was answered")

    @property
    def shrinks(self) -> int:
        """Turns in which the context was made smaller."""
        return sum(turn.shrank for turn in self.turns)

    @property
    def summary_s(self) -> Figure:
        """Seconds of its summaries, which are in `wall_s`."""
        return total((turn.summary_s for turn in self.turns), reason="no turn was answered")

    @property
    def turns_to_recover(self) -> Figure:
        """Turns from a shrink until the cache serves the prompt again, on average.

        The shrink's own turn counts: 1 is the least that a changed prompt can cost, and 0 that it
        cost nothing. Missing where it never recovers, as under pruning at every turn.
        """
        spans: list[int] = []
        open_ended = 0
        for at, turn in enumerate(self.turns):
            if not turn.shrank:
                continue
            span = self._span(at)
            if span is None:
                return Missing("the engine does not tell cached tokens")
            recovered, turns = span
            if recovered:
                spans.append(turns)
            else:
                open_ended += 1
        if not spans and not open_ended:
            return Missing("it never shrank")
        if open_ended > len(spans):
            return Missing("never before the next shrink or the end")
        return sum(spans) / len(spans)

    def _span(self, at: int) -> tuple[bool, int] | None:
        """Whether it recovered before the next shrink, and after how many turns."""
        for later, turn in enumerate(self.turns[at:]):
            if later and turn.shrank:
                return False, later
            back = turn.recovered
            if back is None:
                return None
            if back:
                return True, later
        return False, len(self.turns) - at


def pooled(logs: Sequence[SessionLog], of: Callable[[TurnLog], Figure]) -> list[float]:
    """A figure of every turn of several sessions, where it is known."""
    values = (number(of(turn)) for log in logs for turn in log.turns)
    return [value for value in values if value is not None]


def p95(values: Sequence[float]) -> Figure:
    """The 95th percentile of turns."""
    return percentile(values, 0.95, least=LEAST_PLACES)


def middle(figures: Sequence[Figure]) -> Figure:
    """The median of one figure a repeat; missing as the first one that is."""
    for figure in figures:
        if isinstance(figure, Missing):
            return figure
    return median([value for figure in figures if (value := number(figure)) is not None])
