"""The part of the control API that is about runs, in memory: every kind of run, one under way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx

from a40console.model.codec import decode, encode
from a40console.model.control import Trouble
from a40console.model.experiment import (
    Experiment,
    Parameter,
    ParameterError,
    settle,
    write_value,
)
from a40console.model.figures import Estimated, Missing
from a40console.model.run import (
    ArmRatio,
    Comparison,
    Difference,
    Hypothesis,
    RunProgress,
    RunSpec,
)
from a40console.model.run_copies import NotCopied
from a40console.model.run_record import ArmEnd, Doubted, Progressed, Record, Sample
from a40console.model.run_result import Doubt, Interval
from tests import make_runs as make

ARMS = ("cc-auto", "cc-clear", "per-turn", "block", "none")
QUEUED, RUNNING = make.queued().id, make.running().id
DONE, SWEEP, BROKEN = make.run().id, make.sweep().id, make.invalid().id
SIMULATED, REFERENCE = make.simulated().id, make.reference().id


def experiments() -> tuple[Experiment, ...]:
    """Two, with parameters of every kind."""
    compaction = Experiment(
        name="compaction",
        title="Compaction",
        question="Which way of keeping an agent's context small costs the least for the same work?",
        parameters=(
            Parameter(
                name="arms",
                kind="choices",
                help="The ways that are compared.",
                default=ARMS,
                presets={"quick": ("per-turn", "block")},
                choices=ARMS,
            ),
            Parameter(
                name="turns",
                kind="whole",
                help="Turns of the agent's session.",
                default=120,
                presets={"quick": 12},
                least=4,
                most=400,
            ),
            Parameter(
                name="threshold",
                kind="choice",
                help="At how many tokens the client shrinks its context.",
                default="48k",
                choices=("48k", "96k", "scaled"),
            ),
            Parameter(name="isolate", kind="yes", help="Reset the cache before.", default=True),
        ),
        presets={
            "quick": "A look at whether it works; no verdict.",
            "standard": "A verdict on this engine.",
            "full": "Narrow intervals; hours.",
        },
    )
    sweep = Experiment(
        name="sweep",
        title="Streams sweep",
        question="How much faster is it with more streams at once, and where does that end?",
        parameters=(
            Parameter(
                name="streams",
                kind="wholes",
                help="Streams of each step.",
                default=(1, 2, 4, 8, 16, 32),
                presets={"quick": (1, 4)},
                least=1,
                most=256,
            ),
            Parameter(
                name="output_tokens",
                kind="number",
                help="Tokens that each answer has.",
                default=256,
                least=1,
                most=8192,
                unit="tokens",
            ),
        ),
    )
    return compaction, sweep


def records(turns: int = 40) -> list[Record]:
    """Of a run whose first arm has ended and whose second one is at some turn, one of them lost."""
    made: list[Record] = [_sample(0, turn) for turn in range(60)]
    made.append(ArmEnd(arm=ARMS[0], repeat=0, wall_s=301.0, usd=0.038))
    made += [_sample(1, turn) for turn in range(turns)]
    progress = RunProgress(
        arm=ARMS[1],
        done=60 + turns,
        total=300,
        text=f"turn {turns} of 60",
        elapsed_s=312.0 + turns,
        eta_s=Estimated(1_240.0 - turns),
        usd=0.0394,
    )
    counted = "the engine counted 3 requests more than were sent"
    doubt = Doubt(code="foreign-traffic", text=counted, invalidates=False, arm=ARMS[0])
    return [*made, Progressed(progress=progress), Doubted(doubt=doubt)]


def _sample(arm: int, turn: int) -> Sample:
    """The first two turns of an arm warm up; one of the second arm fails."""
    total_s = 3 + turn * (0.06 - 0.02 * arm) + (5 if turn % 20 == 19 else 0)
    made = Sample(
        arm=ARMS[arm],
        repeat=0,
        index=turn,
        warm_up=turn < 2,
        due_s=turn * 5.0,
        sent_s=turn * 5.0,
        ttft_s=0.3 + total_s / 20,
        total_s=total_s,
        prompt_tokens=2_000 + 400 * turn,
        generated_tokens=120,
    )
    if (arm, turn) != (1, 7):
        return made
    return replace(made, total_s=Missing("it failed"), error="HTTP 500: the engine said no")


def comparison(left: str, right: str) -> Comparison:
    """Two that differ in more than one setting."""

    def ratio(arm: str, right: float, low: float, high: float) -> ArmRatio:
        value = Interval(value=right / 500, low=low, high=high, confidence=0.95, repeats=3)
        return ArmRatio(arm=arm, figure="wall_s", left=500.0, right=right, ratio=value)

    return Comparison(
        left=left,
        right=right,
        differences=(
            Difference(name="seed", left="1", right="2", weight="note"),
            Difference(name="speculation", left="ngram 24", right="off"),
            Difference(name="driver", left="550.54.15", right="560.35.03", weight="environment"),
        ),
        ratios=(
            ratio("block", 536.0, 1.041, 1.102),
            ratio("cc-auto", 505.0, 0.97, 1.05),
            replace(
                ratio("none", 500.0, 1, 1),
                right=Missing("it overflowed"),
                ratio=Missing("right has none"),
            ),
        ),
        verdict="Not one effect: speculation and the driver both differ.",
        attributable=False,
    )


class FakeRuns:
    """What a service would answer; `asked` says what it was asked for."""

    def __init__(self) -> None:
        self.experiments = experiments()
        self.runs = list(make.several())
        self.records: dict[str, list[Record]] = {RUNNING: records()}
        self.plan = make.plan()
        self.plans_asked: list[RunSpec] = []
        self.asked: list[str] = []
        self.claims: tuple[Hypothesis, ...] = make.hypotheses()
        self.left = NotCopied(ids=(), passing=False, pull="")

    def answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.asked.append(path)
        if path == "/v1/run-plan":
            return self._planned(decode(RunSpec, json.loads(request.content)))
        if path == "/v1/runs/compare":
            return _ok(comparison(**dict(request.url.params)))
        plain = {
            "/v1/experiments": self.experiments,
            "/v1/runs": self._listed(),
            "/v1/runs/not-copied": self.left,
            "/v1/hypotheses": self.claims,
        }
        if path in plain:
            return _ok(plain[path])
        run_id, _, part = path.removeprefix("/v1/runs/").partition("/")
        known = next((each for each in self.runs if each.id == run_id), None)
        if known is None:
            return _refused(f"No run is known as {run_id}")
        if part == "records":
            return self._page(run_id, int(request.url.params["after"]))
        if part:
            form = request.url.params.get("form", part)
            return httpx.Response(200, json={"text": f"{form} of {run_id}"})
        return _ok(known)

    def _listed(self) -> tuple[Any, ...]:
        """In the list runs are without tables, plots and excerpts."""
        return tuple(
            run
            if isinstance(run.result, Missing)
            else replace(run, result=replace(run.result, tables=(), plots=(), excerpts=()))
            for run in self.runs
        )

    def _page(self, run_id: str, after: int) -> httpx.Response:
        listed = self.records.get(run_id, [])
        page = [encode(record) for record in listed[after : after + 50]]
        return httpx.Response(200, json={"next": after + len(page), "records": page})

    def _planned(self, spec: RunSpec) -> httpx.Response:
        self.plans_asked.append(spec)
        experiment = next(each for each in self.experiments if each.name == spec.experiment)
        try:
            settled = settle(experiment, spec.preset, spec.parameters)
        except ParameterError as error:
            return _refused(str(error))
        arms = write_value(settled.get("arms", ("all",))).split(",")
        return _ok(replace(self.plan, arms=tuple(arms)))


def _ok(value: Any) -> httpx.Response:
    data = [encode(each) for each in value] if isinstance(value, tuple) else encode(value)
    return httpx.Response(200, json=data)


def _refused(text: str) -> httpx.Response:
    return httpx.Response(400, json=encode(Trouble(message=text, exit_code=2)))
