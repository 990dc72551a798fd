"""A run's requests as comma-separated values, one row a request. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.run import Run
from a40console.model.run_record import Sample
from a40console.model.run_words import is_simulated, visible

COLUMNS = (
    "run",
    "experiment",
    "state",
    "simulated",
    "reference",
    "arm",
    "repeat",
    "index",
    "role",
    "warm_up",
    "due_s",
    "sent_s",
    "ttft_s",
    "total_s",
    "prompt_tokens",
    "cached_tokens",
    "generated_tokens",
    "gaps_s",
    "error",
    "estimated",
    "missing",
)
"""`gaps_s` has its values separated by blanks; `estimated` names the columns that hold estimates,
`missing` those that are empty, with the reasons."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet would compute."""


def samples_csv(run: Run, samples: Sequence[Sample]) -> str:
    """Every request in the order of the file, the warm-up marked, under a heading."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    whose = (
        run.id,
        _word(run.spec.experiment),
        run.state,
        _yes(is_simulated(run)),
        _yes(run.reference),
    )
    for sample in samples:
        writer.writerow((*whose, *_row(sample)))
    return text.getvalue()


def _row(sample: Sample) -> tuple[str | int | float, ...]:
    figures: dict[str, Figure] = {
        "ttft_s": sample.ttft_s,
        "total_s": sample.total_s,
        "prompt_tokens": sample.prompt_tokens,
        "cached_tokens": sample.cached_tokens,
        "generated_tokens": sample.generated_tokens,
    }
    missing = [
        f"{name}: {figure.reason}"
        for name, figure in figures.items()
        if isinstance(figure, Missing)
    ]
    estimated = [name for name, figure in figures.items() if isinstance(figure, Estimated)]
    return (
        _word(sample.arm),
        sample.repeat,
        sample.index,
        _word(sample.role),
        _yes(sample.warm_up),
        sample.due_s,
        sample.sent_s,
        *("" if (value := number(figure)) is None else value for figure in figures.values()),
        " ".join(f"{gap_s:g}" for gap_s in sample.gaps_s),
        _word(sample.error),
        " ".join(estimated),
        _word("; ".join(missing)),
    )


def _word(text: str) -> str:
    """A text from elsewhere that no spreadsheet computes."""
    shown = visible(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"
