"""The kernel's count of kills for want of memory, as the keeper finds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from a40console.engines import keeper


def cgroups(root: Path, own: str, mounts: str) -> Path:
    (root / "self").mkdir()
    (root / "self/cgroup").write_text(own)
    (root / "self/mountinfo").write_text(mounts)
    return root


V2 = "31 23 0:28 / {mount} rw,nosuid - cgroup2 cgroup rw\n"
V1 = "35 31 0:32 {root} {mount} rw,relatime shared:9 - cgroup cgroup rw,memory\n"


def test_the_counter_of_cgroup_2_is_found(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    (mount / "pod").mkdir(parents=True)
    (mount / "pod/memory.events").write_text("low 0\nmax 7\noom 1\noom_kill 3\noom_group_kill 0\n")
    proc = cgroups(tmp_path, "0::/pod\n", V2.format(mount=mount))
    assert keeper.oom_kills(keeper.find_oom_counter(proc)) == 3


@pytest.mark.parametrize(
    ("own", "root", "where"),
    [
        ("/docker/abc", "/docker/abc", ""),  # a container with the host's path
        ("/docker/abc", "/", "docker/abc"),
        ("/docker/abc", "/", ""),  # the path is not below the mount
        ("/", "/", ""),
    ],
)
def test_the_counter_of_cgroup_1_is_found(tmp_path: Path, own: str, root: str, where: str) -> None:
    mount = tmp_path / "memory"
    (mount / where).mkdir(parents=True)
    (mount / where / "memory.oom_control").write_text("oom_kill_disable 0\noom_kill 2\n")
    lines = f"9:cpu,cpuacct:/x\n4:memory:{own}\n0::/\n"
    # Both versions at once: the unified tree has no memory controller.
    mounts = V2.format(mount=tmp_path / "unified") + V1.format(root=root, mount=mount)
    proc = cgroups(tmp_path, lines, mounts)
    assert keeper.oom_kills(keeper.find_oom_counter(proc)) == 2


def test_without_a_counter_nothing_is_claimed(tmp_path: Path) -> None:
    assert keeper.find_oom_counter(tmp_path) is None
    proc = cgroups(tmp_path, "4:memory:/\n", V1.format(root="/", mount=tmp_path))
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\n")
    assert keeper.find_oom_counter(proc) is None
    assert keeper.oom_kills(None) is None
