"""Every start is remembered with its phases and its end, through restarts of the service."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from a40console.engines.process import EngineProcess
from a40console.engines.run_record import ENGINE_FILE, EXIT_FILE
from a40console.model.control import EngineStart
from a40console.model.engine import EngineEnd, EngineState
from a40console.model.figures import Missing, number
from a40console.model.secrets import COVER
from a40console.operations.adoption import adopted_status
from a40console.operations.past_starts import KEPT_STARTS, PastStarts
from a40console.operations.record import RunRecord, before, note_before
from a40console.operations.status import EngineStatus
from a40console.profiles.loader import load_profiles

QWEN = load_profiles(Path("/nonexistent")).profiles["qwen3-coder-30b"]
KILLED = EngineEnd(
    Missing("a signal ended it"), "SIGKILL", "out of memory", "2026-11-29T10:05:00.000Z"
)
BEGAN = "2026-11-29T10:00:00.000Z"
BEGAN_S = 1_795_946_400.0


class Clock:
    """Wall and monotonic time, together."""

    def __init__(self) -> None:
        self.s = 0.0

    def wall(self) -> float:
        return BEGAN_S + self.s

    def monotonic(self) -> float:
        return 1000.0 + self.s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "starts.json"


def past(file: Path, clock: Clock) -> PastStarts:
    return PastStarts(file, wall=clock.wall, clock=clock.monotonic)


def run_of(name: str) -> RunRecord:
    return RunRecord(
        id=name,
        profile=QWEN,
        base_url="http://engine",
        socket_path=None,
        plugin=False,
        argv=("vllm", "serve"),
        argv_digest="d1",
        started_at=BEGAN,
    )


def status(state: EngineState, phase: str | None = None, **others: Any) -> EngineStatus:
    known: dict[str, Any] = {"profile": QWEN, "run": run_of("run-1"), "started_at_s": 1000.0}
    known |= others
    return EngineStatus(state=state, phase=phase, **known)


def follow(starts: PastStarts, clock: Clock, *steps: tuple[float, EngineStatus]) -> None:
    for at_s, step in steps:
        clock.s = at_s
        starts.follow(step)


def newest(starts: PastStarts) -> EngineStart:
    return starts.list(1)[0]


def phases(start: EngineStart) -> dict[str, float]:
    assert not isinstance(start.phases, Missing)
    return {phase.name: phase.seconds for phase in start.phases}


def brought_up(starts: PastStarts, clock: Clock) -> None:
    follow(
        starts,
        clock,
        (0, status(EngineState.STARTING, "starting")),
        (6, status(EngineState.STARTING, "load")),
        (20, status(EngineState.STARTING, "load")),
        (44, status(EngineState.STARTING, "compile")),
        (63, status(EngineState.SERVING, "ready")),
    )


def test_secrets_on_a_command_line_are_neither_kept_nor_told(file: Path, clock: Clock) -> None:
    starts = past(file, clock)
    argv = ("vllm", "serve", "--api-key", "sk-1", "--hf-token=hf-2", "--enforce-eager")
    starts.follow(status(EngineState.STARTING, "load", run=replace(run_of("run-1"), argv=argv)))
    kept = ("vllm", "serve", "--api-key", COVER, f"--hf-token={COVER}", "--enforce-eager")
    assert newest(starts).argv == kept
    assert "sk-1" not in file.read_text()
    assert "hf-2" not in file.read_text()


def test_a_simulated_start_is_known_as_one(file: Path, clock: Clock) -> None:
    starts = past(file, clock)
    run = run_of("run-1")
    simulated = replace(run, profile=replace(run.profile, kind="sim"))
    starts.follow(status(EngineState.STARTING, "load", run=simulated))
    assert newest(starts).simulated
    starts.follow(status(EngineState.STARTING, "load", run=run_of("run-2")))
    assert not newest(starts).simulated


def test_phases_of_a_start_that_no_console_watches(file: Path, clock: Clock) -> None:
    starts = past(file, clock)
    brought_up(starts, clock)
    clock.s = 163
    start = newest(starts)
    assert phases(start) == {"starting": 6.0, "load": 38.0, "compile": 19.0}
    assert (start.id, start.profile, start.argv_digest) == ("run-1", "qwen3-coder-30b", "d1")
    assert (start.started_at, start.ready_after_s, start.served_s) == (BEGAN, 63.0, 100.0)
    assert isinstance(start.end, Missing)
    assert isinstance(start.ended_at, Missing)


def test_its_end_with_signal_and_cause(file: Path, clock: Clock) -> None:
    starts = past(file, clock)
    brought_up(starts, clock)
    follow(starts, clock, (310, status(EngineState.FAILED, end=KILLED)))
    follow(starts, clock, (320, status(EngineState.FAILED, end=replace(KILLED, cause="later"))))
    start = newest(past(file, clock))
    assert start.end == KILLED
    assert (start.ended_at, start.served_s) == ("2026-11-29T10:05:00.000Z", 237.0)


def test_what_is_fetched_first_counts_too(file: Path, clock: Clock) -> None:
    starts = past(file, clock)
    fetching = EngineStatus(state=EngineState.FETCHING, profile=QWEN, phase="download")
    follow(starts, clock, (0, fetching), (5, fetching), (30, fetching))
    follow(starts, clock, (31, status(EngineState.STARTING, "starting")))
    assert phases(newest(starts)) == {"download": 31.0, "starting": 0.0}


def test_a_fetch_that_was_given_up_is_not_the_next_starts(file: Path, clock: Clock) -> None:
    starts = past(file, clock)
    follow(
        starts,
        clock,
        (0, EngineStatus(state=EngineState.FETCHING, profile=QWEN, phase="download")),
        (9, EngineStatus(state=EngineState.FAILED, profile=QWEN)),
        (500, status(EngineState.STARTING, "starting")),
    )
    assert phases(newest(starts)) == {"starting": 0.0}


def test_a_start_goes_on_in_another_service(file: Path, clock: Clock) -> None:
    first = past(file, clock)
    follow(
        first,
        clock,
        (0, status(EngineState.STARTING, "starting")),
        (6, status(EngineState.STARTING, "load")),
    )
    again = past(file, clock)
    follow(again, clock, (30, status(EngineState.STARTING, "load")))
    again.measured("run-1", {"starting": 0.0, "load": 0.1})
    follow(again, clock, (40, status(EngineState.SERVING, "ready")))
    start = newest(again)
    assert phases(start) == {"starting": 6.0, "load": 34.0}
    assert start.ready_after_s == 40.0


def test_phases_as_the_output_tells_them_are_exact(file: Path, clock: Clock) -> None:
    starts = past(file, clock)
    follow(starts, clock, (0, status(EngineState.STARTING, "starting")))
    starts.measured("run-1", {"starting": 0.3, "load": 0.251})
    follow(starts, clock, (1, status(EngineState.SERVING, "ready")))
    assert phases(newest(starts)) == {"starting": 0.3, "load": 0.25}


def test_one_that_was_found_serving_says_so(file: Path, clock: Clock) -> None:
    starts = past(file, clock)
    follow(starts, clock, (500, status(EngineState.SERVING, "ready")))
    start = newest(starts)
    assert start.ready_after_s == Missing("nobody watched it come to serve")
    assert start.phases == Missing("its phases were not watched")


def test_one_that_never_served(file: Path, clock: Clock) -> None:
    starts = past(file, clock)
    follow(starts, clock, (0, status(EngineState.STARTING, "starting")))
    assert newest(starts).ready_after_s == Missing("it does not serve yet")
    follow(starts, clock, (8, status(EngineState.FAILED, end=KILLED)))
    follow(starts, clock, (9, status(EngineState.STARTING, "port", end=KILLED)))
    start = newest(starts)
    assert (start.ready_after_s, start.served_s) == (Missing("it never served"),) * 2
    assert phases(start) == {"starting": 8.0}


def test_an_end_that_nobody_saw_is_looked_up(file: Path, clock: Clock, tmp_path: Path) -> None:
    starts = past(file, clock)
    brought_up(starts, clock)
    follow(starts, clock, (70, status(EngineState.STARTING, "load", run=run_of("run-2"))))
    folder = tmp_path / "engines" / "run-1"
    folder.mkdir(parents=True)
    (folder / ENGINE_FILE).write_text(
        json.dumps(
            {
                "pid": 2**22,
                "start_ticks": 1,
                "keeper_pid": 2**22 + 1,
                "keeper_start_ticks": 1,
                "boot_id": "another",
                "started_at": BEGAN,
                "started_monotonic_s": 1.0,
            }
        )
    )
    (folder / EXIT_FILE).write_text(
        json.dumps(
            {
                "code": 1,
                "signal": None,
                "error": None,
                "errno": None,
                "oom_kill": None,
                "oom_kill_at": None,
                "ended_at": "2026-11-29T10:10:00Z",
                "last_lines": [],
                "survivors": [],
            }
        )
    )
    later = past(file, clock)
    later.find_ends(tmp_path / "engines")
    unseen, seen = later.list(2)
    assert not isinstance(seen.end, Missing)
    assert (seen.end.code, seen.end.cause) == (1, "exited with code 1")
    assert (seen.ended_at, seen.served_s) == ("2026-11-29T10:10:00.000Z", 537.0)
    assert not isinstance(unseen.end, Missing)
    assert "neither code nor signal is known" in unseen.end.cause
    assert unseen.ended_at == Missing("nobody saw when it ended")


def test_etas_come_from_starts_of_the_profile_that_served(file: Path, clock: Clock) -> None:
    starts = past(file, clock)
    assert starts.of("qwen3-coder-30b") == []
    brought_up(starts, clock)
    failed = status(EngineState.STARTING, "load", run=run_of("run-2"))
    follow(starts, clock, (70, failed), (80, replace(failed, state=EngineState.FAILED, end=KILLED)))
    again = past(file, clock)
    assert again.of("qwen3-coder-30b") == [{"starting": 6.0, "load": 38.0, "compile": 19.0}]
    assert again.of("another") == []


def test_the_file_is_bounded_and_a_broken_one_is_begun_anew(file: Path, clock: Clock) -> None:
    file.write_text('{"qwen3-coder-30b": [{"load": 3}]}')
    starts = past(file, clock)
    assert starts.list(10) == ()
    for number_of in range(KEPT_STARTS + 20):
        follow(starts, clock, (0, status(EngineState.STARTING, run=run_of(f"r{number_of:03}"))))
    kept = past(file, clock).list(1000)
    assert len(kept) == KEPT_STARTS
    assert [start.id for start in kept[:2]] == ["r119", "r118"]


def test_a_disk_that_takes_nothing_costs_the_permanence(tmp_path: Path, clock: Clock) -> None:
    starts = past(tmp_path / "gone" / "starts.json", clock)
    brought_up(starts, clock)
    assert number(newest(starts).ready_after_s) == 63.0


def test_an_adopting_service_knows_restarts_and_the_last_end(tmp_path: Path) -> None:
    folder = tmp_path / "run-1"
    folder.mkdir()
    note_before(folder, 2, KILLED)
    (folder / ENGINE_FILE).write_text(
        json.dumps(
            {
                "pid": 2**22,
                "start_ticks": 1,
                "keeper_pid": 2**22 + 1,
                "keeper_start_ticks": 1,
                "boot_id": "another",
                "started_at": BEGAN,
                "started_monotonic_s": 1.0,
            }
        )
    )
    process = EngineProcess.recorded(folder)
    assert process is not None
    adopted = adopted_status(run_of("run-1"), process, 5.0)
    assert (adopted.restarts, adopted.end) == (2, KILLED)
    assert before(tmp_path / "none").restarts == 0
