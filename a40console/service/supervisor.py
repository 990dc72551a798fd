"""What stays of the service's parent: a few megabytes that restart the worker.

Run as `python -m a40console.service.supervisor ORDERS LOG` by the parent, in its place and with
its sockets and its lock. It imports next to nothing, not even `subprocess`: it is there as long
as the service is.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

RESTART_DELAYS_S = (0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
"""Before each start after a quick end; the last again and again."""

HEALTHY_AFTER_S = 60.0
KILL_AFTER_S = 15.0
"""A worker that was told to end and has not by then is stuck."""

STOPPED = 0
"""The worker's exit code when it was asked to stop."""

ENDING = frozenset({signal.SIGTERM, signal.SIGINT})
"""Signals that stop the service; the parent holds them back until they are handled here."""


class Process:
    """A child of ours. `subprocess.Popen` would have 1.6 MB resident, 1.2 MB of them ours alone.

    Measured with CPython 3.11 beside the 9.6 MB, 3.8 MB alone, of a process that imports the rest.
    """

    def __init__(self, words: list[str]) -> None:
        # In a session of its own: kernels that share the CPU out by session (autogroup) starve a
        # worker for seconds that shares one with busy clients, beside an engine with its own.
        self._pid = os.posix_spawn(
            words[0],
            words,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)],
            setsid=True,
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # Python ignores them
        )
        self._code: int | None = None

    def runs(self) -> bool:
        """Whether it has not ended yet.

        It is left to `wait` to take note of the end: a signal's handler may ask in its midst.
        """
        try:
            ended = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False  # it was waited for
        return ended is None

    def wait(self) -> int:
        """Its exit code once it has ended, minus the number of a signal that ended it."""
        if self._code is None:
            _, status = os.waitpid(self._pid, 0)
            self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def terminate(self) -> None:
        """Ask it to end."""
        os.kill(self._pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        os.kill(self._pid, signal.SIGKILL)


class Supervisor:
    """Keeps one worker running until it ends by its own will or we are told to stop."""

    def __init__(
        self,
        spawn: Callable[[int], Process],
        note: Callable[[str], None] = lambda text: None,
        clock: Callable[[], float] = time.monotonic,
        kill_after_s: float = KILL_AFTER_S,
        delays_s: Sequence[float] = RESTART_DELAYS_S,
    ) -> None:
        """Supervise workers.

        Args:
            spawn: Starts one, given how many ended by themselves in a row before it.
            note: Takes what is to be logged.
            clock: Monotonic clock.
            kill_after_s: Seconds that a worker has to end.
            delays_s: Seconds before a start, by how many ended in a row.
        """
        self._spawn = spawn
        self._note = note
        self._clock = clock
        self._kill_after_s = kill_after_s
        self._delays_s = delays_s
        self._worker: Process | None = None
        self._stopping = False

    def run(self) -> None:
        """Start workers until one ends with 0 or a signal asked us to stop."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, self._kill)
        for number in ENDING:
            signal.signal(number, self._stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        failures = 0
        while not self._stopping:
            started_s = self._clock()
            self._worker = self._spawn(failures)
            if self._stopping:
                self._end_worker(self._worker)
            code = self._worker.wait()
            signal.setitimer(signal.ITIMER_REAL, 0)
            if code == STOPPED or self._stopping:
                break
            if self._clock() - started_s > HEALTHY_AFTER_S:
                failures = 0
            delay_s = self._delays_s[min(failures, len(self._delays_s) - 1)]
            failures += 1
            self._note(f"the service's worker ended with {code}; again in {delay_s:.1f} s")
            self._pause(delay_s)

    def _pause(self, delay_s: float) -> None:
        """Wait, but no longer than until we are told to stop; a plain sleep would go on."""
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        if not self._stopping and signal.sigtimedwait(ENDING, delay_s) is not None:
            self._stopping = True
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)

    def _stop(self, number: int, frame: object) -> None:
        again, self._stopping = self._stopping, True
        if self._worker is not None and self._worker.runs() and not again:
            self._end_worker(self._worker)

    def _end_worker(self, worker: Process) -> None:
        worker.terminate()
        signal.setitimer(signal.ITIMER_REAL, self._kill_after_s)

    def _kill(self, number: int, frame: object) -> None:
        if self._worker is not None and self._worker.runs():
            self._worker.kill()
            self._note(
                f"the service's worker did not end within {self._kill_after_s:.0f} s: killed"
            )


def command_line(module: str, *arguments: str) -> list[str]:
    """Our own module as a process; nothing in the working folder may stand in for one of them."""
    return [sys.executable, "-P", "-m", f"a40console.service.{module}", *arguments]


def remove_socket(control_socket: str) -> None:
    """Leave nothing where the service was reached: only with its lock may one call this."""
    with suppress(OSError):
        os.unlink(control_socket)  # noqa: PTH108
    with suppress(OSError):  # an engine's socket may be in it
        os.rmdir(os.path.dirname(control_socket))  # noqa: PTH106, PTH120


def main(orders: str, log_file: str, control_socket: str) -> None:
    """Supervise the worker that these orders are for; leave no socket of ours behind."""

    def spawn(failures: int) -> Process:
        # The sockets and the lock are inherited: the parent has marked them so.
        again = ["--again", str(failures)] if failures else []
        return Process(command_line("worker", orders, *again))

    def note(text: str) -> None:
        # Opened each time: the worker rotates the file. A full disk costs the line, not us.
        with suppress(OSError), open(log_file, "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} ERROR supervisor: {text}\n")

    Supervisor(spawn, note).run()
    remove_socket(control_socket)


if __name__ == "__main__":
    main(*sys.argv[1:])
