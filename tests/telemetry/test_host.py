"""The host block: rates of the container's own counters, and honest gaps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.figures import Missing
from a40console.telemetry.cgroup import Cgroups, CpuLimit, CpuTimes, MemoryUse
from a40console.telemetry.host import HostSampler
from tests.telemetry.test_cgroup import machine, v2


class Container(Cgroups):
    """Control groups that answer what the test says."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.limit = CpuLimit(6.0, "cgroup2")
        self.times = CpuTimes(used_s=100.0, throttled_s=1.0)
        self.used = MemoryUse(2 << 30, 50 << 30)

    @property
    def source(self) -> str:
        return "cgroup2"

    def cpu_limit(self) -> CpuLimit:
        return self.limit

    def cpu_times(self) -> CpuTimes:
        return self.times

    def memory(self) -> MemoryUse:
        return self.used


class Pod:
    """One pod whose clock the test moves."""

    def __init__(self, root: Path) -> None:
        self.now_s = 10.0
        self.pids: tuple[int, ...] = ()
        self.cgroups = Container(root)
        self.sampler = HostSampler(
            disk_path=root,
            engine_pids=lambda: self.pids,
            clock=lambda: self.now_s,
            root=root,
            cgroups=self.cgroups,
        )

    def after(self, seconds: float, *, used_s: float, throttled_s: float | None = 1.0) -> None:
        self.now_s += seconds
        self.cgroups.times = CpuTimes(used_s=used_s, throttled_s=throttled_s)
        self.sampler.sample()


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


def test_rates_are_missing_until_there_are_two_samples(pod: Pod) -> None:
    unread = pod.sampler.view()
    assert unread.cpu_quota_vcpu == 6.0, "the quota needs no second sample"
    assert unread.age_s == Missing("first sample")
    assert pod.sampler.status().state == "stale"
    pod.sampler.sample()
    first = pod.sampler.view()
    assert first.cpu_used_vcpu == Missing("first sample")
    assert first.throttled_ms_per_s == Missing("first sample")
    assert first.memory_used_bytes == 2 << 30
    assert pod.sampler.status().state == "ok"


def test_use_and_throttling_are_of_the_quota(pod: Pod) -> None:
    pod.sampler.sample()
    pod.after(2.0, used_s=106.2, throttled_s=1.68)
    host = pod.sampler.view()
    assert host.cpu_used_vcpu == pytest.approx(3.1)
    assert host.throttled_ms_per_s == pytest.approx(340.0)
    assert (host.cpu_quota_vcpu, host.quota_origin) == (6.0, "cgroup2")


@given(st.floats(1e-9, 5.0), st.floats(0.2, 30.0))
def test_a_tiny_use_keeps_its_significance(
    tmp_path_factory: pytest.TempPathFactory, used_s: float, seconds: float
) -> None:
    pod = Pod(tmp_path_factory.getbasetemp())
    pod.cgroups.times = CpuTimes(used_s=0.0, throttled_s=0.0)
    pod.sampler.sample()
    pod.after(seconds, used_s=used_s, throttled_s=0.0)
    host = pod.sampler.view()
    assert host.cpu_used_vcpu == pytest.approx(used_s / seconds)
    assert host.throttled_ms_per_s == 0.0


def test_no_use_at_all_is_a_real_zero(pod: Pod) -> None:
    pod.sampler.sample()
    pod.after(1.0, used_s=100.0)
    assert pod.sampler.view().cpu_used_vcpu == 0.0


def test_a_counter_that_went_back_is_a_gap_and_then_counts_again(pod: Pod) -> None:
    pod.sampler.sample()
    pod.after(1.0, used_s=3.0, throttled_s=0.0)
    assert pod.sampler.view().cpu_used_vcpu == Missing("the counter went back")
    pod.after(1.0, used_s=3.5, throttled_s=0.0)
    assert pod.sampler.view().cpu_used_vcpu == pytest.approx(0.5)


def test_figures_that_the_container_lacks_say_so(pod: Pod) -> None:
    pod.cgroups.times = CpuTimes()
    pod.cgroups.used = MemoryUse()
    pod.sampler.sample()
    pod.now_s += 1
    pod.sampler.sample()
    host = pod.sampler.view()
    assert isinstance(host.cpu_used_vcpu, Missing)
    assert host.throttled_ms_per_s == Missing("no CPU quota counts here")
    assert isinstance(host.memory_used_bytes, Missing)
    assert isinstance(host.memory_limit_bytes, Missing)


