"""How the worker stands: each change is told once, however often it is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from a40console.service.journal import Journal
from a40console.service.standing import Standing


class World:
    """A clock and a parent that the test sets."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.parent = 77

    def standing(self, journal: Journal, failures: int) -> Standing:
        return Standing(
            journal.record, failures, clock=lambda: self.now_s, parent=lambda: self.parent
        )


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "events.jsonl")


def told(journal: Journal) -> list[tuple[str, str]]:
    return [(event.kind, event.severity) for event in journal.since(0, 100)]


def test_a_worker_that_ends_a_hundred_times_is_three_events(journal: Journal) -> None:
    for failures in range(100):
        standing = World().standing(journal, failures)
        standing.begin()
        standing.look()
    assert told(journal) == [
        ("service.started", "info"),
        ("service.started", "warn"),
        ("service.failing", "error"),
    ]


def test_one_that_lasts_at_last_is_told_once(journal: Journal) -> None:
    world = World()
    standing = world.standing(journal, 7)
    standing.begin()
    for _ in range(5):
        world.now_s += 29.0
        standing.look()
    (event,) = journal.since(0, 100)
    assert event.kind == "service.started"
    assert event.text == "the service is back after its worker ended 7 times in a row"


def test_a_supervisor_that_goes_is_told_once_and_stays_known(journal: Journal) -> None:
    world = World()
    standing = world.standing(journal, 0)
    standing.look()
    assert not standing.unsupervised
    world.parent = 1
    for _ in range(3):
        standing.look()
        assert standing.unsupervised
    assert told(journal) == [("service.unsupervised", "warn")]
