"""What a client is told while no engine serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Figure, Missing
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
