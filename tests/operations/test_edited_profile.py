"""The running profile's file: read, compared with what runs, taken over, and watched."""

from __future__ import annotations

import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from a40console.advisor.evidence import ProfileEdit
from a40console.errors import RefusedError
from a40console.model.engine import EngineState
from a40console.model.profile import Profile, Speculation
from a40console.operations import desire, record
from a40console.operations.edited_profile import diff_of, read_profile, read_shown, take_over
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus
from a40console.operations.turned import forget_turned, note_turned, with_turned, written
from a40console.paths import Paths, locate
from a40console.service.edit_watch import EditWatch

TEXT = 'kind = "vllm"\nmodel = "a/b"\nmax_model_len = {context}\ntitle = "{title}"\n'
RUNS = Profile(name="mine", kind="vllm", model="a/b", max_model_len=4096, title="Mine")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    found = locate({"A40CONSOLE_HOME": str(tmp_path)})
    found.profiles.mkdir(parents=True)
    found.state.mkdir(parents=True, exist_ok=True)
    return found


def write(paths: Paths, *, context: int = 4096, title: str = "Mine", more: str = "") -> Path:
    path = paths.profiles / "mine.toml"
    path.write_text(TEXT.format(context=context, title=title) + more)
    return path


def status(profile: Profile = RUNS, **changes: object) -> EngineStatus:
    run = RunRecord(
        id="a-start",
        profile=profile,
        base_url="http://localhost",
        socket_path=None,
        plugin=False,
        argv=("vllm",),
        argv_digest="0" * 12,
        started_at="2026-11-30T12:00:00.000+00:00",
    )
    found = EngineStatus(state=EngineState.SERVING, profile=profile, run=run)
    return replace(found, **changes)  # type: ignore[arg-type]


def test_a_broken_file_is_not_covered_up_by_a_shipped_profile_of_its_name(paths: Paths) -> None:
    (paths.profiles / "qwen3-coder-30b.toml").write_text("kind = 7\n")
    with pytest.raises(RefusedError, match="The file of qwen3-coder-30b is wrong") as refused:
        read_profile(paths, "qwen3-coder-30b")
    assert "profiles check" in refused.value.remedy


def test_a_file_that_is_gone_is_told(paths: Paths) -> None:
    with pytest.raises(RefusedError, match="mine runs, and its file is gone"):
        read_shown(paths, status(), "")


def test_nothing_to_compare_where_nothing_runs(paths: Paths) -> None:
    write(paths)
    for ended in (EngineStatus(), status(state=EngineState.STOPPED)):
        with pytest.raises(RefusedError, match="No engine runs"):
            diff_of(paths, ended)


def test_only_what_was_shown_is_applied(paths: Paths) -> None:
    write(paths, title="Once")
    shown = diff_of(paths, status()).id
    assert read_shown(paths, status(), shown).profile.title == "Once"
    write(paths, title="Twice")
    with pytest.raises(RefusedError, match="no longer what was shown") as refused:
        read_shown(paths, status(), shown)
    assert refused.value.evidence == 'title: "Mine" → "Twice"'


def test_placements_are_ours_unless_one_of_them_runs(paths: Paths) -> None:
    write(paths, more="[[placements]]\nmax_model_len = 2048\n")
    (change,) = diff_of(paths, status()).changes
    assert (change.key, change.effect) == ("placements", "live")
    (change,) = diff_of(paths, status(rung=1)).changes
    assert (change.key, change.effect) == ("placements", "restart")


def test_what_is_taken_over_is_kept_and_what_was_turned_stays(paths: Paths) -> None:
    started = replace(RUNS, speculation=Speculation(tokens=5, start="off"))
    turned = replace(started, speculation=Speculation(tokens=5, start=3))
    now = replace(status(started), profile=turned)
    assert now.run is not None
    now.run.folder(paths.engine_runs).mkdir(parents=True)
    desire.remember(paths.desired, turned)
    file = replace(
        started,
        title="T",
        usd_per_hour=Decimal("0.5"),
        speculation=Speculation(tokens=5, start="off", locked="corrupts code"),
    )
    after = take_over(now, file, paths.engine_runs, paths.desired)
    assert after.profile is not None
    assert (after.profile.title, after.profile.usd_per_hour) == ("T", Decimal("0.5"))
    assert after.profile.speculation == Speculation(tokens=5, start=3, locked="corrupts code")
    kept = record.load(now.run.folder(paths.engine_runs))
    assert kept is not None
    assert kept.profile.title == "T"
    assert desire.desired(paths.desired) == after.profile
    assert desire.turned_since(kept.profile, paths.desired) == after.profile


TURNING = "[speculation]\nenabled = {enabled}\ntokens = {tokens}\n"


def test_what_a_command_turned_is_no_edit_and_is_kept(paths: Paths) -> None:
    as_written = replace(RUNS, speculation=Speculation(tokens=5))
    turned = replace(RUNS, speculation=Speculation(tokens=5, enabled=True))
    write(paths, more=TURNING.format(enabled="false", tokens=5))
    (change,) = diff_of(paths, status(turned)).changes  # as far as is known it was edited
    assert (change.key, change.running, change.file) == ("speculation.enabled", "true", "false")
    note_turned(paths.turned, as_written)
    assert diff_of(paths, status(turned)).changes == ()
    note_turned(paths.turned, turned)  # turned again: what is written stays what it was
    assert diff_of(paths, status(turned)).changes == ()

    write(paths, more=TURNING.format(enabled="false", tokens=9))
    (change,) = diff_of(paths, status(turned)).changes
    assert (change.key, change.effect) == ("speculation.tokens", "restart")
    file = read_profile(paths, "mine").profile
    wanted = with_turned(file, turned, written(paths.turned, "mine"))
    assert wanted.speculation == Speculation(tokens=9, enabled=True)

    forget_turned(paths.turned)
    assert {c.key for c in diff_of(paths, status(turned)).changes} == {
        "speculation.enabled",
        "speculation.tokens",
    }
    forget_turned(paths.turned)
    paths.turned.write_text("[]")
    assert written(paths.turned, "mine") is None


def test_the_watch_sees_an_edit_a_fault_and_the_end_of_both(paths: Paths) -> None:
    write(paths)
    watch, now = EditWatch(paths), status()

    def look() -> ProfileEdit | None:
        watch.look(now)
        watch.reading.settle()
        return watch.look(now)

    assert look() is None
    path = write(paths, context=8192, title="T")
    os.utime(path, ns=(1, 1))
    assert watch.look(now) is None  # it is read aside
    found = look()
    assert found is not None
    assert found.changes == ('title: "Mine" → "T"', "max_model_len: 4096 → 8192")
    assert (found.restarts, found.fault) == (1, "")
    assert watch.look(now) is found  # nothing is read again
    path.write_text("kind = [")
    os.utime(path, ns=(2, 2))
    assert watch.look(now) is found  # until it is read, what was known stands
    found = look()
    assert found is not None
    assert found.fault.startswith("The file of mine is wrong")
    assert watch.look(EngineStatus()) is None
    write(paths)
    os.utime(path, ns=(3, 3))
    assert look() is None
