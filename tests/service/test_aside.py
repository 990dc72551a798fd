"""What is slow to read never holds up whoever asks for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from a40console.service.aside import Aside


def test_the_last_find_stands_while_a_newer_read_is_under_way() -> None:
    aside, may_end = Aside(0), threading.Event()

    def slow() -> int:
        may_end.wait(10)
        return 2

    assert aside.look("run", 1, lambda: 1) == 0
    aside.settle()
    assert aside.look("run", 1, pytest.fail) == 1
    began_s = time.monotonic()
    assert aside.look("run", 2, slow) == 1
    assert aside.look("run", 3, lambda: 3) == 1
    assert time.monotonic() - began_s < 1
    may_end.set()
    aside.settle()
    assert aside.look("run", 3, lambda: 3) == 2
    aside.settle()
    assert aside.look("run", 3, pytest.fail) == 3


def test_another_run_knows_nothing_of_the_one_before() -> None:
    aside, may_end = Aside(0), threading.Event()

    def slow() -> int:
        may_end.wait(10)
        return 1

    assert aside.look("a", 1, slow) == 0
    assert aside.look("b", 1, lambda: 2) == 0
    may_end.set()
    aside.settle()
    assert aside.look("b", 1, lambda: 2) == 0
    aside.settle()
    assert aside.look("b", 1, pytest.fail) == 2
    aside.forget()
    assert aside.look("b", 1, lambda: 4) == 0


@pytest.mark.parametrize("error", [OSError("a disk"), RecursionError("deep"), KeyError("x")])
def test_what_cannot_be_read_finds_nothing_and_ends_nothing(error: Exception) -> None:
    def broken() -> int:
        raise error

    aside = Aside(0)
    assert _found(aside, 1, lambda: 1) == 1
    assert _found(aside, 2, broken) == 0
    assert _found(aside, 3, lambda: 3) == 3


def _found(aside: Aside[int], state: int, read: Callable[[], int]) -> int:
    aside.look("run", state, read)
    aside.settle()
    return aside.look("run", state, read)
