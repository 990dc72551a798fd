"""Starts that fail: what the operator reads, and that nothing is left of them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from a40console.engines import launching
from a40console.engines.launching import EngineStartError, Launch
from a40console.engines.process import EngineProcess
from a40console.engines.tree import ProcFs

ENV = {"PATH": os.environ["PATH"]}


async def test_a_program_that_is_not_there_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EngineStartError) as caught:
        await EngineProcess.start(tmp_path / "run", Launch(("no-such-engine",), ENV, Path("/")))
    assert "No such file or directory: no-such-engine" in caught.value.message
    assert "Install the engine" in caught.value.remedy


@pytest.mark.parametrize(
    ("content", "mode", "remedy"),
    [
        ("#!/absent/python\n", 0o700, "interpreter"),
        ("#!/bin/sh\n", 0o600, "chmod"),
        ("nonsense", 0o700, "profile"),
    ],
)
async def test_the_usual_reasons_of_a_failed_start_are_told(
    tmp_path: Path, content: str, mode: int, remedy: str
) -> None:
    program = tmp_path / "engine"
    program.write_text(content)
    program.chmod(mode)
    with pytest.raises(EngineStartError) as caught:
        await EngineProcess.start(tmp_path / "run", Launch((str(program),), ENV, Path("/")))
    assert remedy in caught.value.remedy
    assert str(program) in caught.value.evidence


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(EngineStartError, match="/absent"):
        await EngineProcess.start(tmp_path / "run", Launch(("true",), ENV, Path("/absent")))


async def test_a_run_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineStartError, match="cannot be made"):
        await EngineProcess.start(tmp_path / "file" / "run", Launch(("true",), ENV, Path("/")))


@pytest.mark.parametrize("python", ["/absent/python", "false", "true"])
async def test_a_keeper_that_cannot_run_is_told(tmp_path: Path, python: str) -> None:
    with pytest.raises(EngineStartError, match="keeper could not be started") as caught:
        await EngineProcess.start(tmp_path / "run", Launch(("true",), ENV, Path("/")), python)
    assert caught.value.evidence


async def test_a_keeper_that_records_nothing_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mute = tmp_path / "mute.py"
    mute.write_text(
        "import os, sys, subprocess, time\n"
        "sys.stdin.read()\n"
        "pid = os.fork()\n"
        "if pid: print(pid, flush=True); os._exit(0)\n"
        "null = os.open('/dev/null', os.O_RDWR)\n"
        "for fd in range(3): os.dup2(null, fd)\n"
        "engine = subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{engine.pid}}')\n"
        "time.sleep(300)\n"
    )
    monkeypatch.setattr(launching, "KEEPER_SCRIPT", mute)
    with pytest.raises(EngineStartError, match="recorded nothing"):
        await EngineProcess.start(
            tmp_path / "run", Launch(("true",), ENV, Path("/")), timeout_s=1.5
        )
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    deadline_s = time.monotonic() + 20
    while any(ProcFs().read_process(pid) for pid in pids):
        assert time.monotonic() < deadline_s, "the keeper's tree lives on"
        await asyncio.sleep(0.02)


async def test_a_full_disk_is_named_and_leaves_no_engine(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    mount = f"mount -t tmpfs -o size=64k none {tmp_path} && mkdir -m 700 {tmp_path}/run"
    fill = f"(cat /dev/zero > {tmp_path}/filler 2>/dev/null; true)"
    holder = await asyncio.create_subprocess_exec(
        *("unshare", "-m", "sh", "-c", f"{mount} && {fill} && echo done && exec sleep 120"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert holder.stdout is not None
        if await holder.stdout.readline() != b"done\n":
            pytest.skip("this machine allows no private mounts")
        run_dir = Path(f"/proc/{holder.pid}/root") / tmp_path.relative_to("/") / "run"
        with pytest.raises(EngineStartError, match="disk is full"):
            await EngineProcess.start(
                run_dir, Launch(("sleep", "3217"), ENV, Path("/")), timeout_s=1.5
            )
        processes = ProcFs().read_table()
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes]
        assert b"sleep\x003217\x00" not in lines
    finally:
        holder.kill()
        await holder.wait()
