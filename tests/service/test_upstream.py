"""What a client is told while no engine serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.profile import Profile
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus
from a40console.service.upstream import EngineUpstream


@pytest.mark.parametrize(
    ("eta", "retry_s"),
    [
        (Estimated(90.0), 90),
        (Estimated(5.5), 5.5),
        (Estimated(1.0), 5),
        (Estimated(0.0), 5),
        (Missing("the first start of this profile"), 10),
    ],
)
def test_a_client_is_not_asked_back_every_second_of_a_start(eta: Figure, retry_s: float) -> None:
    status = EngineStatus(state=EngineState.STARTING, phase="load", phase_since_s=40.0, eta=eta)
    upstream = EngineUpstream(lambda: status, Path("/nowhere"), lambda: 52.0)
    assert upstream.current() is None
    why = upstream.why_not()
    assert why.retry_after_s == retry_s
    assert why.text == "the engine is starting: load for 12 s."


def test_clients_of_engines_before_are_known_by_the_names_that_those_served(
    tmp_path: Path,
) -> None:
    status = serving("alpha", "run-1")
    upstream = EngineUpstream(lambda: status, tmp_path, lambda: 52.0)
    for name, run, former in (
        ("alpha", "run-1", set()),
        ("beta", "run-2", {"alpha"}),
        ("beta", "run-3", {"alpha"}),
        ("alpha", "run-4", {"beta"}),
    ):
        status = serving(name, run)
        found = upstream.current()
        assert found is not None
        assert (found.served_name, set(found.former_names)) == (name, former)


def serving(name: str, run: str) -> EngineStatus:
    profile = Profile(name=name, kind="sim", model="m", served_name=name)
    return EngineStatus(
        state=EngineState.SERVING,
        profile=profile,
        run=RunRecord(
            id=run,
            profile=profile,
            base_url="http://engine",
            socket_path=None,
            plugin=False,
            argv=(),
            argv_digest="d",
            started_at="2026-11-29T14:00:00.000Z",
        ),
    )
