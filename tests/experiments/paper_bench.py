"""A bench on paper: an engine with a block prefix cache and a clock that only work moves."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from a40console.experiments.answer import NO_CONTENT
from a40console.experiments.bench import Client, Engine, Reply, Request, RunStoppedError
from a40console.model.experiment import Value
from a40console.model.figures import Figure, Missing
from a40console.model.run import RunTarget
from a40console.model.run_record import NO_USAGE, ArmEnd, Record, Sample
from a40console.model.run_result import Doubt

BLOCK_TOKENS = 16
_TOKEN = re.compile(r"\w{1,5}|[^\w\s]")


@dataclass(slots=True, kw_only=True)
class PaperEngine:
    """Computes what its cache does not hold, and then writes token by token."""

    window_tokens: int | Missing = 4_096
    capacity_blocks: int = 4_096
    prefill_s: float = 1 / 4_000
    step_s: float = 1 / 200
    noise: float = 0.004
    """Relative deviation of a request's time."""

    tells_usage: bool = True
    takes_lengths: bool = True
    """Whether it obeys an order for an answer's length."""

    refuses_orders: bool = False
    """Whether it refuses a body that holds such an order."""

    dies_after: int | None = None
    """Requests after which it answers no more."""

    fails_at: tuple[str, int, int] | None = None
    """Beginning of the arm's name, repeat and turn of the one request that fails."""

    empty_at: tuple[str, str, int, int] | None = None
    """Beginning of the arm's name, role, repeat and turn of the one answer without content."""

    remembers: bool = True
    """Whether it answers what stands before it, as a capable model does."""

    depth: int = 0
    refuses: Mapping[str, str] = field(default_factory=dict)
    """Why speculation is not turned to a setting."""

    resets: int = 0
    settings: list[str] = field(default_factory=list)
    lag_s: Mapping[tuple[str, int], float] = field(default_factory=dict)
    """How late the client read on average, by arm and repeat."""

    requests: list[Request] = field(default_factory=list)
    now_s: float = 0.0
    dice: Random = field(default_factory=lambda: Random(7))
    _blocks: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def answer(self, request: Request) -> tuple[Sample, str, int]:
        """One request, and the time that it takes."""
        self.requests.append(request)
        began_s = self.now_s
        text = prompt_text(request.body)
        prompt = _TOKEN.findall(text)
        asked = int(request.body["max_tokens"])
        error, status = self._refusal(request, len(prompt), asked)
        if error:
            return _failed(request, began_s, error), "", status
        cached = self._look_up(prompt)
        said = self._said(request, text)
        made = asked if "ignore_eos" in request.body and self.takes_lengths else min(asked, 5)
        swing = 1 + self.dice.gauss(0, self.noise)
        ttft_s = ((len(prompt) - cached) * self.prefill_s + self.step_s) * swing
        self.now_s += ttft_s + made * self.step_s * swing
        told = self.tells_usage
        empty = self._is_empty(request)
        sample = sample_of(
            request,
            began_s,
            ttft_s=NO_CONTENT if empty else ttft_s,
            total_s=NO_CONTENT if empty else self.now_s - began_s,
            prompt_tokens=len(prompt) if told else NO_USAGE,
            cached_tokens=cached if told else NO_USAGE,
            generated_tokens=made if told else NO_USAGE,
        )
        return sample, "" if empty else said, 200

    def forget(self) -> None:
        """Empty the cache."""
        self.resets += 1
        self._blocks.clear()

    def _is_empty(self, request: Request) -> bool:
        if self.empty_at is None:
            return False
        arm, *place = self.empty_at
        asked = [request.role, request.repeat, request.index]
        return request.arm.startswith(arm) and asked == place

    def _refusal(self, request: Request, prompt: int, asked: int) -> tuple[str, int]:
        if self.fails_at is not None:
            arm, repeat, turn = self.fails_at
            if request.arm.startswith(arm) and (request.repeat, request.index) == (repeat, turn):
                return "500: try again", 500
        if self.refuses_orders and "ignore_eos" in request.body:
            return "422: extra fields not permitted", 422
        if self.dies_after is not None and len(self.requests) > self.dies_after:
            return "connection refused", 0
        if not isinstance(self.window_tokens, Missing) and prompt + asked > self.window_tokens:
            return f"400: maximum context length is {self.window_tokens} tokens", 400
        return "", 200

    def _look_up(self, prompt: Sequence[str]) -> int:
        """Tokens that the cache spares; afterwards it holds the prompt."""
        keys, key = [], 0
        for at in range(0, len(prompt) - BLOCK_TOKENS, BLOCK_TOKENS):
            key = hash((key, *prompt[at : at + BLOCK_TOKENS]))
            keys.append(key)
        hits = next((at for at, each in enumerate(keys) if each not in self._blocks), len(keys))
        for each in keys:
            self._blocks[each] = None
            self._blocks.move_to_end(each)
        while len(self._blocks) > self.capacity_blocks:
            self._blocks.popitem(last=False)
        return hits * BLOCK_TOKENS

    def _said(self, request: Request, text: str) -> str:
        """What a model would say that reads well: the line that the question is about."""
        if not self.remembers or request.role not in {"recall", "summary"}:
            return "so it is"
        planted = [line for line in text.splitlines() if _PLANTED.search(line)]
        if request.role == "summary":
            return "\n".join(planted)
        question = text.rstrip().splitlines()[-1]
        matter = re.search(r"[a-z]+ [a-z]+ \d+", question)
        found = [line for line in planted if matter and matter[0] in line]
        return found[0] if found else "I do not know."


