"""The field notes' two ways of keeping a context small, on the simulated A40, in its own time."""

from __future__ import annotations

from a40console.experiments.bench import Request
from a40console.experiments.compaction import Compaction
from a40console.model.experiment import settle
from a40console.model.run_record import Sample
from a40console.model.run_result import Interval
from a40console.sim.core import Core, Options
from a40console.sim.requests import Order
from a40console.sim.sheets import SHEETS
from a40console.sim.text import token_ids
from tests.experiments.paper_bench import PaperBench, PaperEngine, prompt_text, sample_of

SHEET = SHEETS["qwen3-coder-30b"]
WINDOW_TOKENS = 65_536
MEASURED = {"per-turn": 173.8, "block": 268.2}
"""Tokens a second, sustained, with speculation n=12."""


class SimulatedA40(PaperEngine):
    """The simulated engine's core, whose clock only its passes move."""

    def __init__(self) -> None:
        super().__init__(window_tokens=WINDOW_TOKENS)
        options = Options(max_model_len=WINDOW_TOKENS, depth=12, batched_tokens=16_384)
        self._core = Core(SHEET, options)

    def forget(self) -> None:
        self._core.pool.forget()

    def answer(self, request: Request) -> tuple[Sample, str, int]:
        began_s, name = self.now_s, f"r{len(self.requests)}"
        self.requests.append(request)
        prompt = token_ids(prompt_text(request.body))
        asked = int(request.body["max_tokens"])
        order = Order(
            request_id=name,
            external_id=name,
            prompt=prompt,
            max_tokens=asked,
            answer_tokens=asked + 1,
            regime=request.body.get("vllm_xargs", {"regime": "prose"})["regime"],
            seed=len(self.requests),
        )
        self._core.submit(order, self.now_s)
        while (event_s := self._core.next_event_s()) is not None:
            self.now_s = event_s
            self._core.advance(event_s)
        _, done = self._core.ended[-1]
        sample = sample_of(
            request,
            began_s,
            ttft_s=(done.first_token_s or 0.0) - began_s,
            total_s=self.now_s - began_s,
            prompt_tokens=len(prompt),
            cached_tokens=done.cached or 0,
            generated_tokens=asked,
        )
        return sample, "", 200


async def test_blocks_against_pruning_come_near_the_measured_ratio() -> None:
    """The notes' turns, 700 tokens of answer each, with some 10,000 tokens of context."""
    design = Compaction()
    asked = {
        "ways": "per-turn,block",
        "lengths": "2400;330/700*60",
        "thresholds": "10000",
        "facts": "0",
        "repeats": "2",
    }
    bench = PaperBench(SimulatedA40(), settle(design.offer, "standard", asked))
    result = await design.run(bench)
    sustained = {str(row[0]).removesuffix("-10k"): row[4] for row in result.tables[0].rows}
    for way, tokens_per_s in MEASURED.items():
        told = sustained[way]
        assert isinstance(told, float)
        assert 0.8 < told / tokens_per_s < 1.25
    ratio = result.verdict.ratio
    assert isinstance(ratio, Interval)
    assert 1.3 < ratio.value < 1.8, "measured: 268.2 ÷ 173.8 = 1.54"
    assert result.verdict.winner == "block-10k"
    assert result.verdict.kind == "difference"
