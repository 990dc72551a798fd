"""Speculation settings against each other, on prose and on code edits, at so many streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from a40console.experiments.asking import Asking, settle_asking, warm
from a40console.experiments.bench import ArmFailedError, ArmRepeat, Bench, Known, RunStoppedError
from a40console.experiments.costs import dollars, load_seconds, sum_of, window_refusal
from a40console.experiments.loads import Load, run_load
from a40console.experiments.offers import REGIMES
from a40console.experiments.prompts import (
    FILE_TOKENS_PER_OUTPUT_TOKEN,
    PROSE_TEMPERATURE,
    code_edit,
    prose,
)
from a40console.experiments.regime_arms import (
    AS_IS,
    NOTHING_TO_COMPARE,
    OFF,
    Arrangement,
    Group,
    Setting,
    arrange,
    groups,
    loads_of,
    schedule,
)
from a40console.experiments.regime_result import conclude
from a40console.experiments.repeats import rotated
from a40console.experiments.settled_values import whole
from a40console.model.experiment import Experiment, Value
from a40console.model.figures import Missing
from a40console.model.run import RunPlan, RunTarget
from a40console.model.run_result import Doubt, RunResult

_PROSE_PROMPT_TOKENS = 60


class Regimes:
    """Speculation by regime."""

    offer: Experiment = REGIMES

    def __init__(self) -> None:
        self._arranged = Arrangement(live=(), restart=False)
        self._skipped: dict[str, str] = {}
        self._done = 0
        self._cut: ArmRepeat | None = None

    def plan(self, settled: Mapping[str, Value], known: Known, target: RunTarget) -> RunPlan:
        """An arm for each setting in each group; the one without speculation takes restarts."""
        arranged = arrange(settled, known.speculation_depth, live=known.live_speculation)
        repeats, output = whole(settled, "repeats"), whole(settled, "output_tokens")
        settings = arranged.settings
        prompt = int(output * FILE_TOKENS_PER_OUTPUT_TOKEN)
        seconds = sum_of(
            load_seconds(
                known,
                streams=group.streams,
                requests=group.streams * (whole(settled, "requests") + 1) * repeats * len(settings),
                prompt_tokens=prompt if group.regime == "code-edit" else _PROSE_PROMPT_TOKENS,
                output_tokens=output,
            )
            for group in groups(settled)
        )
        return RunPlan(
            arms=tuple(group.arm(setting) for group in groups(settled) for setting in settings),
            requests=loads_of(settled) * repeats * len(settings),
            seconds=seconds,
            usd=dollars(seconds, known.usd_per_h),
            intrusion="restarts" if arranged.restart else "shares",
            consequences=_consequences(arranged),
            refusal=window_refusal(prompt, output, known.window_tokens)
            or _lone(arranged, known.speculation_depth),
        )

    async def run(self, bench: Bench) -> RunResult:
        """Every live setting in turns, and the engine started without in their midst.

        Raises:
            ArmFailedError: Where the target answers nothing.
            RunStoppedError: Where the run is to end, or the target answers no more.
        """
        self._done = 0
        self._arranged = arrange(bench.settled, await bench.engine.speculation_depth())
        self._skipped = dict(self._arranged.skipped)
        await self._keep_what_turns(bench)
        try:
            await self._measure(bench, await settle_asking(bench))
        except ArmFailedError as error:
            if not self._done:
                raise
            raise RunStoppedError(f"the target answers no more: {error}") from error
        return self._concluded(bench, "")

    def partial(self, bench: Bench, why: str) -> RunResult:
        """The arms that ended."""
        return self._concluded(bench, why)

    def _concluded(self, bench: Bench, stopped: str) -> RunResult:
        return conclude(bench, self._arranged.settings, self._skipped, stopped, self._cut)

    async def _keep_what_turns(self, bench: Bench) -> None:
        """Drop what the engine refuses; where it takes none, it is measured as it is."""
        kept: list[Setting] = []
        for setting in self._arranged.live:
            refused = await bench.engine.speculation(setting.live) if setting.live else None
            if refused is None:
                kept.append(setting)
            else:
                self._skipped[setting.name] = refused.reason
        self._arranged = replace(self._arranged, live=tuple(kept) or (Setting(AS_IS),))

    async def _measure(self, bench: Bench, asking: Asking) -> None:
        arranged = self._arranged
        before, after = schedule(arranged, whole(bench.settled, "repeats"))
        for repeat in before:
            await self._live(bench, asking, repeat)
        if not arranged.restart:
            return
        await self._without(bench, asking)
        for repeat in after:
            await self._live(bench, asking, repeat)

    async def _live(self, bench: Bench, asking: Asking, repeat: int) -> None:
        """One repeat of the settings that the running engine can be told."""
        for setting in rotated(self._arranged.live, repeat):
            if setting.live and (refused := await bench.engine.speculation(setting.live)):
                raise ArmFailedError(f"{setting.name} cannot be set any more: {refused.reason}")
            await self._groups(bench, asking, setting, repeat)

    async def _without(self, bench: Bench, asking: Asking) -> None:
        """All repeats of an engine that was started without speculation, and ours back."""
        first = next(groups(bench.settled))
        await self._tell(
            bench, first.arm(Setting(OFF)), "the engine is started without speculation"
        )
        refused = await bench.engine.restart("off")
        if refused is not None:
            self._skipped[OFF] = refused.reason
            return
        await warm(bench, asking)
        for repeat in range(whole(bench.settled, "repeats")):
            await self._groups(bench, asking, Setting(OFF), repeat)
        back = first.arm(self._arranged.live[0])
        await self._tell(bench, back, "the engine is started again as it was")
        refused = await bench.engine.restart("as-was")
        if refused is not None:
            text = f"the engine could not be started again as it was: {refused.reason}"
            bench.doubt(Doubt(code="not-restored", text=text, invalidates=False))
            raise RunStoppedError(text)
        await warm(bench, asking)

    async def _groups(self, bench: Bench, asking: Asking, setting: Setting, repeat: int) -> None:
        repeats = whole(bench.settled, "repeats")
        for group in groups(bench.settled):
            arm = group.arm(setting)
            await self._tell(bench, arm, f"repeat {repeat + 1} of {repeats}")
            self._cut = (arm, repeat)
            await run_load(bench, asking, _load(bench, group, arm), repeat)
            self._cut = None
            self._done += 1

    async def _tell(self, bench: Bench, arm: str, text: str) -> None:
        arms = len(list(groups(bench.settled))) * len(self._arranged.settings)
        await bench.step(arm, self._done, arms * whole(bench.settled, "repeats"), text)


def _load(bench: Bench, group: Group, arm: str) -> Load:
    output = whole(bench.settled, "output_tokens")
    edit = group.regime == "code-edit"
    return Load(
        arm=arm,
        streams=group.streams,
        requests=whole(bench.settled, "requests"),
        output_tokens=output,
        temperature=0.0 if edit else PROSE_TEMPERATURE,
        text=partial(code_edit, output_tokens=output) if edit else prose,
    )


def _lone(arranged: Arrangement, deepest: int | Missing) -> str:
    """Why nothing is left to compare; empty where something is, or what is not ours is measured."""
    if isinstance(deepest, Missing) or not arranged.skipped or len(arranged.settings) > 1:
        return ""
    if deepest == 0:
        return NOTHING_TO_COMPARE
    why = "; ".join(f"{name}: {reason}" for name, reason in arranged.skipped.items())
    return f"there is nothing to compare ({why}); add to settings=off,off-live,on what it can do"


def _consequences(arranged: Arrangement) -> tuple[str, ...]:
    told = [
        f"Arms, on each kind of text: {', '.join(each.told for each in arranged.settings)}.",
        "Its streams share the engine with whoever else uses it: both are slower meanwhile.",
    ]
    if any(setting.live for setting in arranged.live):
        told.append("Speculation is turned for everybody while it runs, and put back at the end.")
    if arranged.restart:
        told.append("The engine is started anew twice: every cached prefix goes, requests wait.")
    told += [f"{name} is left out: {reason}." for name, reason in arranged.skipped.items()]
    return tuple(told)
