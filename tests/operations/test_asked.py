"""What was asked and is not in force, told with each start."""

from __future__ import annotations

from a40console.model.figures import Missing
from a40console.model.snapshot import Difference
from a40console.operations.asked import evidence_of
from a40console.operations.status import EngineStatus


def test_each_difference_is_evidence_of_the_start() -> None:
    lowered = Difference(
        setting="max_num_batched_tokens", asked=16384, effective=2048, evidence="the log"
    )
    off = Difference(setting="async_scheduling", asked=None, effective=False, evidence="the log")
    unknown = Difference(
        setting="threads", asked=4, effective=Missing("it is not said"), evidence=""
    )
    assert evidence_of(EngineStatus(differences=(lowered, off, unknown))) == {
        "not in force: max_num_batched_tokens": "asked 16384, runs 2048",
        "not in force: async_scheduling": "nothing was asked, runs False",
        "not in force: threads": "asked 4, runs not known (it is not said)",
    }
    assert evidence_of(EngineStatus()) == {}
