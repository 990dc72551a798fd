"""Speculation turned off and on again under four streams of a real vLLM, and what came of it.

As a program it prints the table: ``python -m tests.vllm_plugin.live_toggle 0.32.0 0.27.1``.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from tests.vllm_plugin.real_engine import DEPTH, Engine, Stream, connected, running

STREAMS = 4
_SENTENCES = (
    "the cat sat on the mat and the dog lay by it. ",
    "one two three four five six seven eight nine ten. ",
    "red is red and blue is blue and green is green. ",
    "a ship sails the sea and the sea carries the ship. ",
)
PROMPTS = tuple(f"Repeat this text word for word: {sentence * 16}" for sentence in _SENTENCES)


@dataclass(frozen=True)
class Stretch:
    """What the engine did between two changes."""

    name: str
    seconds: float
    tokens: int
    passes: int
    drafts: int
    draft_tokens: int
    accepted_tokens: int

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.seconds if self.seconds else 0.0


@dataclass
class Toggle:
    """One run: on, off, on."""

    stretches: list[Stretch] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    change_s: list[float] = field(default_factory=list)
    """From the request for a change to its answer."""

    drafting_passes_after_off: int = 0
    """Passes with drafts after the worker had said off."""

    @property
    def longest_gap_s(self) -> list[float]:
        """The longest silence of each stream once it spoke."""
        return [
            max(after - before for before, after in zip(s.at_s, s.at_s[1:], strict=False))
            for s in self.streams
        ]


async def toggle_live(engine: Engine, *, tokens: int, stretch_s: float) -> Toggle:
    """Four streams with speculation on, then off, then on: each for so long, all four running.

    On a fast machine a stretch is shorter: none takes more than a quarter of a stream's tokens.
    """
    run = Toggle(streams=[Stream() for _ in range(STREAMS)])
    await _turn(engine, run, DEPTH)
    run.change_s.clear()
    # vLLM on a CPU compiles what verifies drafts in the first pass that has some, for seconds.
    await asyncio.gather(*(engine.chat(f"warm-{at}", p, 32) for at, p in enumerate(PROMPTS)))
    await engine.settled()
    chats = [
        asyncio.create_task(
            engine.follow(
                stream,
                f"live-{index}",
                PROMPTS[index],
                tokens,
                ignore_eos=True,
                return_token_ids=True,
            )
        )
        for index, stream in enumerate(run.streams)
    ]
    try:
        await _all_begun(run)
        marks = [await _mark(engine)]
        await _while_all_run(run, stretch_s, tokens // 4)
        await _turn(engine, run, 0)
        marks.append(told_off := await _mark(engine))
        settled = await _a_pass_later(engine, told_off)
        await _while_all_run(run, stretch_s, tokens // 4)
        marks.append(await _mark(engine))
        late = settled["drafts"] - told_off["drafts"], marks[-1]["drafts"] - settled["drafts"]
        run.drafting_passes_after_off = sum(drafts > 0 for drafts in late)
        await _turn(engine, run, DEPTH)
        await _while_all_run(run, stretch_s, tokens // 4)
        marks.append(await _mark(engine))
        await asyncio.gather(*chats)
    finally:
        for chat in chats:
            chat.cancel()
    for name, before, after in zip(("before", "off", "on"), marks, marks[1:], strict=False):
        run.stretches.append(_stretch(name, before, after))
    return run


def alike(one: list[int], other: list[int]) -> int:
    """How many tokens two answers have in common before they part."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


async def _turn(engine: Engine, run: Toggle, depth: int) -> None:
    began_s = time.monotonic()
    answer = await engine.control("speculation", tokens=depth)
    run.change_s.append(time.monotonic() - began_s)
    assert answer.status_code == 200, answer.text
    assert answer.json()["after"] == depth


async def _all_begun(run: Toggle) -> None:
    for _ in range(20_000):
        if all(stream.ids for stream in run.streams):
            return
        await asyncio.sleep(0.01)


async def _while_all_run(run: Toggle, stretch_s: float, most_tokens: int) -> None:
    """Waits so long, or until a stream has made so many tokens more or ends."""
    until_s = time.monotonic() + stretch_s
    before = [len(stream.ids) for stream in run.streams]
    while time.monotonic() < until_s:
        made = [len(s.ids) - had for s, had in zip(run.streams, before, strict=True)]
        if max(made) >= most_tokens or any(stream.finish_reason for stream in run.streams):
            return
        await asyncio.sleep(0.005)


