"""Which arms the comparison of speculation settings has, as the engine allows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from a40console.experiments.settled_values import whole, wholes, words, yes
from a40console.model.experiment import Value
from a40console.model.figures import Missing

Regime: TypeAlias = Literal["prose", "code-edit"]

OFF, OFF_LIVE, AS_IS = "off", "off-live", "as-is"
_SETTINGS = {
    OFF: "an engine started without",
    OFF_LIVE: "turned off as it runs",
    AS_IS: "whatever is in force",
}
_NOT_LIVE = "this engine's speculation cannot be turned as it runs"
_STARTED_WITHOUT = "the engine was started without speculation"
NOTHING_TO_COMPARE = (
    f"{_STARTED_WITHOUT}: there is nothing to compare; start it from a profile with "
    '`[speculation] enabled = true`, or `start = "off"` for one that is ready and off'
)
_PROFILE_WITHOUT = "[speculation]  # in its profile: from the next start on\nenabled = false"


@dataclass(frozen=True, slots=True)
class Setting:
    """One way of speculating."""

    name: str
    """`off`: started without; `off-live`; `on-24`; `as-is`: whatever is in force."""

    depth: int = 0

    @property
    def drafts(self) -> bool:
        """Whether tokens are to be drafted."""
        return self.depth > 0

    @property
    def drafts_nothing(self) -> bool:
        """Whether no token may be drafted."""
        return self.name in {OFF, OFF_LIVE}

    @property
    def told(self) -> str:
        """Its name with what it is."""
        what = _SETTINGS.get(self.name) or f"{self.depth} drafted tokens a pass"
        return f"{self.name} ({what})"

    @property
    def live(self) -> str:
        """What the engine is told; empty where it is told nothing."""
        if self.name == OFF_LIVE:
            return "off"
        return str(self.depth) if self.drafts else ""


def line_for(setting: str) -> str:
    """What is pasted to have a setting, by its name; empty for one that is had without."""
    if setting.startswith("on-"):
        return f"a40console engine speculation {setting.removeprefix('on-')}"
    if setting == OFF:  # turned off as it runs is another setting
        return _PROFILE_WITHOUT
    return "a40console engine speculation off" if setting == OFF_LIVE else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """What is measured, and what is not for a reason."""

    live: tuple[Setting, ...]
    """Of the engine as it runs, taken in turns."""

    restart: bool
    """Whether an engine started without is measured between them."""

    skipped: dict[str, str] = field(default_factory=dict)
    """Settings that were asked for, with why they cannot be had."""

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All of them, the one without speculation first."""
        return (Setting(OFF), *self.live) if self.restart else self.live


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What settings are compared within."""

    regime: str
    streams: int

    def __str__(self) -> str:
        plural = "" if self.streams == 1 else "s"
        return f"{self.regime}, {self.streams} stream{plural}"

    def arm(self, setting: Setting) -> str:
        """The arm of a setting."""
        return f"{self} · {setting.name}"


def groups(settled: Mapping[str, Value]) -> Iterator[Group]:
    """Every kind of text at every number of streams."""
    for regime in words(settled, "regimes"):
        for streams in wholes(settled, "streams"):
            yield Group(regime=regime, streams=streams)


def arrange(
    settled: Mapping[str, Value], deepest: int | Missing, *, live: bool = True
) -> Arrangement:
    """The arms of an engine.

    Args:
        settled: The run's parameters.
        deepest: Draft tokens that the engine was started for; 0 without; missing where it is not
            ours to steer.
        live: Whether they can be changed as it runs, as far as is known.
    """
    wanted = words(settled, "settings")
    if isinstance(deepest, Missing):
        skipped = dict.fromkeys(wanted, deepest.reason)
        return Arrangement(live=(Setting(AS_IS),), restart=False, skipped=skipped)
    if deepest == 0:
        skipped = {name: _STARTED_WITHOUT for name in wanted if name != OFF}
        return Arrangement(live=(Setting(OFF),), restart=False, skipped=skipped)
    if not live:
        skipped = {name: _NOT_LIVE for name in wanted if name != OFF}
        return Arrangement(live=(Setting(AS_IS),), restart=OFF in wanted, skipped=skipped)
    turned = [Setting(OFF_LIVE)] if OFF_LIVE in wanted else []
    too_deep: dict[str, str] = {}
    for depth in _depths(settled, deepest) if "on" in wanted else ():
        setting = Setting(f"on-{depth}", depth)
        if depth > deepest:
            too_deep[setting.name] = f"the engine was started for {deepest} at the most"
        else:
            turned.append(setting)
    return Arrangement(live=tuple(turned), restart=OFF in wanted, skipped=too_deep)


def schedule(arrangement: Arrangement, repeats: int) -> tuple[range, range]:
    """The live settings' repeats before and after those of the engine started without.

    Half of them on either side: what drifts in one direction then cancels out.
    """
    before = (repeats + 1) // 2 if arrangement.restart else repeats
    return range(before), range(before, repeats)


def loads_of(settled: Mapping[str, Value]) -> int:
    """Requests of one setting in one repeat, over all groups."""
    each = whole(settled, "requests") + 1
    return sum(group.streams * each for group in groups(settled))


def _depths(settled: Mapping[str, Value], deepest: int) -> list[int]:
    asked = {depth or deepest for depth in wholes(settled, "depths")}
    if yes(settled, "scan"):
        asked |= {depth for depth in (deepest // 2, deepest // 4) if depth > 0}
    return sorted(asked)
