"""What the service adds to a snapshot for the advisor: the short past, and what the log says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from a40console.engines.run_record import OUTPUT_FILE
from a40console.errors import NoServiceError
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.service.advisor_evidence import EvidenceKeeper
from a40console.telemetry.host import HostSampler
from a40console.telemetry.nvml import GpuSampler
from tests import make_snapshot as made
from tests.service.test_assemble import SPECULATING as PROFILE
from tests.service.test_assemble import run_of, seen, status_of
from tests.telemetry.test_cgroup import v2

LINE = (
    "(APIServer_0 pid=41) INFO [loggers.py:335] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
    "Avg generation throughput: 7.0 tokens/s, Running: 1 reqs\n"
)


class Service:
    """A keeper whose clock a test moves, on a machine of files."""

    def __init__(self, root: Path) -> None:
        for name, text in v2(
            cpu_max="600000 100000\n",
            cpu_stat="usage_usec 9000000\nthrottled_usec 0\n",
            io_pressure="some avg10=34.50 total=9\nfull avg10=21.00 total=8\n",
            memory_events="oom_kill 0\n",
        ).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        self.root, self.now_s = root, 100.0
        self.host = HostSampler(
            disk_path=root, engine_pids=tuple, root=root, clock=lambda: self.now_s
        )
        self.keeper = EvidenceKeeper(
            host=self.host,
            gpu=GpuSampler(clock=lambda: self.now_s),
            runs=root / "runs",
            clock=lambda: self.now_s,
        )


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)


async def test_the_short_past_comes_with_the_evidence(service: Service) -> None:
    view = await seen()
    for _ in range(70):
        service.now_s += 1
        service.host.sample()
        evidence = service.keeper.take(status_of(EngineState.SERVING), view)
    assert evidence.trends.busy_ratio == 1.0
    assert evidence.trends.throttled_ms_per_s == 0.0
    assert evidence.trends.oom_kills == 0
    assert (evidence.stalls.origin, evidence.stalls.io_some_ratio) == ("container", 0.345)
    assert evidence.hidden_processes == 0
    (service.root / "sys/fs/cgroup/memory.events").write_text("oom_kill 2\n")
    service.host.sample()
    assert service.keeper.take(status_of(EngineState.SERVING), view).trends.oom_kills == 2


async def test_another_engine_begins_with_no_past(service: Service) -> None:
    view = await seen()
    for _ in range(70):
        service.now_s += 1
        service.host.sample()
        service.keeper.take(status_of(EngineState.SERVING), view)
    other = status_of(EngineState.SERVING, run=replace(run_of(PROFILE), id="run-2"))
    assert isinstance(service.keeper.take(other, view).trends.busy_ratio, Missing)


async def test_what_the_profile_lets_run_is_told(service: Service) -> None:
    asked = replace(PROFILE, max_running=2)
    told = service.keeper.take(status_of(EngineState.SERVING, profile=asked), await seen())
    assert told.asked_max_running == 2
    silent = replace(PROFILE, max_running=None)
    told = service.keeper.take(status_of(EngineState.SERVING, profile=silent), None)
    assert told.asked_max_running == Missing("the profile does not say")


async def test_a_log_that_disagrees_is_told(service: Service) -> None:
    view, status = await seen(), status_of(EngineState.SERVING)
    assert status.run is not None
    log = status.run.folder(service.root / "runs") / OUTPUT_FILE
    log.parent.mkdir(parents=True)
    log.write_text("started\n")
    for second in range(40):
        service.now_s += 1
        if second % 10 == 5:
            with log.open("a") as output:
                output.write(LINE)
        evidence = service.keeper.take(status, replace(view, generated_tokens=80 * second))
    assert evidence.logged is not None
    assert evidence.logged.logged_tokens_per_s == 7.0
    assert evidence.logged.counted_tokens_per_s == pytest.approx(80)


async def test_the_newest_snapshot_is_explained_by_its_own_evidence(service: Service) -> None:
    with pytest.raises(NoServiceError):
        service.keeper.explain(None)
    asked = replace(PROFILE, max_running=3)
    service.keeper.take(status_of(EngineState.SERVING, profile=asked), await seen())
    snapshot = made.snapshot(
        requests=made.requests(max_running=Missing("not exposed"), waiting=2, running=3)
    )
    explanation = service.keeper.explain(snapshot)
    assert explanation.seq == snapshot.seq
    assert explanation.causes[0].text == "2 requests waiting: max_running 3 is reached"
