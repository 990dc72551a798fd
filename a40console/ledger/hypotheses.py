"""Claims in the ledger's tables, each with everything that was said of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from a40console.ledger.tables import touch
from a40console.model.run import Hypothesis, HypothesisState, HypothesisStep

Connection = sqlite3.Connection

_STEPS = "SELECT state, at, runs, why FROM hypothesis_steps WHERE number = ? ORDER BY at, rowid"
_PUT_STEP = """
INSERT OR IGNORE INTO hypothesis_steps (number, at, state, why, runs) VALUES (?, ?, ?, ?, ?)
"""


def listed(connection: Connection) -> tuple[Hypothesis, ...]:
    """Every claim, the one that was last spoken on first."""
    found = connection.execute(
        "SELECT number, text FROM hypotheses ORDER BY number DESC"
    ).fetchall()
    claims = [_claim(connection, number, text) for number, text in found]
    return tuple(sorted(claims, key=lambda claim: claim.at, reverse=True))


def one(connection: Connection, number: int) -> Hypothesis | None:
    """A claim; None where there is none of that number."""
    found = connection.execute("SELECT text FROM hypotheses WHERE number = ?", (number,)).fetchone()
    return None if found is None else _claim(connection, number, found[0])


def put(connection: Connection, text: str, steps: Iterable[HypothesisStep]) -> int:
    """Write down a claim and what was said of it; what is there already is not written again.

    Returns:
        Its number.
    """
    connection.execute("INSERT OR IGNORE INTO hypotheses (text) VALUES (?)", (text,))
    (number,) = connection.execute(
        "SELECT number FROM hypotheses WHERE text = ?", (text,)
    ).fetchone()
    for step in steps:
        values = (number, step.at, step.state, step.why, json.dumps(step.runs))
        if connection.execute(_PUT_STEP, values).rowcount:
            for run_id in step.runs:
                touch(connection, run_id)
    return int(number)


def that_travel_with(connection: Connection, run_id: str) -> tuple[Hypothesis, ...]:
    """The claims that a run's document takes along: those that name it, or no run at all."""
    return tuple(
        claim
        for claim in listed(connection)
        if not (named := {name for step in claim.steps for name in step.runs}) or run_id in named
    )


def _claim(connection: Connection, number: int, text: str) -> Hypothesis:
    steps = tuple(
        HypothesisStep(state=_state(state), at=at, runs=_names(runs), why=why)
        for state, at, runs, why in connection.execute(_STEPS, (number,))
    )
    last = steps[-1] if steps else HypothesisStep(state="open", at="")
    return Hypothesis(
        id=number,
        text=text,
        state=last.state,
        at=last.at,
        runs=last.runs,
        why=last.why,
        steps=steps,
    )


def _state(text: str) -> HypothesisState:
    match text:
        case "confirmed" | "refuted" | "retracted":
            return text
        case _:
            return "open"


def _names(text: str) -> tuple[str, ...]:
    try:
        names = json.loads(text)
    except ValueError:
        return ()
    return tuple(map(str, names)) if isinstance(names, list) else ()
