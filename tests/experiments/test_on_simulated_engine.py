"""The experiments on the simulated engine, by the true client and the engine's own counters."""

from __future__ import annotations

import asyncio

import pytest

from a40console.experiments import saturation
from a40console.experiments.bench import ArmFailedError, RunStoppedError
from a40console.experiments.lossless import Lossless
from a40console.experiments.protocol import Protocol
from a40console.experiments.regimes import Regimes
from a40console.experiments.sweep import Sweep
from a40console.model.figures import Missing, number
from a40console.model.run_result import RunResult
from a40console.service.run_bench import RunBench
from tests.experiments.sim_bench import SimEngine, sim_bench
from tests.experiments.small_engine import shown

COUNTED_WRONG = {"counters-disagree", "foreign-traffic", "not-in-force", "errors", "shared-prefix"}


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No repeat is left out because the machine is busy: here the engine's counts are looked at."""
    monkeypatch.setattr(saturation, "spoiled", lambda end, samples: "")


def codes(bench: RunBench, result: RunResult) -> set[str]:
    return {doubt.code for doubt in (*bench.doubts, *result.doubts)}


async def test_a_sweep_counts_as_the_engine_does() -> None:
    asked = {"streams": "1,4", "repeats": "1", "requests": "1", "output_tokens": "32"}
    async with sim_bench(Sweep.offer, "--speed", "2", asked=asked) as bench:
        result = await Sweep().run(bench)

        assert not codes(bench, result) & COUNTED_WRONG
        for name, streams in (("1 stream", 1), ("4 streams", 4)):
            (end,) = bench.arm_ends(name)
            assert number(end.server["generated_tokens"]) == 32 * streams
            cached = [number(sample.cached_tokens) for sample in bench.samples(name)]
            assert not any(cached)
        rows = result.tables[0].rows
        assert all(shown(row[1]) for row in rows)
        assert result.verdict.kind == "none"

        await Sweep().run(bench)
        again = bench.samples("4 streams")[-8:]
        assert not any(number(sample.cached_tokens) for sample in again), "the cache outlived a run"


async def test_depth_is_told_by_tokens_a_pass() -> None:
    asked = {"regimes": "code-edit", "streams": "1", "output_tokens": "96", "scan": "no"}
    words = ("--speed", "2", "--max-num-batched-tokens", "16384")
    async with sim_bench(
        Regimes.offer, *words, depth=24, preset="standard", asked=asked | {"repeats": "1"}
    ) as bench:
        result = await Regimes().run(bench)

        assert not codes(bench, result) & COUNTED_WRONG
        per_pass = {row[2]: shown(row[6]) for row in result.tables[0].rows}
        assert set(per_pass) == {"off", "off-live", "on-24"}
        assert per_pass["off"] == per_pass["off-live"] == 1
        assert (per_pass["on-24"] or 0) > 6
        (scan,) = [row for row in result.tables[1].rows if row[1] == 24]
        assert "too few" in str(scan[7])


@pytest.mark.parametrize(
    ("model", "baseline", "kind"),
    [
        ("kimi-linear-48b", "off-live", "failed"),
        ("qwen3-coder-30b", "off-live", "passed"),
    ],
)
async def test_only_the_model_that_corrupts_code_is_found_out(
    model: str, baseline: str, kind: str
) -> None:
    asked = {"baseline": baseline, "probes": "2", "output_tokens": "64"}
    async with sim_bench(
        Lossless.offer, "--speed", "20", depth=5, asked=asked, model=model
    ) as bench:
        result = await Lossless().run(bench)

        assert result.verdict.kind == kind, result.verdict
        assert bool(result.excerpts) == (kind == "failed")
        assert ("came out again" in result.verdict.text) == (kind == "failed")


async def test_the_messages_route_keeps_to_the_protocol() -> None:
    async with sim_bench(Protocol.offer, "--speed", "20") as bench:
        result = await Protocol().run(bench)

    rows = {row[0]: row[1] for row in result.tables[0].rows}
    assert [rows[name] for name in ("text", "stream order", "count_tokens")] == ["passed"] * 3
    assert "failed" not in rows.values()


async def test_an_engine_killed_in_mid_arm_leaves_the_steps_before_and_no_figure_of_its_own() -> (
    None
):
    asked = {"streams": "1,8", "repeats": "1", "requests": "1", "output_tokens": "256"}
    async with sim_bench(Sweep.offer, asked=asked) as bench:
        engine, design = bench.client, Sweep()
        assert isinstance(engine, SimEngine)

        async def kill() -> None:
            while not bench.arm_ends("1 stream"):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.05)
            await asyncio.sleep(1)
            engine.process.process.kill()

        killing = asyncio.create_task(kill())
        with pytest.raises((ArmFailedError, RunStoppedError)):
            await design.run(bench)
        await killing
        result = design.partial(bench, "the engine ended")

    rates = {row[0]: row[1] for row in result.tables[0].rows}
    assert (shown(rates[1]) or 0) > 0
    assert isinstance(rates[8], Missing)
    assert result.verdict.kind == "none"
    assert not [doubt for doubt in result.doubts if doubt.code == "errors" and doubt.invalidates]
