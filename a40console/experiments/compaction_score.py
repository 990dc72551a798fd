"""The arms of a compaction run, each with its sessions, and how two of them compare. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log

from a40console.experiments.compaction_offer import Arm
from a40console.experiments.planted import Fact
from a40console.experiments.session_log import Recall, SessionLog
from a40console.model.figures import Figure, Missing
from a40console.model.run_result import Interval
from a40console.model.statistics import Contrast, difference, interval

AGES = ("oldest third", "middle third", "newest third")
NO_WHOLE_SESSION = Missing("no whole session")
CEILING_LEAST = 0.5
"""Share of the facts that a model must know with all of them before it, or it is no judge."""


@dataclass(frozen=True, slots=True)
class Counted:
    """So many of so many facts."""

    yes: int
    of: int

    @property
    def share(self) -> Figure:
        """0 … 1."""
        return self.yes / self.of if self.of else Missing("no fact was asked for")

    def __str__(self) -> str:
        return f"{self.yes} of {self.of}" if self.of else "–"


@dataclass(frozen=True, slots=True)
class ArmScore:
    """One arm under one speculation setting."""

    label: str
    arm: Arm
    setting: str
    logs: Sequence[SessionLog]

    @property
    def complete(self) -> list[SessionLog]:
        """The sessions that did all the work."""
        return [each for each in self.logs if each.complete]

    @property
    def walls_s(self) -> Mapping[int, float]:
        """Seconds of each complete session, by repeat."""
        return {each.repeat: each.wall_s for each in self.complete}

    @property
    def wall_s(self) -> Figure:
        """Their geometric mean: what ratios of arms are of."""
        walls = [wall for wall in self.walls_s.values() if wall > 0]
        if not walls:
            return NO_WHOLE_SESSION
        return exp(sum(map(log, walls)) / len(walls))

    @property
    def wall_interval(self) -> Interval | Missing:
        """Of that mean: in proportions, as no session takes less than no time."""
        walls = [wall for wall in self.walls_s.values() if wall > 0]
        if not walls:
            return NO_WHOLE_SESSION
        found = interval(list(map(log, walls)))
        if isinstance(found, Missing):
            return found
        value, low, high = map(exp, (found.value, found.low, found.high))
        return replace(found, value=value, low=low, high=high)

    @property
    def why_not(self) -> str:
        """Why a session of it is not complete; empty where all are."""
        return next((each.why_not for each in self.logs if not each.complete), "")

    @property
    def recalls(self) -> list[Recall]:
        """Of all its sessions."""
        return [recall for each in self.logs for recall in each.recalls if recall.answered]

    def known(self, chosen: Callable[[Fact], bool] = lambda _: True) -> Counted:
        """Facts that the model answered rightly."""
        listed = [each for each in self.recalls if chosen(each.fact)]
        return Counted(sum(each.known for each in listed), len(listed))

    def kept(self, chosen: Callable[[Fact], bool] = lambda _: True) -> Counted:
        """Facts that stood in what the model was given."""
        listed = [each for each in self.recalls if chosen(each.fact)]
        return Counted(sum(each.kept for each in listed), len(listed))


def contrast(left: ArmScore, right: ArmScore, seed: int) -> Contrast:
    """Seconds of the right arm over the left one's, over the repeats that both completed."""
    return difference(left.walls_s, right.walls_s, seed=seed)


def age_of(fact: Fact, turns: int) -> str:
    """Which third of the session it was said in, as seen from its end."""
    return AGES[min(len(AGES) - 1, (fact.turn - 1) * len(AGES) // max(turns, 1))]


def recall_is_judged(scores: Sequence[ArmScore]) -> bool:
    """Whether the model's answers say anything of an arm.

    A model that misses facts which stand before it says nothing of those that do not.
    """
    present = [each for score in scores for each in score.recalls if each.kept]
    return sum(each.known for each in present) >= CEILING_LEAST * len(present)


def no_recall(*, simulated: bool) -> str:
    """What is said where recall is not judged."""
    which = "simulated model" if simulated else "model"
    return f"The {which} cannot recall even what stands before it, so recall is not judged"
