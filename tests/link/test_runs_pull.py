"""Runs are copied whole, once, and are only noted as copied once they lie on this disk."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a40console.errors import ConsoleError, RefusedError
from a40console.link.calls import SocketCalls
from a40console.link.pulled import PulledRuns
from a40console.link.runs_follow import LOOK_PERIOD_S, RunsFollower
from a40console.link.runs_pull import Offer, RunsPull, machine_name
from a40console.model.codec import encode
from tests.link.far_runs import FarRuns
from tests.make_runs import run, sweep

HERE = "laptop"


class Near:
    """This machine: what it has, and what pulls."""

    def __init__(self, folder: Path) -> None:
        self.pulled = PulledRuns(folder / "pulled")
        self.now_s = 0.0
        self._socket = folder / "control.sock"

    def pull(self, machine: str = HERE) -> RunsPull:
        calls = SocketCalls(self._socket, timeout_s=5.0, who="a test")
        return RunsPull(calls, self.pulled, machine=machine, origin="root@pod")

    def follower(self) -> RunsFollower:
        return RunsFollower(self.pull(), self.pulled, clock=lambda: self.now_s)

    def steps(self, follower: RunsFollower, count: int = 6) -> None:
        for _ in range(count):
            follower.step()

    def documents(self) -> dict[str, Any]:
        return {file.stem: json.loads(file.read_text()) for file in self.pulled.waiting()}


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="a40p-", dir="/tmp") as made:
        yield Path(made)


@pytest.fixture
def far(folder: Path) -> Iterator[FarRuns]:
    made = FarRuns(folder / "control.sock")
    for one in (run(), sweep()):
        made.add(one.id, {"schema": 1, "run": encode(one)})
    yield made
    made.close()


@pytest.fixture
def near(folder: Path, far: FarRuns) -> Near:
    return Near(folder)


def copy_all(pull: RunsPull) -> list[str]:
    """What a command does."""
    offers = pull.offers()
    assert offers is not None
    wanted = pull.wanted(offers)
    for offer in wanted:
        pull.copy(offer)
        pull.note([offer])
    return [offer.id for offer in wanted]


def test_every_run_comes_whole_with_where_it_is_from(near: Near, far: FarRuns) -> None:
    assert sorted(copy_all(near.pull())) == sorted(far.documents)
    for run_id, kept in near.documents().items():
        assert kept == {"origin": "root@pod", "document": far.documents[run_id]}
    assert all(machines == {HERE} for machines in far.copied.values())


def test_what_is_here_is_not_asked_for_again_until_it_changes(near: Near, far: FarRuns) -> None:
    copy_all(near.pull())
    assert copy_all(near.pull()) == []
    noted = run().id
    far.add(noted, {"schema": 1, "run": encode(run(reason="a note came"))}, version="2")
    assert copy_all(near.pull()) == [noted]
    assert "a note came" in json.dumps(near.documents()[noted])


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_document_that_is_cut_is_not_kept_and_comes_again(
    near: Near, far: FarRuns, share: float
) -> None:
    first, second = far.documents
    far.cut_at[second] = int(len(json.dumps(far.documents[second])) * share)
    with pytest.raises(ConsoleError):
        copy_all(near.pull())
    assert list(near.documents()) == [first]
    assert far.copied.get(second, set()) == set()
    assert copy_all(near.pull()) == [second]  # the first one stays
    assert far.documents_asked().count(first) == 1
    assert set(near.documents()) == {first, second}


def test_a_full_disk_here_marks_nothing_as_copied_there(
    near: Near, far: FarRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("a40console.link.pulled.write_private", full)
    with pytest.raises(RefusedError, match="cannot be kept here") as caught:
        copy_all(near.pull())
    assert "No space left" in caught.value.evidence
    assert near.documents() == {}
    assert not any(far.copied.values())
    monkeypatch.undo()
    assert len(copy_all(near.pull())) == 2


def test_what_was_kept_but_not_noted_is_noted_later_without_coming_again(
    near: Near, far: FarRuns
) -> None:
    pull = near.pull()
    offers = pull.offers()
    assert offers is not None
    for offer in offers.runs:
        pull.copy(offer)  # and the link is cut here
    follower = near.follower()
    near.steps(follower)
    assert all(machines == {HERE} for machines in far.copied.values())
    assert len(far.documents_asked()) == 2


@pytest.mark.parametrize("odd", ["../../etc/passwd", "", ".hidden", "a/b", "x" * 200])
def test_an_id_that_is_no_name_writes_nowhere(near: Near, folder: Path, odd: str) -> None:
    before = sorted(folder.rglob("*"))
    with pytest.raises(RefusedError, match="id that is none"):
        near.pulled.keep(odd, "1", b"{}", origin="pod")
    assert sorted(folder.rglob("*")) == before


def test_a_link_copies_runs_as_they_end(near: Near, far: FarRuns) -> None:
    follower = near.follower()
    near.steps(follower)
    assert (follower.copies.copied, follower.copies.left) == (2, 0)
    far.add("20261130-120000-canary-0001", {"schema": 1, "run": {}})
    near.steps(follower)
    assert follower.copies.copied == 2  # it looks only so often
    near.now_s += LOOK_PERIOD_S
    near.steps(follower)
    assert follower.copies.copied == 3
    asked = len(far.asked)
    near.now_s += LOOK_PERIOD_S
    near.steps(follower)
    near.now_s += LOOK_PERIOD_S
    near.steps(follower)
    assert far.asked[asked:] == ["/v1/runs/leaving"] * 2


def test_a_link_tells_what_is_in_the_way_and_goes_on_once_it_is_not(
    near: Near, far: FarRuns
) -> None:
    follower = near.follower()
    second = list(far.documents)[1]
    far.cut_at[second] = 100
    near.steps(follower)
    assert follower.copies.copied == 1
    assert "not to the end" in follower.copies.trouble
    near.now_s += LOOK_PERIOD_S
    near.steps(follower)
    assert (follower.copies.copied, follower.copies.trouble) == (2, "")


def test_a_machine_that_forbids_the_note_is_asked_once(near: Near, far: FarRuns) -> None:
    far.forbidden = True
    follower = near.follower()
    for _ in range(3):
        near.steps(follower)
        near.now_s += LOOK_PERIOD_S
    assert follower.copies.copied == 2
    assert "forbidden" in follower.copies.trouble
    assert far.asked.count("/v1/commands/runs.copied") == 1


def test_two_that_pull_at_once_take_turns(near: Near, far: FarRuns) -> None:
    follower = near.follower()
    with near.pulled.alone(0.0) as alone:
        assert alone
        with near.pulled.alone(0.0) as second:
            assert not second
        near.steps(follower)
        assert far.documents_asked() == []
    near.now_s += LOOK_PERIOD_S
    near.steps(follower)
    assert follower.copies.copied == 2


def test_another_form_is_told(near: Near, far: FarRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far, "get", lambda path, query: (200, {"gateway_url": "x"}))
    with pytest.raises(RefusedError, match="in another form"):
        near.pull().offers()
    refusal = {"message": "The control API has no GET /v1/runs/leaving", "exit_code": 2}
    monkeypatch.setattr(far, "get", lambda path, query: (400, refusal))
    with pytest.raises(RefusedError, match="does not offer its runs"):
        near.pull().offers()


def test_what_is_kept_is_for_this_user_alone(near: Near, far: FarRuns) -> None:
    near.pull().copy(Offer(id=run().id, version="1", copied=False))
    (kept,) = near.pulled.waiting()
    assert oct(kept.stat().st_mode)[-3:] == "600"
    assert oct(kept.parent.stat().st_mode)[-3:] == "700"


def test_a_machine_has_a_name_that_lists_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "my,lap\ntop\x1b[31m" + "x" * 200)
    assert machine_name().startswith("my-laptop[31mx")
    assert len(machine_name()) == 64
