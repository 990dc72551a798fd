"""Before a run starts: what it would take, whom it disturbs, and what cannot be is refused."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from a40console.errors import ConsoleError, RefusedError, UsageError
from a40console.experiments.bench import Bench, Design, Known
from a40console.ledger.store import Ledger
from a40console.model.engine import EngineState
from a40console.model.experiment import Experiment, Parameter, Value
from a40console.model.figures import Estimated, Missing, number
from a40console.model.profile import Profile, Speculation
from a40console.model.run import RunEnvironment, RunPlan, RunSpec, RunTarget
from a40console.model.run_record import Ended, Sample, Started
from a40console.model.run_result import RunResult
from a40console.model.snapshot import Snapshot
from a40console.operations.status import EngineStatus
from a40console.service.run_disturbed import Clients
from a40console.service.run_folder import RunFolder
from a40console.service.run_planning import (
    every_design,
    planned,
    refuse_engine,
    settled_of,
    turns_live,
)
from a40console.service.run_records import RunRecords
from a40console.service.run_speeds import (
    NO_SPEEDS,
    UNREAD,
    Speeds,
    read_per_s,
    speeds_in,
    speeds_of,
)
from tests import make_snapshot as make
from tests.service import orders

OFFER = Experiment(
    name="sweep",
    title="Sweep",
    question="?",
    parameters=(
        Parameter(name="streams", kind="wholes", help="", default=(1, 2), least=1, most=512),
    ),
)
KNOWN = Known(
    generation_tokens_per_s=Estimated(100.0),
    prefill_tokens_per_s=Estimated(2000.0),
    window_tokens=32768,
    usd_per_h=0.44,
    speculation_depth=0,
    can_reset_cache=True,
    live_speculation=False,
)
NOBODY = Clients(active=(), resting=(), requests=0)


class Sweep:
    """A design that takes ten minutes and five cents."""

    offer = OFFER

    def plan(self, settled: Mapping[str, Value], known: Known, target: RunTarget) -> RunPlan:
        return replace(orders.plan(), seconds=Estimated(600.0), usd=Estimated(0.05))

    async def run(self, bench: Bench) -> RunResult:
        raise NotImplementedError

    def partial(self, bench: Bench, why: str) -> RunResult:
        raise NotImplementedError


def designs() -> Mapping[str, Design]:
    return {"sweep": Sweep()}


def spec(**changes: Any) -> RunSpec:
    return RunSpec(**({"experiment": "sweep"} | changes))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"experiment": "nonsense"}, "no experiment 'nonsense'"),
        ({"preset": "huge"}, "no preset 'huge'"),
        ({"parameters": {"stream": "1"}}, "no parameter 'stream'"),
        ({"parameters": {"streams": "0"}}, "at least 1"),
        ({"parameters": {"streams": "one"}}, "whole number"),
        ({"max_minutes": 0.0}, "minutes"),
        ({"max_minutes": -3.0}, "minutes"),
        ({"max_usd": Decimal(0)}, "more than 0"),
        ({"note": "x" * 3000}, "note"),
        ({"target": RunTarget(kind="url", url="ftp://x")}, "no address"),
        ({"target": RunTarget(kind="url", url="http://x:99999")}, "no address"),
        ({"target": RunTarget(kind="url", url="http://key@127.0.0.1:9")}, "password"),
        ({"target": RunTarget(kind="url", url="htp://me:key@x")}, "password"),
        ({"target": RunTarget(kind="url", url="http://x:1?api_key=key")}, "query"),
        ({"target": RunTarget(kind="url", url="http://x:1/a b")}, "no address"),
        ({"max_usd": Decimal("1e400")}, "at most"),
    ],
)
def test_what_cannot_be_is_a_usage_error_that_names_it(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        settled_of(designs, spec(**changes))
    assert told in refused.value.message
    assert "key" not in refused.value.message, "it would be written down"


def test_every_parameter_is_settled() -> None:
    _, settled = settled_of(designs, spec(parameters={"streams": "1,4"}))
    assert settled == {"streams": (1, 4)}


def test_a_limit_of_dollars_needs_a_price() -> None:
    unpriced = replace(KNOWN, usd_per_h=Missing("the profile names no price"))
    design, settled = settled_of(designs, spec())
    plan = planned(design, settled, spec(max_usd=Decimal(1)), unpriced, NOBODY)
    assert "the profile names no price" in plan.refusal
    assert planned(design, settled, spec(max_usd=Decimal(1)), KNOWN, NOBODY).refusal == ""


def test_a_limit_that_will_end_it_is_told_ahead() -> None:
    design, settled = settled_of(designs, spec())
    plan = planned(design, settled, spec(max_minutes=5.0, max_usd=Decimal("0.01")), KNOWN, NOBODY)
    assert len([line for line in plan.consequences if "will probably end it" in line]) == 2
    plan = planned(design, settled, spec(max_minutes=20.0, max_usd=Decimal(1)), KNOWN, NOBODY)
    assert plan.consequences == ()


def sample(arm: str, **changes: Any) -> Sample:
    values: dict[str, Any] = {
        "arm": arm,
        "repeat": 0,
        "index": 0,
        "warm_up": False,
        "due_s": 0.0,
        "sent_s": 0.0,
        "ttft_s": 0.5,
        "total_s": 1.5,
        "prompt_tokens": 1000,
        "cached_tokens": 0,
        "generated_tokens": 101,
    }
    return Sample(**(values | changes))


def test_a_plan_rests_on_what_one_stream_had_in_earlier_runs() -> None:
    many = [sample("8 streams", total_s=8.5, ttft_s=4.0) for _ in range(8)]
    found = speeds_of([sample("1 stream"), sample("1 stream", total_s=1.6), *many])
    rate = number(found.generation_tokens_per_s)
    assert rate is not None
    assert 90 < rate <= 100
    assert found.prefill_tokens_per_s == Estimated(2000.0)


def read_in(seconds: float, prompt: int = 4_000, cached: int = 0, **changes: Any) -> Any:
    return make.recent(prompt_tokens=prompt, cached_tokens=cached, prefill_s=seconds, **changes)


def test_tiny_prompts_say_nothing_of_how_fast_a_long_one_is_read() -> None:
    """Its tokens a second of the clock would let ten minutes look like hours."""
    tiny = [read_in(0.5, prompt=40), read_in(0.5, prompt=9_000, cached=8_990)]
    assert number(read_per_s(lately(*tiny))) is None
    assert read_per_s(lately(*tiny, read_in(2.0))) == Estimated(2000.0)
    assert number(read_per_s(lately())) is None
    assert speeds_of([sample("a", prompt_tokens=40)]).prefill_tokens_per_s == UNREAD


def test_the_longest_prompts_say_it_of_this_engine_alone() -> None:
    short = [read_in(1.0, prompt=300) for _ in range(20)]
    long = [read_in(2.0) for _ in range(5)]
    assert read_per_s(lately(*short, *long)) == Estimated(2000.0)
    before = read_in(0.1, ended_at="2026-11-29T12:00:00Z")
    assert number(read_per_s(lately(before))) is None


def lately(*recent: Any) -> Snapshot:
    """An engine that has run for an hour, and what it answered."""
    found = make.snapshot(recent=recent)
    return replace(found, engine=replace(found.engine, uptime_s=3600.0))


def test_each_speed_is_the_newest_that_an_earlier_run_measured(tmp_path: Path) -> None:
    """A canary's few tokens take nothing away from what the sweep before it showed."""
    with closing(Ledger.open(tmp_path / "ledger.sqlite")) as ledger:
        keep(ledger, tmp_path, 1, sample("1 stream"))
        keep(ledger, tmp_path, 2, sample("canary", prompt_tokens=20, total_s=2.5))
        found = speeds_in(ledger, "sim", simulated=True)
        assert found == Speeds(Estimated(50.0), Estimated(2000.0))
        assert speeds_in(ledger, "another", simulated=True) == NO_SPEEDS
        assert speeds_in(ledger, "sim", simulated=False) == NO_SPEEDS, "a profile of that name"


