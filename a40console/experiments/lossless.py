"""Whether speculation leaves greedy output as it is, on code that tempts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from a40console.experiments.answers_compared import SEVERITY, Compared, compare
from a40console.experiments.asking import WARM_UP
from a40console.experiments.bench import (
    ArmFailedError,
    ArmRepeat,
    Bench,
    Known,
    Reply,
    Request,
    RunStoppedError,
)
from a40console.experiments.code_probes import PROBES, Probe
from a40console.experiments.costs import dollars, load_seconds
from a40console.experiments.lossless_result import WITH, WITHOUT, conclude
from a40console.experiments.offers import LOSSLESS
from a40console.experiments.regime_arms import NOTHING_TO_COMPARE, OFF, OFF_LIVE
from a40console.experiments.settled_values import whole, word
from a40console.model.experiment import Experiment, Value
from a40console.model.figures import Missing, number
from a40console.model.run import RunPlan, RunTarget
from a40console.model.run_result import Doubt, RunResult

ROUNDS = 2
"""Each arm is asked so often: whether the engine agrees with itself is seen by that."""

_PROBE_TOKENS = 90
_NOT_LIVE = (
    "this engine's speculation cannot be turned off as it runs: "
    "baseline=off compares with an engine started without it"
)
_LOGPROBS = 5


class Lossless:
    """Is speculation lossless?"""

    offer: Experiment = LOSSLESS

    def __init__(self) -> None:
        self._replies: dict[tuple[str, int, int], Reply] = {}
        self._depth = 0
        self._asks_logprobs = True
        self._baseline = ""
        self._cut: ArmRepeat | None = None

    def plan(self, settled: Mapping[str, Value], known: Known, target: RunTarget) -> RunPlan:
        """Two arms, one request at a time."""
        requests = 2 * ROUNDS * whole(settled, "probes")
        output = whole(settled, "output_tokens")
        seconds = load_seconds(
            known,
            streams=1,
            requests=requests,
            prompt_tokens=_PROBE_TOKENS,
            output_tokens=output,
        )
        asked = word(settled, "baseline")
        restarts = asked == OFF or (asked == "auto" and not known.live_speculation)
        told = (
            "The engine is started anew twice: every cached prefix goes, requests wait."
            if restarts
            else "Speculation is turned for everybody while it runs, and put back at the end."
        )
        return RunPlan(
            arms=(WITHOUT, WITH),
            requests=requests,
            seconds=seconds,
            usd=dollars(seconds, known.usd_per_h),
            intrusion="restarts" if restarts else "shares",
            consequences=(told,),
            refusal=_depth_refusal(settled, known.speculation_depth)
            or (_NOT_LIVE if asked == OFF_LIVE and not known.live_speculation else ""),
        )

    async def run(self, bench: Bench) -> RunResult:
        """All probes without and with speculation, one at a time.

        Raises:
            ArmFailedError: Where the engine has no speculation, or does not answer.
            RunStoppedError: Where the run is to end, or the engine answers no more.
        """
        self._replies.clear()
        deepest = await bench.engine.speculation_depth()
        if refusal := _depth_refusal(bench.settled, deepest):
            raise ArmFailedError(refusal)
        self._depth = whole(bench.settled, "depth") or int(number(deepest) or 0)
        self._asks_logprobs = await self._tells_logprobs(bench)
        self._baseline = await self._chosen_baseline(bench)
        if self._baseline == OFF:
            await self._against_another_start(bench, deepest)
        else:
            await self._live(bench)
        return self._concluded(bench, "")

    def partial(self, bench: Bench, why: str) -> RunResult:
        """The probes that were asked in both arms."""
        return self._concluded(bench, why)

    def _concluded(self, bench: Bench, stopped: str) -> RunResult:
        return conclude(
            bench,
            self._compared(bench),
            stopped,
            depth=self._depth,
            baseline=self._baseline,
            cut=self._cut,
        )

    def _compared(self, bench: Bench) -> list[Compared]:
        """The probes that both arms answered; the worse of the rounds with speculation."""
        compared: list[Compared] = []
        for index, probe in enumerate(_probes(bench)):
            without, again = self._answered(WITHOUT, index)
            found = [
                compare(probe.name, probe.prompt, without, again, speculated)
                for speculated in self._answered(WITH, index)
                if without is not None and speculated is not None
            ]
            if found:
                compared.append(max(found, key=lambda each: SEVERITY.index(each.kind)))
        return compared

    def _answered(self, arm: str, index: int) -> tuple[Reply | None, Reply | None]:
        """Both rounds' answers."""
        rounds = [self._replies.get((arm, repeat, index)) for repeat in range(ROUNDS)]
        first, second = (
            reply if reply is not None and not reply.sample.error else None for reply in rounds
        )
        return first, second

    async def _chosen_baseline(self, bench: Bench) -> str:
        """The baseline that was asked for, or that the engine can do; `off-live` is in force then.

        Where the plan foresaw no restart, whoever steers the engine refuses one.
        """
        asked = word(bench.settled, "baseline")
        if asked == OFF:
            return asked
        refused = await bench.engine.speculation("off")
        if refused is not None and asked == OFF_LIVE:
            raise ArmFailedError(f"{_NOT_LIVE} ({refused.reason})")
        return OFF if refused is not None else OFF_LIVE

    async def _live(self, bench: Bench) -> None:
        await self._ask_all(bench, WITHOUT)
        await self._turn_on(bench)
        await self._ask_all(bench, WITH)

    async def _against_another_start(self, bench: Bench, deepest: int | Missing) -> None:
        await self._turn_on(bench, in_force=self._depth == deepest)
        await self._ask_all(bench, WITH)
        answers = ROUNDS * len(_probes(bench))
        text = "the engine is started without speculation"
        await bench.step(WITHOUT, answers, 2 * answers, text)
        refused = await bench.engine.restart("off")
        if refused is not None:
            raise ArmFailedError(f"the engine was not started without: {refused.reason}")
        await self._ask_all(bench, WITHOUT)
        text = "the engine is started again as it was"
        await bench.step(WITH, 2 * answers, 2 * answers, text)
        refused = await bench.engine.restart("as-was")
        if refused is not None:
            text = f"the engine could not be started again as it was: {refused.reason}"
            bench.doubt(Doubt(code="not-restored", text=text, invalidates=False))

    async def _turn_on(self, bench: Bench, *, in_force: bool = False) -> None:
        """Draft as deep as asked; an engine that cannot be told may be at that depth already."""
        refused = await bench.engine.speculation(str(self._depth))
        if refused is not None and not in_force:
            raise ArmFailedError(f"depth {self._depth} cannot be set: {refused.reason}")

    async def _ask_all(self, bench: Bench, arm: str) -> None:
        """Each probe once a round."""
        probes = _probes(bench)
        done = ROUNDS * len(probes) if any(key[0] != arm for key in self._replies) else 0
        for repeat in range(ROUNDS):
            async with bench.arm(arm, repeat):
                for index, probe in enumerate(probes):
                    text = f"round {repeat + 1} of {ROUNDS}: {probe.name}"
                    await bench.step(arm, done, 2 * ROUNDS * len(probes), text)
                    reply = await bench.client.send(self._request(bench, probe, arm, repeat, index))
                    if reply.sample.error and await self._gone(bench):
                        self._cut = (arm, repeat)
                        raise self._broken_off(f"{arm} speculation: {reply.sample.error}")
                    self._replies[arm, repeat, index] = reply
                    done += 1

    async def _gone(self, bench: Bench) -> bool:
        """Whether the engine answers nothing any more."""
        for _ in range(ROUNDS):
            request = self._request(bench, PROBES[0], WARM_UP, 0, 0, warm_up=True)
            if not (await bench.client.send(request)).sample.error:
                return False
        return True

    def _broken_off(self, why: str) -> ArmFailedError | RunStoppedError:
        """What to raise where the engine went away: something may have been compared before."""
        measured = any(arm == WITH for arm, _, _ in self._replies)
        return RunStoppedError(why) if measured else ArmFailedError(why)

    async def _tells_logprobs(self, bench: Bench) -> bool:
        """Whether a request for logprobs is answered at all.

        Raises:
            ArmFailedError: If not even one without them is.
        """
        error = ""
        for self._asks_logprobs in (True, False):
            request = self._request(bench, PROBES[0], WARM_UP, 0, 0, warm_up=True)
            reply = await bench.client.send(request)
            error = reply.sample.error
            if not error:
                return self._asks_logprobs
        raise ArmFailedError(f"the engine does not go on with code: {error}")

    def _request(
        self,
        bench: Bench,
        probe: Probe,
        arm: str,
        repeat: int,
        index: int,
        *,
        warm_up: bool = False,
    ) -> Request:
        tokens = whole(bench.settled, "output_tokens")
        body: dict[str, object] = {
            "model": bench.model,
            "prompt": probe.prompt,
            "max_tokens": tokens,
            "ignore_eos": True,
            "temperature": 0,
            # Logprobs are told of these tokens too: a text without them is not what was chosen.
            "skip_special_tokens": False,
        }
        if self._asks_logprobs:
            body["logprobs"] = _LOGPROBS
        return Request(
            path="/v1/completions",
            body=body,
            arm=arm,
            repeat=repeat,
            index=index,
            role="probe",
            warm_up=warm_up,
        )


def _probes(bench: Bench) -> Sequence[Probe]:
    return PROBES[: whole(bench.settled, "probes")]


def _depth_refusal(settled: Mapping[str, Value], deepest: int | Missing) -> str:
    """Why speculation at the depth asked for cannot be tried; empty where it can."""
    if isinstance(deepest, Missing):
        return f"speculation cannot be turned here: {deepest.reason}"
    if deepest == 0:
        return NOTHING_TO_COMPARE
    asked = whole(settled, "depth")
    if asked > deepest:
        return f"depth {asked} is deeper than the {deepest} that the engine was started for"
    return ""
