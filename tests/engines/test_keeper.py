"""The keeper, run as the service runs it: by path, with the launch on its stdin."""

from __future__ import annotations

import ast
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from a40console.engines import keeper
from tests.engines.kept import DEADLINE_S, SCRIPT, Keep, until


def test_it_needs_the_standard_library_only() -> None:
    tree = ast.parse(SCRIPT.read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import)
                for alias in node.names}  # fmt: skip
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names | {"__future__"}


def test_the_engine_leads_its_own_session_and_is_recorded_by_its_start(keep: Keep) -> None:
    kept = keep(script="echo ready; exec sleep 60")
    engine = kept.engine()
    found, own = kept.proc.read_process(engine["pid"]), kept.proc.read_process(kept.pid)
    assert found is not None
    assert own is not None
    assert found.session_id == engine["session_id"] == found.pid
    assert found.id.start_ticks == engine["start_ticks"]
    assert found.parent_pid == kept.pid == engine["keeper_pid"]
    assert own.id.start_ticks == engine["keeper_start_ticks"]
    assert own.session_id not in (os.getsid(0), found.session_id)
    assert engine["boot_id"] == kept.proc.boot_id()
    assert 0 <= time.monotonic() - engine["started_monotonic_s"] < DEADLINE_S
    assert engine["started_at"].endswith("Z")
    until(lambda: "ready" in kept.output(), "the output")
    for name in ("engine.json", "output.log", "keeper.log"):
        assert stat.S_IMODE((kept.run_dir / name).stat().st_mode) == 0o600


def test_the_output_goes_to_the_file_without_a_pipe(keep: Keep) -> None:
    kept = keep(script="exec sleep 60")
    fds = Path(f"/proc/{kept.engine()['pid']}/fd")
    log = kept.run_dir / "output.log"
    assert [(fds / n).readlink() for n in "012"] == [Path("/dev/null"), log, log]


def test_the_engine_starts_with_the_usual_signals(keep: Keep) -> None:
    ignore_all = ("env", "--ignore-signal=INT", "--ignore-signal=HUP", "--ignore-signal=CHLD")
    kept = keep("sleep", "60", prefix=ignore_all)
    status = Path(f"/proc/{kept.engine()['pid']}/status").read_text()
    masks = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Sig"))
    usual = sum(1 << (n - 1) for n in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM))
    assert int(masks["SigIgn"], 16) & usual == 0
    assert int(masks["SigBlk"], 16) == 0
    os.kill(kept.engine()["pid"], signal.SIGINT)
    assert kept.exit()["signal"] == "SIGINT"


@pytest.mark.parametrize(
    ("script", "code", "by_signal"),
    [
        ("echo last words; exit 3", 3, None),
        ("echo last words; exit 0", 0, None),
        ("echo last words; kill -ABRT $$", None, "SIGABRT"),
        ("echo last words; kill -40 $$", None, "signal 40"),
    ],
)
def test_the_end_is_recorded(keep: Keep, script: str, code: int | None, by_signal: str) -> None:
    kept = keep(script=script)
    end = kept.exit()
    assert (end["code"], end["signal"], end["error"]) == (code, by_signal, None)
    assert end["last_lines"] == ["last words"]
    assert end["survivors"] == []
    assert end["oom_kill"] in (False, None)
    assert kept.engine()["pid"] > 0
    kept.ended()
    assert not list(kept.run_dir.glob("*.tmp"))
    assert (kept.run_dir / "keeper.log").read_text() == ""


def test_the_last_forty_lines_are_kept_whatever_they_are(keep: Keep) -> None:
    many = 'for i in $(seq 100); do echo "line $i"; done; printf "10%%\\r20%%\\rno \\377 text"'
    lines = keep(script=many).exit()["last_lines"]
    assert len(lines) == 40
    assert lines[-4:] == ["line 100", "10%", "20%", "no \ufffd text"]


@pytest.mark.parametrize(
    ("name", "content", "mode", "number"),
    [
        ("absent", None, 0, 2),
        ("not-executable", "#!/bin/sh\n", 0o600, 13),
        ("not-a-program", "\x00\x01", 0o700, 8),
        ("no-interpreter", "#!/absent/python\n", 0o700, 2),
    ],
)
def test_a_program_that_cannot_be_executed_is_told(
    keep: Keep, tmp_path: Path, name: str, content: str | None, mode: int, number: int
) -> None:
    program = tmp_path / name
    if content is not None:
        program.write_text(content)
        program.chmod(mode)
    kept = keep(str(program))
    end = kept.exit()
    assert (end["code"], end["signal"], end["errno"]) == (None, None, number)
    assert os.strerror(number) in end["error"]
    assert kept.record("engine.json") is None
    kept.ended()


