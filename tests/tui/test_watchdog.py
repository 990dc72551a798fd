"""The watchdog ends what cannot end itself, and nothing else."""

from __future__ import annotations

import os
import pty

from a40console.tui.terminal import GONE, HEARTBEAT_LIMIT_S, LEAVE_LIMIT_S, Watchdog, terminal_gone


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Watched:
    """A watchdog over a pty, with its clock in hand."""

    def __init__(self) -> None:
        self.controller, self.terminal = pty.openpty()
        self.clock = Clock()
        self.ends: list[int] = []
        self.asked: list[int] = []
        self.dog = Watchdog(terminal_fd=self.terminal, clock=self.clock, end=self.ends.append)
        self.dog._leave = self.asked.append

    def hang_up(self) -> None:
        os.close(self.controller)

    def close(self) -> None:
        os.close(self.terminal)


def test_a_stalled_loop_on_a_living_terminal_is_left_alone() -> None:
    watched = Watched()
    watched.clock.now_s = 10 * HEARTBEAT_LIMIT_S
    watched.dog.look()
    assert not watched.ends
    assert not watched.asked
    watched.hang_up()
    watched.close()


def test_a_gone_terminal_asks_the_loop_to_leave_once() -> None:
    watched = Watched()
    watched.hang_up()
    watched.dog.look()
    watched.dog.look()
    assert watched.asked == [GONE]
    assert not watched.ends
    watched.close()


def test_a_loop_that_does_not_leave_is_ended() -> None:
    watched = Watched()
    watched.hang_up()
    watched.dog.look()
    watched.clock.now_s = LEAVE_LIMIT_S + 0.1
    watched.dog.look()
    assert watched.ends == [GONE]
    watched.close()


def test_a_gone_terminal_and_a_dead_loop_end_at_once() -> None:
    watched = Watched()
    watched.hang_up()
    watched.clock.now_s = HEARTBEAT_LIMIT_S + 1
    watched.dog.look()
    assert watched.ends[0] == GONE
    watched.close()


def test_a_signal_that_was_heard_gives_its_code() -> None:
    watched = Watched()
    watched.dog.leaving(143)
    watched.clock.now_s = LEAVE_LIMIT_S + 0.1
    watched.dog.look()
    assert watched.ends == [143]
    watched.hang_up()
    watched.close()


def test_a_closed_descriptor_is_a_gone_terminal() -> None:
    controller, terminal = pty.openpty()
    assert not terminal_gone(terminal)
    os.close(controller)
    assert terminal_gone(terminal)
    os.close(terminal)
    assert terminal_gone(terminal)