_PLANTED = re.compile(r"is configured in|The limit of the|Decision: the|Tried for the")


class PaperBench:
    """One run's workplace; it is its own client and its own steering."""

    def __init__(
        self,
        engine: PaperEngine,
        settled: Mapping[str, Value],
        *,
        seed: int = 1,
        stops_after: int | None = None,
        target: RunTarget | None = None,
        reset: Missing | None = None,
    ) -> None:
        self.paper = engine
        self.settled = settled
        self.seed = seed
        self.target = target or RunTarget()
        self.model = "paper"
        self.simulated = False
        self.usd_per_h: Figure = 0.44
        self.doubts: list[Doubt] = []
        self.records: list[Record] = []
        self.arms: list[tuple[str, int]] = []
        self.within_arms: list[Request] = []
        self.steps: list[tuple[str, int, int, str]] = []
        self.client: Client = self
        self.engine: Engine = self
        self._stops_after = stops_after
        self._reset = reset

    async def send(self, request: Request) -> Reply:
        json.dumps(request.body)
        sample, text, status = self.paper.answer(request)
        self.record(sample)
        return Reply(sample=sample, text=text, status=status)

    async def send_whole(self, request: Request) -> Reply:
        return await self.send(request)

    async def closed(self, streams: Sequence[Sequence[Request]]) -> Sequence[Reply]:
        raise NotImplementedError

    async def window_tokens(self) -> int | Missing:
        return self.paper.window_tokens

    async def count_tokens(self, path: str, body: Mapping[str, Any]) -> int | Missing:
        return Missing("not on paper")

    async def reset_cache(self) -> Missing | None:
        if self._reset is None:
            self.paper.forget()
        return self._reset

    async def speculation(self, setting: str) -> Missing | None:
        self.paper.settings.append(setting)
        why = self.paper.refuses.get(setting)
        return None if why is None else Missing(why)

    async def restart(self, speculation: str) -> Missing | None:
        return Missing("not on paper")

    async def speculation_depth(self) -> int | Missing:
        return self.paper.depth

    async def canary(self) -> Sequence[tuple[str, bool | None, str]]:
        return ()

    def now_s(self) -> float:
        return self.paper.now_s

    def record(self, record: Record) -> None:
        self.records.append(record)

    def doubt(self, doubt: Doubt) -> None:
        self.doubts.append(doubt)

    async def step(self, arm: str, done: int, total: int, text: str) -> None:
        self.steps.append((arm, done, total, text))
        if self._stops_after is not None and len(self.steps) > self._stops_after:
            raise RunStoppedError("cancelled")

    @asynccontextmanager
    async def arm(self, name: str, repeat: int) -> AsyncIterator[None]:
        self.arms.append((name, repeat))
        first, began_s = len(self.paper.requests), self.now_s()
        yield
        self.within_arms += self.paper.requests[first:]
        lag_s = self.paper.lag_s.get((name, repeat), 0.0)
        self.record(
            ArmEnd(
                arm=name,
                repeat=repeat,
                wall_s=self.now_s() - began_s,
                usd=self.usd(self.now_s() - began_s),
                client={"loop_lag_mean_s": lag_s, "cpu_cores": 0.1},
            )
        )

    def samples(self, arm: str, repeat: int | None = None) -> Sequence[Sample]:
        return [
            record
            for record in self.records
            if isinstance(record, Sample)
            and record.arm == arm
            and (repeat is None or record.repeat == repeat)
        ]

    def arm_ends(self, arm: str) -> Sequence[ArmEnd]:
        return [each for each in self.records if isinstance(each, ArmEnd) and each.arm == arm]

    def usd(self, seconds: float) -> Figure:
        return seconds * 0.44 / 3600


def prompt_text(body: Mapping[str, Any]) -> str:
    """A request's prompt, as a chat template would write it."""
    head = f"{body['system']}\n" if "system" in body else ""
    return head + "\n".join(f"<{each['role']}>\n{each['content']}" for each in body["messages"])


def _failed(request: Request, at_s: float, error: str) -> Sample:
    missing = Missing(error)
    return sample_of(
        request,
        at_s,
        ttft_s=missing,
        total_s=missing,
        error=error,
    )


def sample_of(request: Request, at_s: float, **figures: Any) -> Sample:
    """What a client notes of a request that is sent as soon as it is due."""
    return Sample(
        arm=request.arm,
        repeat=request.repeat,
        index=request.index,
        role=request.role,
        warm_up=request.warm_up,
        due_s=at_s,
        sent_s=at_s,
        **figures,
    )
