"""Quotas, counters and memory out of control groups as containers present them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.telemetry.cgroup import Cgroups, CpuLimit, CpuTimes, MemoryUse, count_cpus

V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n"
V1_MOUNTS = (
    "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 /docker/ab /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    "34 31 0:31 /docker/ab /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n"
)
V1_PLACES = "4:memory:/docker/ab\n3:cpuset:/docker/ab\n2:cpu,cpuacct:/docker/ab\n"
NO_LIMIT_V1 = "9223372036854771712\n"


def machine(
    root: Path, files: Mapping[str, str], *, cpus: int = 128, allowed: int = 128
) -> Cgroups:
    for name, text in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return Cgroups(root, affinity_cpus=lambda: allowed, machine_cpus=lambda: cpus)


def v2(**files: str) -> dict[str, str]:
    named = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}
    return {
        "proc/self/cgroup": "0::/\n",
        "proc/self/mountinfo": V2_MOUNT,
        "sys/fs/cgroup/cgroup.controllers": "cpuset cpu memory\n",
    } | {f"sys/fs/cgroup/{name}": text for name, text in named.items()}


def v1(**files: str) -> dict[str, str]:
    base = "sys/fs/cgroup"
    texts = {
        f"{base}/cpu,cpuacct/cpu.cfs_quota_us": files.get("quota", "-1\n"),
        f"{base}/cpu,cpuacct/cpu.cfs_period_us": files.get("period", "100000\n"),
        f"{base}/cpu,cpuacct/cpu.stat": "nr_periods 90\nnr_throttled 40\n"
        "throttled_time 2500000000\n",
        f"{base}/cpu,cpuacct/cpuacct.usage": "7250000000\n",
        f"{base}/memory/memory.limit_in_bytes": files.get("limit", NO_LIMIT_V1),
        f"{base}/memory/memory.usage_in_bytes": "5000\n",
        f"{base}/memory/memory.stat": "cache 1\ntotal_inactive_file 1200\n",
        f"{base}/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        f"{base}/cpuset/cpuset.cpus": files.get("cpuset", "0-127\n"),
    }
    return {"proc/self/cgroup": V1_PLACES, "proc/self/mountinfo": V1_MOUNTS} | texts


def test_a_pod_on_v2_has_its_quota_not_the_hosts_cores(tmp_path: Path) -> None:
    groups = machine(
        tmp_path,
        v2(
            cpu_max="600000 100000\n",
            cpu_stat="usage_usec 9000000\nnr_periods 50\nnr_throttled 7\nthrottled_usec 340000\n",
            memory_current="9000\n",
            memory_stat="anon 1\ninactive_file 2000\n",
            memory_max="53687091200\n",
            memory_events="low 0\noom 2\noom_kill 1\n",
        ),
    )
    assert groups.cpu_limit() == CpuLimit(6.0, "cgroup2")
    assert groups.cpu_times() == CpuTimes(9.0, 0.34)
    assert groups.memory() == MemoryUse(7000, 53687091200)
    assert groups.source == "cgroup2"


def test_a_pod_on_v1_counts_in_nanoseconds(tmp_path: Path) -> None:
    groups = machine(tmp_path, v1(quota="900000\n", limit="6000\n"))
    assert groups.cpu_limit() == CpuLimit(9.0, "cgroup1")
    assert groups.cpu_times() == CpuTimes(7.25, 2.5)
    assert groups.memory() == MemoryUse(3800, 6000)


def test_the_huge_number_of_v1_is_no_limit(tmp_path: Path) -> None:
    assert machine(tmp_path, v1()).memory() == MemoryUse(3800, None)


def test_a_limit_of_a_parent_that_cannot_be_seen_counts(tmp_path: Path) -> None:
    files = v1()
    files["sys/fs/cgroup/memory/memory.stat"] = (
        "hierarchical_memory_limit 4500\ntotal_inactive_file 0\n"
    )
    assert machine(tmp_path, files).memory() == MemoryUse(5000, 4500)


def test_a_missing_period_is_the_kernels_default(tmp_path: Path) -> None:
    assert machine(tmp_path / "2", v2(cpu_max="250000\n")).cpu_limit().quota_vcpu == 2.5
    files = v1(quota="250000\n")
    del files["sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us"]
    assert machine(tmp_path / "1", files).cpu_limit().quota_vcpu == 2.5


def test_the_tightest_parent_binds_and_is_the_one_that_is_counted(tmp_path: Path) -> None:
    inner, outer = "sys/fs/cgroup/pods/one", "sys/fs/cgroup/pods"
    groups = machine(
        tmp_path,
        {
            "proc/self/cgroup": "0::/pods/one\n",
            "proc/self/mountinfo": V2_MOUNT,
            f"{inner}/cpu.max": "max 100000\n",
            f"{inner}/cpu.stat": "usage_usec 1000000\n",
            f"{inner}/memory.max": "max\n",
            f"{inner}/memory.current": "10\n",
            f"{outer}/cpu.max": "400000 100000\n",
            f"{outer}/cpu.stat": "usage_usec 3000000\nthrottled_usec 500000\n",
            f"{outer}/memory.max": "1000\n",
            f"{outer}/memory.current": "900\n",
        },
    )
    assert groups.cpu_limit() == CpuLimit(4.0, "cgroup2")
    assert groups.cpu_times().used_s == pytest.approx(3.0)
    assert groups.cpu_times().throttled_s == pytest.approx(0.5)
    assert groups.memory() == MemoryUse(900, 1000)


def test_the_smaller_of_quota_cpuset_and_affinity_wins(tmp_path: Path) -> None:
    quota = v2(cpu_max="600000 100000\n", cpuset_cpus_effective="0-3\n")
    assert machine(tmp_path / "a", quota).cpu_limit() == CpuLimit(4.0, "affinity")
    assert machine(tmp_path / "b", quota, allowed=2).cpu_limit() == CpuLimit(2.0, "affinity")
    assert machine(tmp_path / "c", v2(cpu_max="max 100000\n"), allowed=3).cpu_limit() == CpuLimit(
        3.0, "affinity"
    )
    assert machine(tmp_path / "d", v1(quota="900000\n", cpuset="1,3\n")).cpu_limit() == CpuLimit(
        2.0, "affinity"
    )
    assert machine(tmp_path / "e", v2(cpu_max="999900000 100000\n"), cpus=8).cpu_limit() == (
        CpuLimit(8.0, "host")
    )


def test_without_any_limit_the_cores_are_called_the_hosts(tmp_path: Path) -> None:
    groups = machine(tmp_path, v2(cpu_max="max 100000\n", memory_max="max\n", memory_current="7\n"))
    assert groups.cpu_limit() == CpuLimit(128.0, "host")
    assert groups.memory() == MemoryUse(7, None)


def test_a_mix_of_both_versions_is_read_controller_by_controller(tmp_path: Path) -> None:
    groups = machine(
        tmp_path,
        {
            "proc/self/cgroup": "5:memory:/api/91\n0::/\n",
            "proc/self/mountinfo": (
                "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
            ),
            "sys/fs/cgroup/unified/cpu.max": "200000 100000\n",
            "sys/fs/cgroup/unified/cpu.stat": "usage_usec 5000000\n",
            "sys/fs/cgroup/memory/api/91/memory.usage_in_bytes": "44\n",
            "sys/fs/cgroup/memory/api/91/memory.limit_in_bytes": "100\n",
        },
    )
    assert groups.cpu_limit() == CpuLimit(2.0, "cgroup2")
    assert groups.cpu_times().used_s == 5.0
    assert groups.memory() == MemoryUse(44, 100)


@pytest.mark.parametrize("path", ["/system.slice/docker-ab.scope", "/../../other", "/"])
def test_a_path_of_the_host_falls_back_to_the_mount(tmp_path: Path, path: str) -> None:
    files = v2(cpu_max="600000 100000\n") | {"proc/self/cgroup": f"0::{path}\n"}
    assert machine(tmp_path, files).cpu_limit() == CpuLimit(6.0, "cgroup2")


def test_without_groups_only_a_machine_that_is_ours_has_a_use(tmp_path: Path) -> None:
    stat = {"proc/stat": "cpu  100 0 100 500 9 0 0 0 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"}
    free = machine(tmp_path / "a", stat, cpus=2, allowed=2)
    assert free.cpu_limit() == CpuLimit(2.0, "host")
    assert free.cpu_times().used_s == pytest.approx(2.0)
    assert free.source == "procfs"
    assert free.memory() == MemoryUse(None, None)
    pinned = machine(tmp_path / "b", stat, cpus=64, allowed=2)
    assert pinned.cpu_times() == CpuTimes(), "the host's use is not that of two cores"


def test_the_roots_use_is_the_machines_and_not_that_of_pinned_cores(tmp_path: Path) -> None:
    files = v1()
    files["sys/fs/cgroup/cpu,cpuacct/release_agent"] = "\n"
    files["sys/fs/cgroup/memory/release_agent"] = "\n"
    groups = machine(tmp_path, files, allowed=4)
    assert groups.cpu_limit() == CpuLimit(4.0, "affinity")
    assert groups.cpu_times().used_s is None
    assert groups.memory() == MemoryUse(None, None)


def test_unreadable_files_are_unknown_rather_than_zero(tmp_path: Path) -> None:
    groups = machine(tmp_path, v2(cpu_max="\x00garbage\n", cpu_stat="<html>\n", memory_max="x\n"))
    assert groups.cpu_limit() == CpuLimit(128.0, "host")
    assert groups.cpu_times() == CpuTimes()
    assert groups.memory() == MemoryUse(None, None)


def test_this_machine_can_be_read() -> None:
    limit = Cgroups().cpu_limit()
    assert limit.quota_vcpu > 0
    assert Cgroups().cpu_times() is not None


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_cpu_list_counts_every_cpu_once(cpus: set[int]) -> None:
    assert count_cpus(",".join(map(str, sorted(cpus))) + "\n") == len(cpus)
    assert count_cpus(f"{min(cpus)}-{max(cpus)}") == max(cpus) - min(cpus) + 1


@pytest.mark.parametrize("text", ["", "\n", "a-b", "0-", "0,,1"])
def test_a_malformed_cpu_list_is_no_restriction(text: str) -> None:
    assert count_cpus(text) == 0
