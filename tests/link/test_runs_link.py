"""A link brings the other machine's runs here by itself: through a real ssh and a real sshd."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from a40console.link.opening import close_link, open_link
from a40console.link.place import LinkPlace, LinkRecord
from a40console.link.pulled import PulledRuns
from a40console.link.target import parse_target
from a40console.model.codec import encode
from a40console.paths import Paths, locate
from tests.link.far_runs import FarRuns
from tests.link.far_service import FarService, far_service
from tests.link.sshd import Sshd, sshd
from tests.make_runs import run, sweep

# The holder outlives whoever started it.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


@dataclass
class Near:
    """This machine, its link, and what is measured at the other end."""

    paths: Paths
    environment: dict[str, str]
    far: FarService
    runs: FarRuns

    @property
    def place(self) -> LinkPlace:
        return LinkPlace(self.paths, parse_target("pod"))

    def open(self) -> None:
        open_link(
            self.paths,
            parse_target("pod"),
            console=(str(self.far.command),),
            environment=self.environment,
            may_start=lambda question: False,
        )

    def record(self) -> LinkRecord:
        found = self.place.record()
        assert found is not None
        return found

    def documents(self) -> dict[str, Any]:
        waiting = PulledRuns(self.paths.pulled).waiting()
        return {file.stem: json.loads(file.read_text())["document"] for file in waiting}


@pytest.fixture(scope="module")
def machine() -> Iterator[Sshd]:
    with sshd() as made:
        yield made


@pytest.fixture
def near(machine: Sshd) -> Iterator[Near]:
    machine.mend()
    machine.delay(0)
    home = Path(tempfile.mkdtemp(prefix="a40nr-", dir="/tmp"))
    environment = {**os.environ, **machine.variables, "A40CONSOLE_HOME": str(home)}
    with far_service() as far:
        far.control.unlink()
        runs = FarRuns(far.control, far.gateway)
        made = Near(locate({"A40CONSOLE_HOME": str(home)}), environment, far, runs)
        try:
            yield made
        finally:
            machine.mend()
            machine.delay(0)
            close_link(made.place, environment)
            runs.close()
            shutil.rmtree(home, ignore_errors=True)


def until(holds: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_runs_come_while_the_link_stands_and_after_it_was_cut(near: Near, machine: Sshd) -> None:
    near.runs.add(run().id, {"run": encode(run())})
    near.open()
    until(lambda: near.record().runs_copied == 1)
    assert near.documents() == near.runs.documents
    machine.cut()
    until(lambda: near.record().state == "down")
    near.runs.add(sweep().id, {"run": encode(sweep())})
    machine.mend()
    until(lambda: near.record().runs_copied == 2)
    assert near.documents() == near.runs.documents
    until(lambda: all(near.runs.copied.values()))
    record = near.record()
    assert (record.state, record.runs_left, record.runs_trouble) == ("up", 0, "")
    assert near.runs.documents_asked() == [run().id, sweep().id]


def test_a_link_cut_in_the_midst_of_documents_loses_none(near: Near, machine: Sshd) -> None:
    one = encode(run())
    for number in range(6):
        padding = os.urandom(300_000).hex()  # seconds of a slow link
        near.runs.add(f"20261130-10000{number}-sweep-000{number}", {"run": one, "pad": padding})
    machine.delay(150)
    near.open()
    until(lambda: len(near.runs.documents_asked()) >= 2)
    machine.cut()
    until(lambda: near.record().state == "down")
    before = near.documents()
    assert len(before) < 6, "it was cut too late to be in the midst"
    assert all(near.runs.documents[run_id] == document for run_id, document in before.items())
    noted = {run_id for run_id, machines in near.runs.copied.items() if machines}
    assert noted <= set(before)
    machine.delay(0)
    machine.mend()
    until(lambda: len(near.documents()) == 6)
    assert near.documents() == near.runs.documents
    asked = near.runs.documents_asked()
    assert all(asked.count(run_id) == 1 for run_id in before), "what was here came again"
