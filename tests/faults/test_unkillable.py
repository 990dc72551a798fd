"""Row 5: a process that even SIGKILL does not end, as one that a driver holds."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from a40console.engines.process import EngineProcess
from tests.faults.console import alive, fault_console, finding, kill

pytestmark = pytest.mark.slow

WAY = (sys.executable, str(Path(__file__).with_name("unkillable.py")))


def test_a_process_that_cannot_be_killed_is_given_up_and_all_else_goes_on() -> None:
    if subprocess.run([*WAY, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody filter system calls")
    with fault_console(WAY) as console:
        console.control(deaf=["core"])
        console.serve("--profile", "fake")
        console.succeed("wait", "ready", "--timeout", "30")
        process = EngineProcess.recorded(console.run_folder())
        assert process is not None
        core = next(m.pid for m in process.members() if m.name == "VLLM::EngineCor")
        said: list[str] = []
        stop = Thread(target=lambda: said.append(console.refused(7, "engine", "stop")))
        began_s = time.monotonic()
        stop.start()

        # While it is waited for, the service answers, and figures go on.
        stopping = console.until_state("stopping")
        later = console.until(lambda s: s["seq"] > stopping["seq"] + 8, 15)
        assert later["engine"]["state"] == "stopping"
        assert console.status()["engine"]["state"] == "stopping", "it answers in the meantime"

        stop.join(60)
        assert time.monotonic() - began_s > 18, "ten seconds for TERM, ten for KILL"
        assert "SIGKILL has no effect" in said[0]
        assert f"VLLM::EngineCor (pid {core}" in said[0]
        assert "unkillable" in said[0]
        assert "Restart the pod" in said[0]
        assert alive(core)

        snapshot = console.until_state("orphaned")
        found = finding(snapshot, "unkillable")
        assert found is not None
        assert "the kernel holds them" in found["title"]
        assert f"(pid {core})" in found["evidence"]
        assert "Restart the pod" in found["remedy"]
        for verb in (("start", "fake"), ("restart",)):
            assert f"(pid {core})" in console.refused(5, "engine", *verb)
        console.until(lambda s: s["seq"] > snapshot["seq"] + 5, 15)

        # The kernel lets go at last: that is seen at once. It was told to stop, so it stays down.
        kill(core)
        ended = console.until_state("stopped", 30)
        assert ended["engine"]["restarts"] == 0
        console.control()
        console.succeed("engine", "start", "fake")
        assert "wave" in console.ask()
        console.succeed("engine", "stop")
