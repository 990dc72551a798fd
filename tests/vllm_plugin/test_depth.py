"""The worker's side of a live change: drafts kept short, and nothing broken by a surprise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from a40console.vllm_plugin.depth import DepthWorker

DRAFTS = [[1, 2, 3, 4, 5], [7, 8], []]


class NgramProposer:
    """With the parts of vLLM's that matter."""

    def __init__(self, k: int = 5) -> None:
        self.k = k
        self.looked_up = 0
        self.drafts: Any = DRAFTS

    def propose(
        self,
        num_speculative_tokens: int,
        sampled_token_ids: list[list[int]],
        num_tokens_no_spec: Any = None,
        slot_mappings: Any = None,
    ) -> Any:
        self.looked_up += 1
        return [list(draft) for draft in self.drafts] if self.drafts is DRAFTS else self.drafts


class EagleProposer:
    k = 3

    def propose(self, sampled_token_ids: list[list[int]]) -> Any:
        return "a tensor"


def worker_of(drafter: Any) -> DepthWorker:
    worker = DepthWorker()
    worker.model_runner = SimpleNamespace(drafter=drafter)
    return worker


def proposed(drafter: Any) -> Any:
    """What vLLM's runner gets, asking as it does."""
    return drafter.propose(5, [[1], [2], [3]], None, slot_mappings=None)


def test_the_depth_of_the_start_is_in_force_until_it_is_changed() -> None:
    drafter = NgramProposer()
    told = worker_of(drafter).a40console_depth()
    assert told == {"depth": 5, "deepest": 5, "method": "ngram", "why_not": None}
    assert "propose" not in vars(drafter)
    assert proposed(drafter) == DRAFTS


def test_off_drafts_nothing_and_looks_nothing_up() -> None:
    drafter = NgramProposer()
    assert worker_of(drafter).a40console_set_depth(0)["depth"] == 0
    assert proposed(drafter) == [[], [], []]
    assert drafter.propose(num_speculative_tokens=5, sampled_token_ids=[[1]]) == [[]]
    assert drafter.looked_up == 0


@pytest.mark.parametrize(
    ("tokens", "drafts"), [(1, [[1], [7], []]), (3, [[1, 2, 3], [7, 8], []]), (5, DRAFTS)]
)
def test_a_depth_cuts_what_is_longer(tokens: int, drafts: list[list[int]]) -> None:
    drafter = NgramProposer()
    assert worker_of(drafter).a40console_set_depth(tokens)["depth"] == tokens
    assert proposed(drafter) == drafts


def test_the_deepest_leaves_vllms_own_method_in_its_place() -> None:
    drafter = NgramProposer()
    worker = worker_of(drafter)
    for tokens in (0, 2, 5):
        worker.a40console_set_depth(tokens)
    assert "propose" not in vars(drafter)
    worker.a40console_set_depth(0)
    assert proposed(drafter) == [[], [], []]


@pytest.mark.parametrize("tokens", [-1, 6, 1000])
def test_what_was_not_started_is_not_set(tokens: int) -> None:
    worker = worker_of(NgramProposer())
    worker.a40console_set_depth(2)
    assert worker.a40console_set_depth(tokens)["depth"] == 2


@pytest.mark.parametrize("surprise", ["a tensor", [1, 2], [[1], "x"]])
def test_drafts_that_are_no_lists_of_tokens_put_everything_back(surprise: Any) -> None:
    drafter = NgramProposer()
    worker = worker_of(drafter)
    worker.a40console_set_depth(2)
    drafter.drafts = surprise
    assert proposed(drafter) == surprise
    assert drafter.looked_up == 1
    assert "propose" not in vars(drafter)
    told = worker.a40console_depth()
    assert told["depth"] == told["deepest"] == 5
    assert "runs as it was started" in told["why_not"]
    assert worker.a40console_set_depth(0)["depth"] == 5
    drafter.drafts = DRAFTS
    assert proposed(drafter) == DRAFTS


def test_a_call_in_another_form_puts_everything_back() -> None:
    drafter = NgramProposer()
    worker = worker_of(drafter)
    worker.a40console_set_depth(0)
    with pytest.raises(TypeError):  # vLLM's own method refuses it too
        drafter.propose()  # type: ignore[call-arg]
    assert "runs as it was started" in worker.a40console_depth()["why_not"]
    assert proposed(drafter) == DRAFTS


def test_an_error_of_the_proposer_itself_stays_vllms() -> None:
    class Broken(NgramProposer):
        def propose(self, *args: Any, sampled_token_ids: Any = None, **others: Any) -> Any:
            raise RuntimeError("numba")

    Broken.__name__ = "NgramProposer"
    drafter = Broken()
    worker = worker_of(drafter)
    worker.a40console_set_depth(2)
    with pytest.raises(RuntimeError, match="numba"):
        drafter.propose(5, [[1]])


def test_others_than_proven_ones_are_left_alone() -> None:
    drafter = EagleProposer()
    told = worker_of(drafter).a40console_set_depth(0)
    assert told["why_not"] == (
        "the drafts of EagleProposer were not proven to take another depth while it runs"
    )
    assert drafter.propose([[1]]) == "a tensor"


def test_a_proposer_without_what_is_needed_is_left_alone() -> None:
    class Other(NgramProposer):
        def propose(self, tokens: int) -> Any:  # type: ignore[override]
            return DRAFTS

    Other.__name__ = "NgramProposer"
    assert "lacks propose(sampled_token_ids)" in worker_of(Other()).a40console_depth()["why_not"]
    assert "does not tell its depth" in worker_of(NgramProposer(0)).a40console_depth()["why_not"]


def test_where_another_plugin_stands_we_do_not() -> None:
    drafter = NgramProposer()
    theirs = drafter.propose
    drafter.propose = lambda *args, **kwargs: theirs(*args, **kwargs)  # type: ignore[method-assign]
    told = worker_of(drafter).a40console_set_depth(0)
    assert told["why_not"] == "another plugin has taken the proposer over"
    assert proposed(drafter) == DRAFTS


@pytest.mark.parametrize("runner", [SimpleNamespace(), SimpleNamespace(drafter=None), None])
def test_an_engine_without_speculation_says_so_and_goes_on(runner: Any) -> None:
    worker = DepthWorker()
    worker.model_runner = runner
    assert worker.a40console_depth()["why_not"]
    assert worker.a40console_set_depth(1)["why_not"]


def test_a_proposer_that_took_anothers_place_begins_anew() -> None:
    worker = worker_of(NgramProposer())
    worker.a40console_set_depth(0)
    worker.model_runner.drafter = NgramProposer(3)
    assert worker.a40console_depth()["depth"] == 3


def test_its_names_are_its_own_in_vllms_worker() -> None:
    ours = [name for name in dir(DepthWorker) if not name.startswith("__")]
    assert all(name.startswith("a40console_") for name in ours)