def test_a_run_that_was_measured_elsewhere_says_nothing_of_this_machine(tmp_path: Path) -> None:
    with (
        closing(Ledger.open(tmp_path / "there.sqlite")) as there,
        closing(Ledger.open(tmp_path / "here.sqlite")) as here,
    ):
        keep(there, tmp_path, 1, sample("1 stream"))
        [run] = there.runs(1)
        here.import_run(there.document(run.id), origin="pod")
        assert len(here.samples(run.id)) == 1
        assert speeds_in(here, "sim", simulated=True) == NO_SPEEDS


def keep(ledger: Ledger, runs: Path, number: int, told: Sample) -> None:
    folder = RunFolder(runs / f"20261130-17450{number}-sweep-1f3a")
    order = orders.order(folder.id)
    folder.write_order(order)
    environment = order.environment
    assert isinstance(environment, RunEnvironment)
    at = orders.AT
    begun = Started(at=at, environment=environment, plan=order.plan, settled=order.settled)
    with RunRecords(folder.records_file) as records:
        for record in (begun, told, Ended(at=at, state="partial", reason="cancelled")):
            records.append(record)
    ledger.ingest(folder.path)


def test_what_failed_or_was_cached_says_nothing_of_a_speed() -> None:
    failed = sample("a", error="HTTP 500")
    cached = sample("a", cached_tokens=999, generated_tokens=Missing("no usage"))
    assert speeds_of([failed, cached]) == NO_SPEEDS
    assert speeds_of([]) == NO_SPEEDS


