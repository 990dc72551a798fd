"""Measurements that others wrote down, shipped as data: marked as reference in every view.

They are the field notes of the sessions that the console grew out of, measured by hand on rented
GPUs. What those notes themselves got wrong is put right here and told as a doubt: ratios whose
direction was mixed up, two variables changed at once, a warm cache, a setting that was not in
force. What they do not tell is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

from a40console.files import parse_json
from a40console.ledger.documents import Document, written
from a40console.model.codec import Json, decode_as
from a40console.model.figures import Missing
from a40console.model.run import (
    Hypothesis,
    HypothesisStep,
    Run,
    RunEnvironment,
    RunSpec,
)
from a40console.model.run_result import Cell, Column, Doubt, RunResult, Table, Verdict

NOT_WRITTEN = Missing("not written down")
NO_REPEATS = Missing("no repeats were kept")
NO_PLAN = Missing("it was not planned by this console")
CONSOLE = "none"
"""In place of our version: it was measured by hand."""

WRITTEN_AT = "2026-11-30T00:00:00.000Z"
"""When these rows were written; the notes bear no dates."""

_SUBJECTS = ("kimi-k3", "qwen3-coder", "kimi-linear", "others")
_HYPOTHESES = "hypotheses"


def reference_documents() -> tuple[dict[str, Json], ...]:
    """Every shipped row as `Ledger.import_run` takes it, with the claims that it spoke on."""
    claims = reference_hypotheses()
    return tuple(
        written(
            Document(
                run=run,
                hypotheses=[
                    claim for claim in claims if any(run.id in step.runs for step in claim.steps)
                ],
            )
        )
        for run in reference_runs()
    )


def reference_runs() -> tuple[Run, ...]:
    """Every shipped row."""
    return tuple(run for subject in _SUBJECTS for run in _runs(subject))


def reference_hypotheses() -> tuple[Hypothesis, ...]:
    """What was claimed in those sessions, and what became of it."""
    claims = []
    for number, entry in enumerate(_data(_HYPOTHESES), start=1):
        steps = [
            HypothesisStep(
                state=step["state"],
                at=WRITTEN_AT,
                runs=tuple(step.get("runs", ())),
                why=step["why"],
            )
            for step in entry["steps"]
        ]
        last = steps[-1]
        claims.append(
            Hypothesis(
                id=number,
                text=entry["text"],
                state=last.state,
                at=last.at,
                runs=last.runs,
                why=last.why,
                steps=tuple(steps),
            )
        )
    return tuple(claims)


def _data(name: str) -> Any:
    return parse_json((files(__package__) / f"{name}.json").read_text(encoding="utf-8"))


def _runs(subject: str) -> Iterator[Run]:
    data = _data(subject)
    for row in data["rows"]:
        yield Run(
            id=row["id"],
            spec=RunSpec(experiment=row["experiment"], preset=CONSOLE),
            state=row.get("state", "done"),
            asked_at=WRITTEN_AT,
            started_at=NOT_WRITTEN,
            ended_at=NOT_WRITTEN,
            reason=row.get("reason", ""),
            settled=row.get("settled", {}),
            environment=_environment({**data["environment"], **row.get("environment", {})}),
            plan=NO_PLAN,
            progress=NO_PLAN,
            result=_result(row),
            reference=True,
            origin=f"field notes, session {row['session']}" if "session" in row else "field notes",
        )


def _environment(told: dict[str, Any]) -> RunEnvironment:
    return RunEnvironment(
        console=CONSOLE,
        simulated=False,
        engine_kind=told["engine"],
        engine_version=_known(told, "version"),
        model=told["model"],
        model_digest=NOT_WRITTEN,
        config_digest=NOT_WRITTEN,
        profile=NOT_WRITTEN,
        effective=told.get("effective", {}),
        gpu=_known(told, "gpu"),
        gpu_count=told.get("gpu_count", 0),
        driver=NOT_WRITTEN,
        vcpu_quota=_known(told, "vcpu"),
        usd_per_h=_known(told, "usd_per_h"),
        host=NOT_WRITTEN,
    )


def _known(told: dict[str, Any], name: str) -> Any:
    value = told.get(name)
    return NOT_WRITTEN if value is None else value


def _result(row: dict[str, Any]) -> RunResult | Missing:
    if "headline" not in row:
        return Missing("it measured nothing usable")
    verdict = row.get("verdict", {"kind": "none", "text": "The notes draw no conclusion."})
    return RunResult(
        headline=row["headline"],
        verdict=Verdict(
            kind=verdict["kind"],
            text=verdict["text"],
            winner=verdict.get("winner", ""),
            ratio=NO_REPEATS,
        ),
        tables=tuple(map(_table, row.get("tables", ()))),
        doubts=tuple(
            Doubt(code=code, text=text, invalidates=row.get("state") == "invalid")
            for code, text in row.get("doubts", ())
        ),
        excerpts=tuple(row.get("excerpts", ())),
    )


def _table(told: dict[str, Any]) -> Table:
    columns = tuple(
        Column(title=title, unit=unit, digits=digits) for title, unit, digits in told["columns"]
    )
    rows: Sequence[Sequence[Any]] = told["rows"]
    return Table(
        title=told["title"],
        columns=columns,
        rows=tuple(tuple(_cell(cell) for cell in row) for row in rows),
        note=told.get("note", ""),
    )


def _cell(cell: Any) -> Cell:
    value: Cell = NOT_WRITTEN if cell is None else decode_as(Cell, cell, "cell")
    return value
