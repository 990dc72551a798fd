"""What runs found."""

from __future__ import annotations

from random import Random

from a40console.model.figures import Estimated, Missing
from a40console.model.run_result import (
    Column,
    Doubt,
    Interval,
    Plot,
    Point,
    RunResult,
    Series,
    Table,
    Verdict,
)
from tests.make_runs.settings import ARMS

TURN_S = {"none": 2.9, "cc-auto-48k": 3.4, "cc-clear": 3.8, "per-turn": 4.4, "block": 3.0}
NO_SPECULATION = Missing("started without speculation")
REPEATS = 3
STEPS = (
    (1, 77.6, 77.6, 1.575),
    (2, 141.0, 70.5, 0.867),
    (4, 265.3, 66.3, 0.461),
    (8, 496.8, 62.1, 0.246),
    (16, 782.4, 48.9, 0.156),
    (32, 1165.6, 36.4, 0.105),
)


def compaction_result() -> RunResult:
    """Five arms, and what follows."""
    rows = tuple(
        (
            arm,
            TURN_S[arm] * 120,
            TURN_S[arm] * 120 * 0.44 / 3600,
            TURN_S[arm] * 2.1,
            worst,
            recover,
            reread,
            recall,
        )
        for arm, worst, recover, reread, recall in (
            ("none", 9.1, Missing("it never shrank"), 0, 0.98),
            ("cc-auto-48k", 31.4, 2, 181_220, 0.61),
            ("cc-clear", 18.0, 4, 402_877, 0.83),
            ("per-turn", 14.2, Missing("it shrinks every turn"), Estimated(1_204_000), 0.71),
            ("block", 16.9, 1, 96_410, 0.74),
        )
    )
    table = Table(
        title="The same 120 turns",
        columns=(
            Column(title="arm"),
            Column(title="wall", unit="s"),
            Column(title="cost", unit="$", digits=4),
            Column(title="p95 turn", unit="s"),
            Column(title="worst turn", unit="s"),
            Column(title="recovers in", unit="turns", digits=0),
            Column(title="re-read", unit="tokens", digits=0),
            Column(title="recall", digits=2),
        ),
        rows=rows,
        note="Summary calls are in the time; 1 warm-up turn a session is left out.",
    )
    age = Table(
        title="Recall of planted facts by age",
        columns=(
            Column(title="arm"),
            *(Column(title=f"{age} turns ago", digits=2) for age in ("1–20", "21–60", "61–120")),
        ),
        rows=(
            ("none", 1.0, 0.98, 0.96),
            ("cc-auto-48k", 0.95, 0.60, 0.28),
            ("per-turn", 1.0, 0.85, 0.28),
            ("block", 1.0, 0.88, 0.34),
        ),
        note="12 facts an arm and repeat, asked on a fork.",
    )
    verdict = Verdict(
        kind="difference",
        text="block does the same work 1.47 × as fast as per-turn and costs $0.044 a session;"
        " it remembers 74 % of the planted facts, per-turn 71 %.",
        winner="block",
        ratio=Interval(value=1.47, low=1.41, high=1.52, confidence=0.95, repeats=REPEATS),
        paste="export CLAUDE_CODE_AUTO_COMPACT_WINDOW=96000",
    )
    return RunResult(
        headline="block 360 s for 120 turns, per-turn 528 s",
        verdict=verdict,
        tables=(table, age),
        plots=(_turns_plot(), _wall_plot()),
        doubts=(
            Doubt(
                code="vcpu-throttled",
                text="The container was throttled for 6.1 % of the arm.",
                invalidates=False,
                arm="cc-clear",
            ),
        ),
    )


def _turns_plot() -> Plot:
    random = Random(3)
    series = tuple(
        Series(
            name=arm,
            points=tuple(
                Point(x=turn, y=TURN_S[arm] * (0.6 + 0.8 * random.random()) + turn * 0.004)
                for turn in range(1, 121)
            ),
        )
        for arm in ARMS
    )
    return Plot(title="Seconds a turn", x_label="turn", y_label="s", series=series)


def _wall_plot() -> Plot:
    series = tuple(
        Series(
            name=arm,
            points=(
                Point(x=1, y=TURN_S[arm] * 120, low=TURN_S[arm] * 116, high=TURN_S[arm] * 125),
            ),
        )
        for arm in ARMS
    )
    return Plot(
        title="Wall seconds for the same work",
        x_label="arm",
        y_label="s",
        series=series,
        style="bars",
    )


def sweep_result() -> RunResult:
    """Output grows with the streams."""
    table = Table(
        title="Streams",
        columns=(
            Column(title="streams", digits=0),
            Column(title="sustained", unit="tok/s"),
            Column(title="per stream", unit="tok/s"),
            Column(title="$/1M output", unit="$", digits=3),
        ),
        rows=STEPS,
        note="512 tokens a request, distinct prefixes, closed loop; 1 warm-up request a stream"
        " is left out.",
    )
    points = tuple(
        Point(x=streams, y=rate, low=rate * 0.97, high=rate * 1.03) for streams, rate, *_ in STEPS
    )
    plot = Plot(
        title="Sustained output",
        x_label="streams",
        y_label="tok/s",
        series=(Series(name="all streams", points=points),),
    )
    verdict = Verdict(
        kind="difference",
        text="Output grows to 1,166 tok/s at 32 streams; the knee lies at 16 streams.",
        winner="32",
    )
    return RunResult(
        headline="1,166 tok/s sustained at 32 streams, $0.105/1M",
        verdict=verdict,
        tables=(table,),
        plots=(plot,),
    )


def regimes_result() -> RunResult:
    """Speculation wins where the output repeats the input."""
    table = Table(
        title="Sustained output",
        columns=(
            Column(title="regime"),
            Column(title="speculation"),
            Column(title="output", unit="tok/s", digits=2),
            Column(title="accepted", digits=3),
            Column(title="tokens a pass", digits=2),
        ),
        rows=(
            ("prose", "off (started without)", 102.21, NO_SPECULATION, 1.0),
            ("prose", "off (live)", 99.4, NO_SPECULATION, 1.0),
            ("prose", "5", 58.49, 0.081, 1.4),
            ("code edit", "off (started without)", 130.16, NO_SPECULATION, 1.0),
            ("code edit", "5", 242.39, 0.682, Estimated(4.41)),
        ),
    )
    verdict = Verdict(
        kind="difference",
        text="At 1 stream code editing wins 1.86 × with 5 drafted tokens; prose loses 43 %.",
        winner="code edit: 5",
        ratio=Interval(value=1.86, low=1.79, high=1.94, confidence=0.95, repeats=5),
        paste="a40console engine speculation 5",
    )
    return RunResult(
        headline="code edit 242 tok/s with 5, prose 102 tok/s without",
        verdict=verdict,
        tables=(table,),
    )
