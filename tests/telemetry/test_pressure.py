"""What processes waited for: the container's own counters, else the machine's, which says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from a40console.model.figures import Missing
from a40console.telemetry.pressure import PressureReader, _averages
from tests.telemetry.test_cgroup import v1, v2

IO = (
    "some avg10=34.50 avg60=9.1 avg300=2.0 total=9\nfull avg10=21.00 avg60=8.0 avg300=1.0 total=8\n"
)
QUIET = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


def reader(root: Path, files: Mapping[str, str]) -> PressureReader:
    for name, text in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return PressureReader(root)


def test_a_container_on_v2_has_pressure_of_its_own(tmp_path: Path) -> None:
    files = v2(io_pressure=IO, memory_pressure=IO, memory_events="oom 2\noom_kill 1\n")
    found = reader(tmp_path, {**files, "proc/pressure/io": QUIET}).read()
    assert found.origin == "container"
    assert (found.io_some_ratio, found.io_full_ratio) == (0.345, 0.21)
    assert found.memory_full_ratio == 0.21
    assert found.oom_kills == 1


def test_without_it_the_machines_is_given_as_the_machines(tmp_path: Path) -> None:
    found = reader(tmp_path, {**v1(), "proc/pressure/io": IO}).read()
    assert found.origin == "machine"
    assert found.io_some_ratio == 0.345
    assert found.memory_full_ratio == Missing("this kernel counts no pressure")
    assert found.oom_kills == 3


def test_a_kernel_without_pressure_files_says_so(tmp_path: Path) -> None:
    found = reader(tmp_path, {}).read()
    why = Missing("this kernel counts no pressure")
    assert (found.io_some_ratio, found.io_full_ratio) == (why, why)
    assert found.oom_kills == Missing("this container's are not counted")


@given(text=st.text(alphabet="somefullavg10=.9 \n-", max_size=80))
def test_whatever_stands_there_a_share_is_a_share(text: str) -> None:
    for share in _averages(text).values():
        assert 0 <= share <= 1