def test_without_a_limit_the_machines_memory_is_only_named_as_such(
    pod: Pod, tmp_path: Path
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:       24684092 kB\nMemFree: 1 kB\n")
    pod.cgroups.used = MemoryUse(1 << 30, None)
    pod.sampler.sample()
    host = pod.sampler.view()
    assert host.memory_used_bytes == 1 << 30
    assert host.memory_limit_bytes == Missing("no memory limit is set; the machine has 24 GiB")


def test_shared_memory_and_disk_are_measured_or_missing(pod: Pod, tmp_path: Path) -> None:
    pod.sampler.sample()
    host = pod.sampler.view()
    assert isinstance(host.shm_total_bytes, Missing)
    assert isinstance(host.disk_free_bytes, int)
    (tmp_path / "dev/shm").mkdir(parents=True)
    pod.sampler.sample()
    host = pod.sampler.view()
    assert isinstance(host.shm_total_bytes, int)
    assert isinstance(host.shm_used_bytes, int)
    assert 0 <= host.shm_used_bytes <= host.shm_total_bytes


def test_a_folder_that_is_gone_costs_the_disk_figure_only(pod: Pod, tmp_path: Path) -> None:
    sampler = HostSampler(
        disk_path=tmp_path / "gone", engine_pids=tuple, root=tmp_path, cgroups=pod.cgroups
    )
    sampler.sample()
    assert isinstance(sampler.view().disk_free_bytes, Missing)
    assert sampler.view().memory_used_bytes == 2 << 30


def test_threads_are_read_every_other_second(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []

    def sample(pids: object) -> Missing:
        calls.append(pod.now_s)
        return Missing("no engine process")

    monkeypatch.setattr(pod.sampler._threads, "sample", sample)
    for _ in range(6):
        pod.sampler.sample()
        pod.now_s += 1.0
    assert calls == [10.0, 12.0, 14.0]
    pod.pids = (os.getpid(),)
    pod.sampler.sample()
    pod.now_s += 0.1
    pod.pids = (os.getpid(), 1)
    pod.sampler.sample()
    assert calls[3:] == [16.0, 16.1], "another set of processes is read at once"


def test_the_age_grows_and_is_named_when_it_is_late(pod: Pod) -> None:
    pod.sampler.sample()
    pod.now_s += 4
    assert pod.sampler.view().age_s == 4
    assert pod.sampler.status().state == "ok"
    pod.now_s += 8
    status = pod.sampler.status()
    assert (status.state, status.reason) == ("stale", "not read for 12 s")


def test_this_machine_can_be_read(tmp_path: Path) -> None:
    sampler = HostSampler(disk_path=tmp_path, engine_pids=lambda: [os.getpid()])
    sampler.sample()
    sampler.sample()
    host = sampler.view()
    assert host.quota_origin in {"cgroup2", "cgroup1", "affinity", "host"}
    assert isinstance(host.disk_free_bytes, int)


# --- Row 33 of the faults: a CPU that hardly works ---------------------------------------------


def test_a_cpu_that_did_nothing_is_a_measured_nothing(pod: Pod) -> None:
    pod.sampler.sample()
    pod.after(1.0, used_s=100.0)
    assert pod.sampler.view().cpu_used_vcpu == 0.0


def test_a_tiny_use_keeps_its_size_and_no_more_digits_than_it_has(pod: Pod) -> None:
    pod.sampler.sample()
    pod.after(1.0, used_s=100.000003)
    assert pod.sampler.view().cpu_used_vcpu == 3e-6, "not 0, and not 3.0000000066e-06"


def test_two_looks_at_once_do_not_make_a_rate(pod: Pod) -> None:
    pod.sampler.sample()
    pod.after(1.0, used_s=102.0)
    pod.after(0.0001, used_s=102.01)
    assert pod.sampler.view().cpu_used_vcpu == 2.0, "100 vCPU for a ten-thousandth of a second"
    pod.after(0.9999, used_s=103.0)
    assert pod.sampler.view().cpu_used_vcpu == 1.0, "over the whole second"


def test_a_rate_out_of_a_real_tree_of_groups(tmp_path: Path) -> None:
    """cgroup v2 of a pod with 6 vCPU, its counter moved by the test."""
    stat = tmp_path / "sys/fs/cgroup/cpu.stat"
    cgroups = machine(tmp_path, v2(cpu_max="600000 100000\n", cpu_stat="usage_usec 9000000\n"))
    now_s = 10.0
    sampler = HostSampler(
        disk_path=tmp_path,
        engine_pids=tuple,
        clock=lambda: now_s,
        root=tmp_path,
        cgroups=cgroups,
    )
    sampler.sample()
    for usage_us, expected in ((9_000_000, 0.0), (9_000_001, 1e-6), (10_234_501, 1.2345)):
        now_s += 1.0
        stat.write_text(f"usage_usec {usage_us}\nthrottled_usec 0\n")
        sampler.sample()
        assert sampler.view().cpu_used_vcpu == pytest.approx(expected)
        assert sampler.view().cpu_quota_vcpu == 6.0