def test_a_missing_folder_and_an_empty_launch_are_told(keep: Keep, tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    assert "/absent" in keep("true", cwd="/absent", run_dir=first).exit()["error"]
    end = keep(argv=[], run_dir=second, script="-").exit()
    assert end["error"] == "the launch names no program"


def test_a_launch_cut_short_starts_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT), str(tmp_path)],
        input=b'{"argv": ["touch", "/tmp/',
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    assert list(tmp_path.iterdir()) == []


def test_secrets_reach_the_engine_alone(keep: Keep) -> None:
    kept = keep(script='echo "${TOKEN#k}"; exec sleep 60', env={"PATH": "/bin", "TOKEN": "k9q4"})
    until(lambda: "9q4" in kept.output(), "the engine's environment")
    own = Path(f"/proc/{kept.pid}")
    assert b"k9q4" not in (own / "cmdline").read_bytes() + (own / "environ").read_bytes()
    assert all(b"k9q4" not in file.read_bytes() for file in kept.run_dir.iterdir())


def test_it_stays_until_the_last_survivor_is_gone(keep: Keep) -> None:
    # One survivor in the session, one that left it and lost its parent.
    kept = keep(script="sleep 61 & (setsid sleep 62 &); sleep 0.3; exit 7")
    end = kept.exit(final=False)
    assert end["code"] == 7
    assert [s["name"] for s in end["survivors"]] == ["sleep", "sleep"]
    assert all(s["rss_bytes"] > 0 for s in end["survivors"])
    first, second = end["survivors"]
    os.kill(first["pid"], signal.SIGKILL)
    until(lambda: len(kept.exit(final=False)["survivors"]) == 1, "one survivor less")
    assert kept.exit(final=False)["survivors"] == [second]
    assert kept.lives()
    os.kill(second["pid"], signal.SIGKILL)
    assert kept.exit() == end | {"survivors": []}
    kept.ended()


def test_signals_meant_for_a_terminal_or_a_service_end_neither(keep: Keep) -> None:
    kept = keep(script="exec sleep 60")
    engine = kept.engine()["pid"]
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        os.kill(kept.pid, number)
    time.sleep(0.3)
    assert kept.lives()
    os.kill(engine, signal.SIGKILL)
    assert kept.exit()["signal"] == "SIGKILL"


def test_the_output_is_capped_in_place(keep: Keep, tmp_path: Path) -> None:
    limit = 64 * 1024
    burst = tmp_path / "burst"
    burst.write_text("".join(f"line {i} of a long log, says the engine\n" for i in range(3001)))
    script = f"sleep 1.3; cat {burst}; sleep 1.5; echo after; exec sleep 60"
    kept = keep(script=script, output_limit_bytes=limit)
    before = kept.run_dir / "output.log.1"
    until(lambda: "after" in kept.output() and before.exists(), "the cap")
    lines = before.read_text().splitlines()
    assert lines[-1].startswith("line 3000 ")
    assert lines[0].startswith("line ")  # whole lines only
    assert limit * 0.4 < before.stat().st_size <= limit / 2
    assert kept.output() == "after\n"
    assert stat.S_IMODE(before.stat().st_mode) == 0o600
    os.kill(kept.engine()["pid"], signal.SIGKILL)
    last = kept.exit()["last_lines"]
    assert len(last) == 40
    assert last[-2].startswith("line 3000 ")
    assert last[-1] == "after"


def test_output_without_an_end_of_line_is_kept_as_well(tmp_path: Path) -> None:
    (tmp_path / "output.log").write_bytes(b"x" * 3000)
    keeper.cap_output(tmp_path, 2000)
    assert (tmp_path / "output.log").read_bytes() == b""
    assert (tmp_path / "output.log.1").read_bytes() == b"x" * 1000


def test_an_idle_keeper_costs_next_to_nothing(keep: Keep) -> None:
    kept = keep(script="exec sleep 60")
    kept.engine()
    time.sleep(0.5)
    process = psutil.Process(kept.pid)
    before, began_s = process.cpu_times(), time.monotonic()
    time.sleep(3)
    after = process.cpu_times()
    spent_s = after.user + after.system - before.user - before.system
    assert spent_s <= 0.02 * (time.monotonic() - began_s)
    assert process.memory_info().rss < 24 * 1024 * 1024


def test_many_short_lived_children_are_reaped(keep: Keep) -> None:
    kept = keep(
        script="for i in $(seq 40); do (setsid sleep 0.1 &); done; sleep 0.6; exec sleep 60"
    )
    kept.engine()
    time.sleep(1)
    below = Path(f"/proc/{kept.pid}/task/{kept.pid}/children").read_text().split()
    assert below == [str(kept.engine()["pid"])]
