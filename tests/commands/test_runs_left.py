"""What an operator reads of runs that a rented machine would take with it."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest

from a40console.commands import runs_left as told
from a40console.commands.links import _line
from a40console.errors import NoServiceError
from a40console.link.place import LinkRecord
from a40console.model.run_copies import NotCopied
from a40console.model.run_copies import told as sentences
from a40console.service.client import ServiceClient

PULL = "a40console runs pull --ssh root@203.0.113.7:22022"


def left(*ids: str, passing: bool = True, volume: str = "") -> NotCopied:
    return NotCopied(ids=ids, passing=passing, pull=PULL, volume=volume)


class Service:
    """Answers late, or not at all."""

    def __init__(self, answer: NotCopied | Exception, after_s: float = 0.0) -> None:
        self._answer, self._after_s = answer, after_s

    async def runs_left(self) -> NotCopied:
        await asyncio.sleep(self._after_s)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def asked(service: Service) -> Any:
    return asyncio.run(told.runs_left(cast("ServiceClient", service)))


def test_a_pod_names_what_is_on_it_alone_and_the_command_that_saves_it() -> None:
    first, second = sentences(left("20261130-a", "20261130-b"))
    assert first == "2 runs are on this machine alone, and lost with it: 20261130-a, 20261130-b."
    assert second == f"From your own machine: {PULL}"


def test_of_many_the_newest_are_named_and_a_volume_is_told() -> None:
    said = sentences(left(*"abcdef", volume="/workspace/a40console-runs"))
    assert said[0].endswith(": a, b, c and 3 more.")
    assert "/workspace/a40console-runs" in said[2]
    assert "deleted with it" in said[2]


@pytest.mark.parametrize("nothing", [left("a", passing=False), left()])
def test_nothing_is_said_where_nothing_is_lost(nothing: NotCopied) -> None:
    assert sentences(nothing) == ()


def test_a_service_that_does_not_know_or_answer_keeps_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert asked(Service(NoServiceError("gone"))) == ()
    monkeypatch.setattr(told, "WAIT_S", 0.05)
    began_s = time.monotonic()
    assert asked(Service(left("a"), after_s=30.0)) == ()
    assert time.monotonic() - began_s < 10
    assert len(asked(Service(left("a")))) == 2


def test_a_link_tells_how_many_runs_it_brought_and_what_is_in_the_way() -> None:
    record = LinkRecord(target="pod", state="up", since="2026-11-30T12:00:00Z")
    assert "run" not in _line(record, held=True)
    busy = LinkRecord(
        target="pod", state="up", since="s", runs_copied=1, runs_left=2, runs_trouble="disk full"
    )
    line = _line(busy, held=True)
    assert "1 run copied   2 still to come   runs are not copied: disk full" in line
