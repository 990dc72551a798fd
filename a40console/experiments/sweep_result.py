"""What a sweep found: a row a step, the sustained figure, and the knee. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from a40console.experiments.bench import ArmRepeat, Bench
from a40console.experiments.costs import dollars_per_million
from a40console.experiments.loads import doubted_failures
from a40console.experiments.rates import (
    counted,
    failed,
    failures,
    gaps_s,
    mean_prompt,
    ttfts_s,
)
from a40console.experiments.repeats import Measured
from a40console.experiments.result_words import percent, written
from a40console.experiments.saturation import (
    LATE,
    LEFT_OUT,
    MOST_LATE_SHARE,
    MOST_SCATTER_SHARE,
    in_time,
    leave_out,
)
from a40console.experiments.sweep_verdict import rate_of, step_name, verdict_of
from a40console.model import statistics
from a40console.model.figures import Figure, Missing, combine, number
from a40console.model.run_record import Sample
from a40console.model.run_result import (
    Cell,
    Column,
    Doubt,
    Plot,
    RunResult,
    Series,
    Table,
    Verdict,
)

SHARED_PREFIX_SHARE = 0.05
"""Prompts begin differently, but for what the chat template puts before them all: more than so much
of one out of the cache, beyond the template, is a fault of the measurement."""

TEMPLATE_TOKENS = 64
"""What a template may come to where the engine does not count it."""

_NO_STEP = Missing("no step was measured")

_COLUMNS = (
    Column(title="streams", digits=0),
    Column(title="sustained", unit="tok/s"),
    Column(title="±", unit="%"),
    Column(title="per stream", unit="tok/s"),
    Column(title="start to end", unit="tok/s"),
    Column(title="per 1M", unit="$", digits=3),
    Column(title="TTFT median", unit="s", digits=3),
    Column(title="TTFT p95", unit="s", digits=3),
    Column(title="gap median", unit="ms"),
    Column(title="gap p99", unit="ms"),
    Column(title="errors", digits=0),
)


def conclude(
    bench: Bench,
    streams: Iterable[int],
    stopped: str,
    *,
    cut: ArmRepeat | None = None,
    template_tokens: Figure = TEMPLATE_TOKENS,
) -> RunResult:
    """The result of the steps that there are.

    Args:
        bench: With what was recorded, and what an hour costs.
        streams: Of each step.
        stopped: Why the run ended before its time; empty where it did not.
        cut: Where the target went away, if it did.
        template_tokens: What the chat template adds to every prompt.
    """
    listed = sorted(set(streams))
    left_out, doubts = leave_out(bench, map(step_name, listed))
    ordered = [Measured.of(bench, step_name(count), count, left_out) for count in listed]
    every = (sample for count in listed for sample in bench.samples(step_name(count)))
    invalid, errors = doubted_failures(every, cut)
    doubts += errors
    for step in ordered:
        doubts += filter(None, (_shared_prefix(step, template_tokens), _late(step)))
    best = max((step for step in ordered if step.sustained.known), key=rate_of, default=None)
    if invalid or best is None:
        why = invalid or stopped or (LEFT_OUT if left_out else _reason(ordered))
        verdict = Verdict(kind="none", text=f"No figure stands: {why}.")
        return RunResult(
            headline=f"No figure: {why}",
            verdict=verdict,
            tables=(_errors(ordered),),
            doubts=tuple(doubts),
        )
    return RunResult(
        headline=_headline(bench, best),
        verdict=verdict_of(bench, ordered, best, stopped),
        tables=(_table(bench, ordered),),
        plots=_plots(bench, ordered),
        doubts=tuple(doubts),
    )


def _reason(steps: Sequence[Measured]) -> str:
    rate = steps[0].sustained.mean if steps else _NO_STEP
    return rate.reason if isinstance(rate, Missing) else _NO_STEP.reason


def _headline(bench: Bench, best: Measured) -> str:
    price = dollars_per_million(best.sustained.mean, bench.usd_per_h)
    cost = "" if isinstance(price, Missing) else f", ${written(price, 3)} per 1M tokens"
    return f"{written(best.sustained.mean)} tok/s sustained with {step_name(best.streams)}{cost}"


def _shared_prefix(step: Measured, template_tokens: Figure) -> Doubt | None:
    """A doubt of prompts that begin alike beyond the template."""
    cached, prompt = map(number, mean_prompt(step.samples))
    template = number(template_tokens)
    if cached is None or not prompt:
        return None
    beyond = cached - (TEMPLATE_TOKENS if template is None else template)
    if beyond <= SHARED_PREFIX_SHARE * prompt:
        return None
    text = (
        f"{beyond:.0f} tokens of a prompt ({percent(beyond / prompt)}) came out of the cache, "
        "beyond what the chat template puts before all"
    )
    arm = step_name(step.streams)
    return Doubt(code="shared-prefix", text=text, invalidates=False, arm=arm)


def _table(bench: Bench, steps: Sequence[Measured]) -> Table:
    requests = [len(counted(step.samples)) for step in steps]
    note = (
        "Closed loop: each stream sends its next request when its last one ended; the first of "
        "each is left out. Sustained: while every stream was busy. A gap covers a pass. "
        f"{sum(requests)} requests measured."
    )
    rows = tuple(_row(bench, step) for step in steps)
    return Table(title="Speed by streams", columns=_COLUMNS, rows=rows, note=note)


def _row(bench: Bench, step: Measured) -> tuple[Cell, ...]:
    rate = step.sustained.mean
    return (
        step.streams,
        rate,
        step.sustained.plus_minus(bench.seed),
        combine(lambda all_streams: all_streams / step.streams, rate),
        step.whole.mean,
        dollars_per_million(rate, bench.usd_per_h),
        *(
            _milliseconds(told) if name.startswith("gap") else told
            for name, (told, _) in _latencies_s(step).items()
        ),
        sum(map(failed, step.samples)),
    )


def _latencies_s(step: Measured) -> dict[str, tuple[Figure, str]]:
    """By column, with what is to be said of each."""
    mean, tail = "loop_lag_mean_s", "loop_lag_p99_s"
    judged: dict[str, tuple[Callable[[Sequence[Sample]], Figure], str, float]] = {
        "TTFT median": (lambda few: statistics.median(ttfts_s(few)), mean, MOST_LATE_SHARE),
        "TTFT p95": (lambda few: statistics.percentile(ttfts_s(few), 0.95), tail, MOST_LATE_SHARE),
        "gap median": (lambda few: statistics.median(gaps_s(few)), mean, MOST_SCATTER_SHARE),
        "gap p99": (lambda few: statistics.percentile(gaps_s(few), 0.99), tail, MOST_SCATTER_SHARE),
    }
    return {
        name: in_time(figure_of, step.samples, step.ends, lag, most_share)
        for name, (figure_of, lag, most_share) in judged.items()
    }


def _late(step: Measured) -> Doubt | None:
    """Which latencies are not told as they were stamped: the client's own are in them."""
    told = [f"{name} {said}" for name, (_, said) in _latencies_s(step).items() if said]
    if not told:
        return None
    text = f"not every latency is told, speeds stand: {'; '.join(told)}"
    return Doubt(code=LATE, text=text, invalidates=False, arm=step_name(step.streams))


def _errors(steps: Sequence[Measured]) -> Table:
    """What failed, where nothing else can be told."""
    columns = (
        Column(title="streams", digits=0),
        Column(title="requests", digits=0),
        Column(title="what happened"),
    )
    rows = tuple(
        (step.streams, len(step.samples), failures(step.samples) or "nothing failed")
        for step in steps
    )
    return Table(title="Requests", columns=columns, rows=rows)


def _milliseconds(seconds: Figure) -> Figure:
    return combine(lambda value: value * 1000, seconds)


def _plots(bench: Bench, steps: Sequence[Measured]) -> tuple[Plot, ...]:
    known = [step for step in steps if step.sustained.known]
    together = tuple(step.sustained.point(step.streams, bench.seed) for step in known)
    each = tuple(
        step.sustained.point(step.streams, bench.seed, share=step.streams) for step in known
    )
    return (
        Plot(
            title="Sustained speed of all streams",
            x_label="streams",
            y_label="tok/s",
            series=(Series(name="all streams", points=together),),
        ),
        Plot(
            title="Sustained speed of each stream",
            x_label="streams",
            y_label="tok/s",
            series=(Series(name="each stream", points=each),),
        ),
    )
