"""The keeper where its disk is full, its folder goes, or the kernel wants memory."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from a40console.engines import keeper
from tests.engines.kept import Keep, until


@pytest.fixture
def private_mounts(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts what a script says, out of everybody else's sight; gives that view's root."""
    holders: list[subprocess.Popen[bytes]] = []

    def mount(script: str) -> Path:
        if os.geteuid() != 0:
            pytest.skip("mounting needs root")
        holder = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", f"{script} && echo done && exec sleep 120"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        holders.append(holder)
        assert holder.stdout is not None
        if holder.stdout.readline() != b"done\n":
            pytest.skip("this machine allows no private mounts")
        return Path(f"/proc/{holder.pid}/root")

    yield mount
    for holder in holders:
        holder.kill()
        holder.communicate()


def test_a_full_disk_delays_the_record_and_loses_nothing(
    keep: Keep, tmp_path: Path, private_mounts: Callable[[str], Path]
) -> None:
    root = private_mounts(f"mount -t tmpfs -o size=256k none {tmp_path}")
    run_dir = root / tmp_path.relative_to("/")
    kept = keep(
        script="echo ready; sleep 1; yes noise | head -c 1000000;sleep 1; exit 9",
        run_dir=run_dir,
        output_limit_bytes=1 << 30,
    )
    kept.engine()
    filler = run_dir / "filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "status=none"], check=False)
    until(lambda: kept.proc.read_process(kept.engine()["pid"]) is None, "the engine's end")
    time.sleep(1.5)
    assert kept.record("exit.json") is None
    assert kept.lives()
    filler.unlink()
    assert kept.exit()["code"] == 9
    kept.ended()
    assert (run_dir / "keeper.log").read_text() == ""


def test_a_full_disk_does_not_keep_the_output_from_being_capped(
    keep: Keep, tmp_path: Path, private_mounts: Callable[[str], Path]
) -> None:
    root = private_mounts(f"mount -t tmpfs -o size=256k none {tmp_path}")
    run_dir = root / tmp_path.relative_to("/")
    script = "yes noise | head -c 1000000; sleep 2; echo after; exec sleep 60"
    kept = keep(script=script, run_dir=run_dir, output_limit_bytes=64 * 1024)
    until(lambda: kept.output().endswith("after\n"), "output after the disk was full")
    assert (run_dir / "output.log").stat().st_size < 64 * 1024


def test_a_removed_run_directory_does_not_hold_the_keeper(keep: Keep, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    kept = keep(script="sleep 0.5", run_dir=run_dir)
    kept.engine()
    for file in run_dir.iterdir():
        file.unlink()
    run_dir.rmdir()
    kept.ended()
    assert not kept.lives()


def test_a_kill_for_want_of_memory_is_told(
    keep: Keep, tmp_path: Path, private_mounts: Callable[[str], Path]
) -> None:
    counter = keeper.find_oom_counter()
    if counter is None:
        pytest.skip("this machine does not count such kills")
    fake = tmp_path / "counter"
    fake.write_text("oom_kill 4\n")
    root = private_mounts(f"mount --bind {fake} {counter}")
    inside = ("nsenter", f"--mount={root.parent}/ns/mnt")
    kept = keep(script="sleep 1; kill -KILL $$", prefix=inside)
    kept.engine()
    fake.write_text("oom_kill 5\n")
    end = kept.exit()
    assert (end["signal"], end["oom_kill"]) == ("SIGKILL", True)
    assert end["oom_kill_at"] <= end["ended_at"]
