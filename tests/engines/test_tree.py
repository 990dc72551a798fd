"""Who a process is, and which processes are an engine's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines.tree import (
    ProcessId,
    ProcessInfo,
    ProcFs,
    engine_members,
    parse_stat,
    with_descendants,
)


def stat_line(
    pid: int = 42,
    name: str = "sleep",
    state: str = "S",
    *,
    parent: int = 1,
    session: int = 42,
    threads: int = 1,
    start_ticks: int = 1000,
) -> str:
    fields = [state, parent, session, session, 0, -1, 0, 0, 0, 0, 0, 250, 50, 0, 0, 20, 0]
    return f"{pid} ({name}) " + " ".join(map(str, [*fields, threads, 0, start_ticks, 9, 3, 0, 0]))


def process(pid: int, parent: int, session: int = 900, start_ticks: int = 0) -> ProcessInfo:
    return ProcessInfo(
        id=ProcessId(pid, start_ticks or pid),
        name=f"p{pid}",
        state="S",
        parent_pid=parent,
        session_id=session,
        thread_count=1,
    )


def table_of(*processes: ProcessInfo) -> Mapping[int, ProcessInfo]:
    return {p.pid: p for p in processes}


KEEPER = ProcessId(800, 800)
LEADER = ProcessId(900, 900)


def members(table: Mapping[int, ProcessInfo], known: tuple[ProcessId, ...] = ()) -> list[int]:
    return [p.pid for p in engine_members(table, leader=LEADER, keeper=KEEPER, known=known)]


@given(name=st.text(alphabet="ab )(\\:", max_size=15), pid=st.integers(1, 4_194_304))
def test_a_name_may_hold_brackets_and_blanks(name: str, pid: int) -> None:
    found = parse_stat(stat_line(pid, name))
    assert found is not None
    assert (found.name, found.pid, found.id.start_ticks) == (name, pid, 1000)


@pytest.mark.parametrize("state", ["Z", "X"])
def test_a_zombie_is_gone(state: str) -> None:
    assert parse_stat(stat_line(state=state)) is None


def test_a_zombie_with_threads_left_still_holds_its_memory() -> None:
    found = parse_stat(stat_line(state="Z", threads=3))
    assert found is not None
    assert found.thread_count == 3


@given(st.text(max_size=40))
def test_a_line_cut_short_is_no_process(text: str) -> None:
    assert parse_stat(text) is None


def test_another_root_is_read_and_what_is_no_process_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "stat").write_text(stat_line())
    (tmp_path / "43").mkdir()  # ended between the listing and the reading
    (tmp_path / "meminfo").write_text("")
    proc = ProcFs(tmp_path)
    assert list(proc.read_table()) == [42]
    assert proc.boot_id() == ""


def test_a_real_process_is_known_by_its_start_and_gone_as_a_zombie() -> None:
    proc = ProcFs()
    child = subprocess.Popen(["sleep", "60"])
    try:
        found = proc.read_process(child.pid)
        assert found is not None
        assert proc.is_alive(found.id)
        assert not proc.is_alive(ProcessId(child.pid, found.id.start_ticks + 1))
        assert found.parent_pid == os.getpid()
        assert child.pid in proc.read_table()
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie until reaped
        assert not proc.is_alive(found.id)
        assert child.pid not in proc.read_table()
    finally:
        child.kill()
        child.wait()


def test_the_engine_is_its_session_and_all_below_the_keeper() -> None:
    table = table_of(
        process(1, 0, 1),
        process(800, 1, 800),
        process(900, 800),
        process(901, 900),
        process(902, 901, session=902),  # called setsid
        process(903, 800, session=903),  # and lost its parent: the keeper is its subreaper
        process(904, 1),  # of the session, though not below the keeper
        process(700, 1, 700),
    )
    assert members(table) == [900, 901, 902, 903, 904]


def test_survivors_are_ours_while_the_keeper_or_the_session_proves_it() -> None:
    orphan, sibling = process(901, 1), process(902, 1)
    below_keeper = table_of(process(800, 1, 800), process(901, 800), sibling)
    assert members(below_keeper) == [901, 902]
    # The keeper is gone too: one of the session seen before proves the others.
    assert members(table_of(orphan, sibling), known=(orphan.id,)) == [901, 902]
    # Nobody proves anything: the number of the session may be a stranger's by now.
    assert members(table_of(orphan, sibling)) == []


def test_a_pid_given_again_proves_nothing() -> None:
    stranger = process(900, 1, start_ticks=5000)
    assert members(table_of(stranger, process(901, 900))) == []
    keeper_pid_again = process(800, 1, 800, start_ticks=5000)
    assert members(table_of(keeper_pid_again, process(901, 800, session=800))) == []


def test_a_process_with_the_dead_keepers_pid_is_not_hidden() -> None:
    table = table_of(process(900, 1), process(800, 900, start_ticks=5000))
    assert members(table) == [800, 900]


trees = st.lists(
    st.builds(
        process,
        st.integers(2, 12),
        st.integers(1, 12),
        session=st.integers(2, 12),
        start_ticks=st.integers(1, 3),
    ),
    max_size=12,
)


@given(trees, st.integers(2, 12), st.integers(2, 12))
def test_without_a_living_proof_nothing_is_ours(
    processes: list[ProcessInfo], leader: int, keeper: int
) -> None:
    table = table_of(*processes)
    found = engine_members(table, leader=ProcessId(leader, 9), keeper=ProcessId(keeper, 9))
    assert found == []


@given(trees, st.sets(st.integers(2, 12)))
def test_descendants_end_even_in_a_table_read_while_it_changed(
    processes: list[ProcessInfo], roots: set[int]
) -> None:
    table = table_of(*processes)
    found = with_descendants(table, roots)
    assert roots & set(table) <= found <= set(table)
    assert all(table[pid].parent_pid in found for pid in found - roots)
