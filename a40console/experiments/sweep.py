"""How speed grows with streams at once: the sustained rate of each step, and where it bends."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from a40console.experiments.asking import settle_asking
from a40console.experiments.bench import ArmFailedError, ArmRepeat, Bench, Known, RunStoppedError
from a40console.experiments.costs import dollars, load_seconds, sum_of, window_refusal
from a40console.experiments.loads import Load, run_load
from a40console.experiments.offers import SWEEP
from a40console.experiments.prompts import PROSE_TEMPERATURE, TOKENS_PER_WORD, filler, prose
from a40console.experiments.settled_values import whole, wholes
from a40console.experiments.sweep_result import conclude
from a40console.experiments.sweep_verdict import step_name
from a40console.model.experiment import Experiment, Value
from a40console.model.figures import Figure, Missing
from a40console.model.run import RunPlan, RunTarget
from a40console.model.run_result import RunResult

NOT_ASKED = Missing("not asked yet")

_ASK_TOKENS = 40
"""Of a prompt without its filler."""

_FEW_WORDS, _MANY_WORDS = 100, 300
"""The lengths whose tokens are counted."""


class Sweep:
    """The concurrency sweep."""

    offer: Experiment = SWEEP

    def __init__(self) -> None:
        self._cut: ArmRepeat | None = None
        self._template_tokens: Figure = NOT_ASKED

    def plan(self, settled: Mapping[str, Value], known: Known, target: RunTarget) -> RunPlan:
        """One arm a step; other clients share the engine meanwhile."""
        streams, repeats = wholes(settled, "streams"), whole(settled, "repeats")
        prompt, output = whole(settled, "prompt_tokens"), whole(settled, "output_tokens")
        each = whole(settled, "requests") + 1
        seconds = sum_of(
            load_seconds(
                known,
                streams=count,
                requests=count * each * repeats,
                prompt_tokens=prompt,
                output_tokens=output,
            )
            for count in streams
        )
        held = max(streams) * (prompt + output)
        return RunPlan(
            arms=tuple(map(step_name, streams)),
            requests=sum(streams) * each * repeats,
            seconds=seconds,
            usd=dollars(seconds, known.usd_per_h),
            intrusion="shares",
            consequences=(
                f"{step_name(max(streams))} at once at most: whoever else is there is slower.",
                f"They hold up to {held} tokens of KV cache: where it is full, cached prefixes go.",
            ),
            refusal=window_refusal(prompt, output, known.window_tokens),
        )

    async def run(self, bench: Bench) -> RunResult:
        """Every step in every repeat, up and down in turn so that drift cancels out.

        Raises:
            ArmFailedError: Where the target answers nothing.
            RunStoppedError: Where the run is to end, or the target answers no more.
        """
        prompt, output = (
            whole(bench.settled, "prompt_tokens"),
            whole(bench.settled, "output_tokens"),
        )
        window = await bench.engine.window_tokens()
        if refusal := window_refusal(prompt, output, window):
            raise ArmFailedError(refusal)
        asking = await settle_asking(bench)
        self._template_tokens = await _count(bench, "")
        text = partial(prose, words=await _words_for(bench, max(0, prompt - _ASK_TOKENS)))
        streams, repeats = wholes(bench.settled, "streams"), whole(bench.settled, "repeats")
        done, total = 0, len(streams) * repeats
        for repeat in range(repeats):
            for count in streams if repeat % 2 == 0 else tuple(reversed(streams)):
                arm = step_name(count)
                await bench.step(arm, done, total, f"repeat {repeat + 1} of {repeats}")
                load = Load(
                    arm=arm,
                    streams=count,
                    requests=whole(bench.settled, "requests"),
                    output_tokens=output,
                    temperature=PROSE_TEMPERATURE,
                    text=text,
                )
                try:
                    await run_load(bench, asking, load, repeat)
                except ArmFailedError as error:
                    self._cut = (arm, repeat)
                    if not done:
                        raise
                    raise RunStoppedError(f"the target answers no more: {error}") from error
                done += 1
        return self._concluded(bench, "")

    def partial(self, bench: Bench, why: str) -> RunResult:
        """The steps that ended."""
        return self._concluded(bench, why)

    def _concluded(self, bench: Bench, stopped: str) -> RunResult:
        return conclude(
            bench,
            wholes(bench.settled, "streams"),
            stopped,
            cut=self._cut,
            template_tokens=self._template_tokens,
        )


async def _words_for(bench: Bench, tokens: int) -> int:
    """Words of filler that make about so many tokens, by the engine's own tokenizer."""
    counts: list[int] = []
    for words in (_FEW_WORDS, _MANY_WORDS):
        count = await _count(bench, filler(words, bench.seed))
        if isinstance(count, Missing):
            return int(tokens / TOKENS_PER_WORD)
        counts.append(count)
    each = (counts[1] - counts[0]) / (_MANY_WORDS - _FEW_WORDS)
    return int(tokens / (each if each > 0 else TOKENS_PER_WORD))


async def _count(bench: Bench, text: str) -> int | Missing:
    """Prompt tokens of a question with this text, by the engine."""
    body = {"model": bench.model, "messages": [{"role": "user", "content": text}]}
    return await bench.engine.count_tokens("/v1/chat/completions", body)