async def _mark(engine: Engine) -> dict[str, Any]:
    state = await engine.state()
    return {**state["totals"], "at_s": state["at_monotonic_s"]}


async def _a_pass_later(engine: Engine, since: dict[str, Any]) -> dict[str, Any]:
    mark = since
    while mark["steps"] <= since["steps"] + 1:
        await asyncio.sleep(0.02)
        mark = await _mark(engine)
    return mark


def _stretch(name: str, before: dict[str, Any], after: dict[str, Any]) -> Stretch:
    return Stretch(
        name=name,
        seconds=after["at_s"] - before["at_s"],
        tokens=after["generated_tokens"] - before["generated_tokens"],
        passes=after["steps"] - before["steps"],
        drafts=after["drafts"] - before["drafts"],
        draft_tokens=after["draft_tokens"] - before["draft_tokens"],
        accepted_tokens=after["accepted_tokens"] - before["accepted_tokens"],
    )


def table(version: str, run: Toggle, outputs: list[str]) -> str:
    """What the operator sees of it."""
    head = "seconds", "tokens", "passes", "tok/s", "tok/pass", "drafts", "drafted", "accepted"
    lines = [
        f"vLLM {version}, {STREAMS} greedy streams, n-gram depth {DEPTH}, changed live",
        f"{'':8}" + "".join(f"{name:>10}" for name in head),
    ]
    for s in run.stretches:
        cells = f"{s.seconds:.1f}", s.tokens, s.passes, f"{s.tokens_per_s:.1f}"
        rest = f"{s.tokens / s.passes:.2f}", s.drafts, s.draft_tokens, s.accepted_tokens
        lines.append(f"{s.name:8}" + "".join(f"{cell:>10}" for cell in (*cells, *rest)))
    off_s, on_s = run.change_s
    late = run.drafting_passes_after_off
    lines.append(
        f"change off: {off_s * 1e3:.0f} ms, on: {on_s * 1e3:.0f} ms; "
        f"passes with drafts after the worker said off: {late}"
    )
    for index, (stream, gap) in enumerate(zip(run.streams, run.longest_gap_s, strict=True)):
        told = f"{stream.usage['completion_tokens']} tokens, {stream.finish_reason}"
        lines.append(f"stream {index}: {told}, longest silence {gap:.2f} s")
    return "\n".join([*lines, *outputs])


async def _show(version: str, tokens: int, stretch_s: float) -> None:
    with running(version) as server:
        async with connected(server) as client:
            engine = Engine(server, client)
            run = await toggle_live(engine, tokens=tokens, stretch_s=stretch_s)
            await engine.settled()
            print(table(version, run, await _compared(engine, run, tokens)), flush=True)


async def _compared(engine: Engine, run: Toggle, tokens: int) -> list[str]:
    """Each stream's output against the same prompt alone, without speculation and with a toggle."""
    lines = []
    for index, stream in enumerate(run.streams):
        plain = await alone(engine, index, tokens, depths=(0,))
        told = await parting(engine, plain, stream)
        lines.append(f"output {index}, beside three others, against alone and off: {told}")
    plain = await alone(engine, 0, tokens, depths=(0,))
    turned = await alone(engine, 0, tokens, depths=(DEPTH, 0, 2, 0, DEPTH))
    told = await parting(engine, plain, turned)
    return [*lines, f"one stream alone, changed five times, against off: {told}"]


async def alone(engine: Engine, index: int, tokens: int, *, depths: tuple[int, ...]) -> Stream:
    """One of the prompts without others, at these depths, each for a while."""
    stream = Stream()
    chat: asyncio.Task[None] | None = None
    for depth in depths:
        assert (await engine.control("speculation", tokens=depth)).status_code == 200
        if chat is None:
            settings = {"ignore_eos": True, "return_token_ids": True}
            chat = asyncio.create_task(
                engine.follow(stream, f"alone-{index}", PROMPTS[index], tokens, **settings)
            )
        await asyncio.sleep(0.5)
    assert chat is not None
    await chat
    return stream


async def parting(engine: Engine, one: Stream, other: Stream) -> str:
    """Where two answers part, and how close the two likeliest tokens are there."""
    same = alike(one.ids, other.ids)
    if same == len(one.ids) == len(other.ids):
        return "identical"
    apart = await engine.apart([*one.prompt_ids, *one.ids[:same]])
    return f"part at token {same}, whose two likeliest are {apart:.3f} apart in log probability"


if __name__ == "__main__":
    for asked in sys.argv[1:]:
        asyncio.run(_show(asked, tokens=900, stretch_s=4.0))
