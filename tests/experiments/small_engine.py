"""A bench with a small engine in it, on a clock of its own: honest, or faulty as it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from a40console.experiments.bench import Client, Engine, Known, Reply, Request, RunStoppedError
from a40console.model.experiment import Experiment, Value, settle
from a40console.model.figures import Figure, Missing, number
from a40console.model.run import RunTarget
from a40console.model.run_record import ArmEnd, Record, Sample
from a40console.model.run_result import Cell, Doubt
from tests.experiments.paper_bench import sample_of

USD_PER_H = 0.44
KNOWN = Known(
    generation_tokens_per_s=80.0,
    prefill_tokens_per_s=4000.0,
    window_tokens=8192,
    usd_per_h=USD_PER_H,
    speculation_depth=0,
    can_reset_cache=True,
    live_speculation=True,
)
REFUSED = Missing("the engine refuses")


@dataclass(kw_only=True)
class Manner:
    """How the engine is, and what is wrong with it."""

    deepest: int = 0
    one_stream_tokens_per_s: float = 80.0
    scaling: float = 0.15
    """0: every stream is as fast as one alone; 1: they take turns."""

    first_s: float = 0.05
    """To the first token."""

    pass_growth: float = 0.02
    """Longer passes, for each drafted token."""

    accepted: Mapping[str, float] = field(
        default_factory=lambda: {"prose": 0.05, "code-edit": 0.85}
    )
    """Share of drafts accepted at each position, given that all before it were."""

    noise: float = 0.01
    luck: int = 3
    """Seed of the noise and of the drafts."""

    corrupts: bool = False
    near_tie: bool = False
    tells_logprobs: bool = True
    ignores_off: bool = False
    """It drafts although it was told not to."""

    drafts_never: bool = False
    """It says that it drafts, and does not."""

    refuses_live: bool = False
    refuses_restart: bool = False
    refuses_ignore_eos: bool = False
    fails_every: int = 0
    """One request of so many is answered with HTTP 500."""

    dies_after: int = 1_000_000
    """Requests that it answers before it is gone."""

    tells_usage: bool = True
    window: int | Missing = 8192
    template_tokens: int | Missing = 8
    cached_tokens: int = 0
    """Of every prompt of 100."""

    loads: Mapping[tuple[str, int], Mapping[str, Figure]] = field(default_factory=dict)
    """How busy the client was, by arm and repeat."""


@dataclass(kw_only=True)
class SmallEngine:
    """The engine under test."""

    manner: Manner
    depth: int
    restarts: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    async def window_tokens(self) -> int | Missing:
        return self.manner.window

    async def count_tokens(self, path: str, body: Mapping[str, Any]) -> int | Missing:
        template = self.manner.template_tokens
        if isinstance(template, Missing):
            return template
        return len(body["messages"][0]["content"].split()) + template

    async def reset_cache(self) -> Missing | None:
        return None

    async def speculation(self, setting: str) -> Missing | None:
        if self.manner.refuses_live:
            return REFUSED
        self.told.append(setting)
        self.depth = 0 if setting == "off" else int(setting)
        return None

    async def restart(self, speculation: str) -> Missing | None:
        if self.manner.refuses_restart:
            return REFUSED
        self.restarts.append(speculation)
        self.depth = 0 if speculation == "off" else self.manner.deepest
        return None

    async def speculation_depth(self) -> int | Missing:
        return self.manner.deepest

    async def canary(self) -> Sequence[tuple[str, bool | None, str]]:
        return [("completion", True, "64 tokens of code"), ("tool call", None, "no parser")]


class SmallBench:
    """The bench; it is its own client."""

    def __init__(
        self,
        experiment: Experiment,
        manner: Manner | None = None,
        *,
        preset: str = "standard",
        asked: dict[str, str] | None = None,
        stop_at_step: int = 1_000_000,
    ) -> None:
        self.manner = manner or Manner()
        self.small = SmallEngine(manner=self.manner, depth=self.manner.deepest)
        self.engine: Engine = self.small
        self.client: Client = self
        self.target = RunTarget()
        self.settled: Mapping[str, Value] = settle(experiment, preset, asked or {})
        self.model = "small"
        self.simulated = False
        self.says = ""
        self.seed = 7
        self.usd_per_h: Figure = USD_PER_H
        self.records: list[Record] = []
        self.doubts: list[Doubt] = []
        self.steps: list[tuple[str, int, int]] = []
        self.requests: list[Request] = []
        self.within_arms: list[Request] = []
        self._stop_at_step = stop_at_step
        self._clock_s = 0.0
        self._counters: dict[str, float] = {}
        self._dice = Random(self.manner.luck)
        self._speed = 1.0

    def now_s(self) -> float:
        return self._clock_s

    def record(self, record: Record) -> None:
        self.records.append(record)

    def doubt(self, doubt: Doubt) -> None:
        self.doubts.append(doubt)

    async def step(self, arm: str, done: int, total: int, text: str) -> None:
        self.steps.append((arm, done, total))
        if len(self.steps) > self._stop_at_step:
            raise RunStoppedError("cancelled")

    @asynccontextmanager
    async def arm(self, name: str, repeat: int) -> AsyncIterator[None]:
        began_s, before, first = self._clock_s, dict(self._counters), len(self.requests)
        self._speed = 1 + self._dice.uniform(-1, 1) * self.manner.noise
        yield
        self.within_arms += self.requests[first:]
        server: dict[str, Figure] = {
            key: value - before.get(key, 0.0) for key, value in self._counters.items()
        }
        if self.manner.deepest and self.small.restarts[-1:] != ["off"]:
            server.setdefault("drafts", 0)
        self.record(
            ArmEnd(
                arm=name,
                repeat=repeat,
                wall_s=self._clock_s - began_s,
                usd=self.usd(self._clock_s - began_s),
                server=server,
                client=dict(self.manner.loads.get((name, repeat), {})),
            )
        )

    def samples(self, arm: str, repeat: int | None = None) -> Sequence[Sample]:
        return [
            each
            for each in self.records
            if isinstance(each, Sample)
            and each.arm == arm
            and (repeat is None or each.repeat == repeat)
        ]

    def arm_ends(self, arm: str) -> Sequence[ArmEnd]:
        return [each for each in self.records if isinstance(each, ArmEnd) and each.arm == arm]

    def usd(self, seconds: float) -> Figure:
        return seconds * USD_PER_H / 3600

    async def send(self, request: Request) -> Reply:
        reply = self._answer(request, self._clock_s, streams=1)
        self._clock_s = reply.sample.due_s + _seconds(reply.sample)
        return reply

    async def send_whole(self, request: Request) -> Reply:
        return await self.send(request)

    async def closed(self, streams: Sequence[Sequence[Request]]) -> Sequence[Reply]:
        began_s, ends_s, replies = self._clock_s, [self._clock_s], []
        for stream in streams:
            at_s = began_s
            for request in stream:
                reply = self._answer(request, at_s, streams=len(streams))
                replies.append(reply)
                at_s += _seconds(reply.sample)
            ends_s.append(at_s)
        self._clock_s = max(ends_s)
        return replies

    def _answer(self, request: Request, at_s: float, *, streams: int) -> Reply:
        self.requests.append(request)
        error, status = self._trouble(request)
        if error:
            sample = self._sample(request, at_s, error=error)
            return Reply(sample=sample, status=status)
        tokens = int(request.body["max_tokens"])
        passes = self._passes(request, tokens)
        manner = self.manner
        pass_s = (1 + manner.scaling * (streams - 1)) / manner.one_stream_tokens_per_s
        pass_s *= (1 + manner.pass_growth * self.small.depth) / self._speed
        self._count(generated_tokens=tokens, passes=passes, requests=1)
        sample = self._sample(request, at_s, gaps_s=(pass_s,) * (passes - 1), tokens=tokens)
        text, logprobs = self._text(request, tokens)
        return Reply(sample=sample, status=200, text=text, logprobs=logprobs)

    def _trouble(self, request: Request) -> tuple[str, int]:
        count = len(self.requests)
        if count > self.manner.dies_after:
            return "connection refused", 0
        if self.manner.fails_every and count % self.manner.fails_every == 0:
            return "HTTP 500: out of luck", 500
        if self.manner.refuses_ignore_eos and "ignore_eos" in request.body:
            return "HTTP 400: unknown field ignore_eos", 400
        if not self.manner.tells_logprobs and "logprobs" in request.body:
            return "HTTP 400: no logprobs", 400
        return "", 200

    def _passes(self, request: Request, tokens: int) -> int:
        """Draw the passes of an answer, and count what was drafted."""
        depth = self.small.depth or (self.manner.deepest if self.manner.ignores_off else 0)
        if not depth or self.manner.drafts_never:
            return tokens
        regime = "code-edit" if "Rename" in str(request.body.get("messages")) else "prose"
        share = self.manner.accepted[regime]
        written = passes = 0
        while written < tokens:
            taken = 0
            while taken < depth and self._dice.random() < share:
                taken += 1
                self._count(**{f"accepted_tokens_at_{taken}": 1})
            self._count(drafts=1, drafted_tokens=depth, accepted_tokens=taken)
            written += 1 + taken
            passes += 1
        return passes

    def _count(self, **counted: float) -> None:
        for name, value in counted.items():
            self._counters[name] = self._counters.get(name, 0.0) + value

    def _sample(
        self,
        request: Request,
        at_s: float,
        *,
        gaps_s: tuple[float, ...] = (),
        tokens: int = 0,
        error: str = "",
    ) -> Sample:
        ttft_s = self.manner.first_s
        usage: Figure = tokens if self.manner.tells_usage else Missing("no usage")
        sample = sample_of(
            request,
            at_s,
            ttft_s=Missing("failed") if error else ttft_s,
            total_s=Missing("failed") if error else ttft_s + sum(gaps_s),
            gaps_s=gaps_s,
            prompt_tokens=100,
            cached_tokens=self.manner.cached_tokens,
            generated_tokens=Missing("failed") if error else usage,
            error=error,
        )
        self.record(sample)
        return sample

    def _text(self, request: Request, tokens: int) -> tuple[str, tuple[Mapping[str, Any], ...]]:
        """Words of an answer, the same each time: but for what speculation does to them."""
        words = [self.says or f" w{at}" for at in range(tokens)]
        if "prompt" in request.body:
            words = ["    return", " fib", "(n", "-1", ")", " +", " fib", "(n", "-2", ")\n", *words]
            if self.small.depth and self.manner.corrupts:
                words[4:4] = ["(n", "-1"]
            if self.small.depth and self.manner.near_tie:
                words[12] = " other"
        if "logprobs" not in request.body:
            return "".join(words), ()
        likeliest = [
            {
                "token": word,
                "logprob": -0.1,
                "top_logprobs": [
                    {"token": word, "logprob": -0.1},
                    {"token": " other", "logprob": -0.13},
                    {"token": " never", "logprob": -9.0},
                ],
            }
            for word in words
        ]
        return "".join(words), tuple(likeliest)


def _seconds(sample: Sample) -> float:
    return sample.total_s if isinstance(sample.total_s, float) else 0.001


def shown(cell: Cell) -> float | None:
    """The number in a table's cell; None where it has none."""
    return None if isinstance(cell, str) else number(cell)