def test_a_run_needs_an_engine_that_serves_and_that_nothing_changes() -> None:
    serving = EngineStatus(state=EngineState.SERVING)
    refuse_engine(RunTarget(), serving, changing="")
    with pytest.raises(RefusedError, match="switch to b is under way"):
        refuse_engine(RunTarget(), serving, changing="switch to b")
    for state in set(EngineState) - {EngineState.SERVING}:
        with pytest.raises(ConsoleError):
            refuse_engine(RunTarget(kind="gateway"), EngineStatus(state=state), changing="")
        refuse_engine(RunTarget(kind="url", url="http://x"), EngineStatus(state=state), changing="")


def test_what_a_run_of_ours_changes_meanwhile_lets_the_next_one_wait() -> None:
    """Its restart, and the engine that is put back after it."""
    for state in (EngineState.SERVING, EngineState.STOPPING, EngineState.FAILED):
        status = EngineStatus(state=state)
        refuse_engine(RunTarget(), status, changing="restart as it was", measured=True)
    coming = EngineStatus(state=EngineState.STARTING)
    refuse_engine(RunTarget(), coming, changing="", measured=True)
    with pytest.raises(RefusedError, match="has failed"):
        refuse_engine(
            RunTarget(), EngineStatus(state=EngineState.FAILED), changing="", measured=True
        )


def test_a_model_is_named_in_letters() -> None:
    with pytest.raises(UsageError, match="control characters"):
        settled_of(every_design, spec(experiment="sweep", target=RunTarget(model="a\x1b[31m")))


@pytest.mark.parametrize("text", ["1,,2", "1,2,", "1_0", "\u0661", "1e1", "", "9" * 5000])
def test_a_number_is_written_in_plain_digits(text: str) -> None:
    with pytest.raises(UsageError):
        settled_of(every_design, spec(experiment="sweep", parameters={"streams": text}))


def test_lengths_of_ones_own_say_how_many_turns_there_are() -> None:
    lengths = {"lengths": "2400;330/700*7,90/20"}
    _, settled = settled_of(every_design, spec(experiment="compaction", parameters=lengths))
    assert (settled["turns"], settled["lengths"]) == (8, lengths["lengths"])
    for written in ("", "2400;nonsense"):
        asked = spec(experiment="compaction", parameters={"lengths": written, "turns": "9"})
        assert settled_of(every_design, asked)[1]["turns"] == 9


def test_an_engine_too_busy_to_tell_is_taken_for_what_it_was_started_as() -> None:
    asked = Speculation(enabled=True, method="ngram", tokens=5)
    ours = Profile(name="x", kind="vllm", model="x", plugin=True, speculation=asked)
    unheard = make.speculation(control="restart", source="vllm.metrics")
    assert turns_live(ours, unheard)
    assert not turns_live(replace(ours, plugin=False), unheard)
    assert not turns_live(None, unheard)
    assert turns_live(ours, make.speculation(control="live", source="vllm.plugin"))
    assert not turns_live(ours, make.speculation(control="restart", source="vllm.plugin"))
    assert not turns_live(ours, make.speculation(control="none", source="vllm.metrics")), "locked"
