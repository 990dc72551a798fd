"""A signal reaches the process meant, or nobody."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from a40console.engines.signalling import send_signal
from a40console.engines.tree import ProcessId, ProcFs


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "300"]) as child:
        yield child
        child.kill()


@pytest.fixture(params=["pidfd", "pid"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pidfds, and where a container's filter forbids them."""

    def filtered(_: int) -> int:
        raise PermissionError

    if request.param == "pid":
        monkeypatch.setattr(os, "pidfd_open", filtered)


@pytest.mark.usefixtures("way")
def test_it_ends_the_process_meant_but_no_other_with_its_pid(
    sleeper: subprocess.Popen[bytes],
) -> None:
    found = ProcFs().read_process(sleeper.pid)
    assert found is not None
    stale = ProcessId(sleeper.pid, found.id.start_ticks - 1)
    assert send_signal(ProcFs(), stale, signal.SIGKILL)
    with pytest.raises(subprocess.TimeoutExpired):
        sleeper.wait(0.3)
    assert send_signal(ProcFs(), found.id, signal.SIGTERM)
    assert sleeper.wait(10) == -signal.SIGTERM
    assert send_signal(ProcFs(), found.id, signal.SIGTERM)  # gone: nothing is left to do
