"""A compaction with an own session's lengths: its counts are written down, its text is not."""

from __future__ import annotations

import pytest

from a40console.errors import UsageError
from a40console.experiments.compaction import Compaction
from a40console.model.experiment import settle
from a40console.model.figures import Missing
from a40console.model.run import RunSpec
from a40console.model.session import SessionDetail
from a40console.service.own_lengths import with_own_lengths
from tests import make_session


def detail_of(name: str, _turns: int) -> SessionDetail:
    first = make_session.request(prompt_tokens=10_000, generated_tokens=300)
    turns = (first, make_session.request(prompt_tokens=10_900, generated_tokens=50))
    return make_session.detail(session=f"{name}-whole", timeline=turns, forgotten_requests=0)


def test_the_sessions_lengths_take_the_place_of_the_shipped_ones() -> None:
    spec = RunSpec(experiment="compaction", parameters={"session": "7f3a", "repeats": "2"})
    told = with_own_lengths(spec, detail_of)
    lengths = "9500;500/300,600/50"
    assert told.parameters == {"session": "7f3a-whole", "repeats": "2", "lengths": lengths}
    assert settle(Compaction.offer, "standard", told.parameters)["lengths"] == lengths


@pytest.mark.parametrize(
    "spec",
    [
        RunSpec(experiment="compaction"),
        RunSpec(experiment="sweep", parameters={"session": "7f3a"}),
        RunSpec(experiment="compaction", parameters={"session": "7f3a", "lengths": "900;1/2"}),
    ],
)
def test_nothing_else_is_touched(spec: RunSpec) -> None:
    assert with_own_lengths(spec, detail_of) is spec


def test_a_session_without_counts_is_refused() -> None:
    def uncounted(_name: str, _turns: int) -> SessionDetail:
        request = make_session.request(prompt_tokens=Missing("no usage"))
        return make_session.detail(timeline=(request, request))

    with pytest.raises(UsageError, match="cannot be told"):
        with_own_lengths(
            RunSpec(experiment="compaction", parameters={"session": "7f3a"}), uncounted
        )
