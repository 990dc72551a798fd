"""A run with the lengths of a session that came by here: its counts, and nothing of its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from a40console.errors import UsageError
from a40console.experiments.session_lengths import lengths_of_session, read_lengths
from a40console.model.experiment import Value
from a40console.model.figures import Missing
from a40console.model.run import RunSpec
from a40console.model.session import SessionDetail

SESSION, LENGTHS, TURNS = "session", "lengths", "turns"
MOST_TURNS = 1_000

Detail = Callable[[str, int], SessionDetail]


def with_own_lengths(spec: RunSpec, detail: Detail) -> RunSpec:
    """The spec with lengths in the place of the session that it names; else as it is.

    Raises:
        UsageError: If no session is known by that name, or its turns have no counts.
    """
    name = spec.parameters.get(SESSION, "").strip()
    if spec.experiment != "compaction" or not name or spec.parameters.get(LENGTHS):
        return spec
    session = detail(name, MOST_TURNS)
    lengths = lengths_of_session(session)
    if isinstance(lengths, Missing):
        raise UsageError(
            f"The lengths of session {name} cannot be told: {lengths.reason}",
            remedy="Choose another: a40console sessions",
        )
    own = {SESSION: session.session, LENGTHS: lengths}
    return replace(spec, parameters={**spec.parameters, **own})


def with_own_turns(settled: Mapping[str, Value]) -> dict[str, Value]:
    """The parameters in force with the number of turns that the lengths among them have.

    Lengths that cannot be read are left to the plan, which refuses them.
    """
    told, lengths = dict(settled), settled.get(LENGTHS)
    if TURNS in told and isinstance(lengths, str) and lengths:
        with suppress(ValueError):
            told[TURNS] = len(read_lengths(lengths).turns)
    return told
