"""An environment goes only when nothing runs out of it, and whole."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from a40console.engines.installing.environments import installed, newest
from a40console.errors import RefusedError, UsageError
from a40console.operations.environments import uninstall
from a40console.paths import Paths, locate
from a40console.profiles.loader import load_profiles
from tests.operations.living import fake_environment, living_engine

CPU = load_profiles(Path("/nonexistent")).profiles["smollm2-135m-vllm-cpu"]


@pytest.fixture
def paths() -> Iterator[Paths]:
    home = Path(tempfile.mkdtemp(prefix="a4e-", dir="/tmp"))
    yield locate({"A40CONSOLE_HOME": str(home)})
    shutil.rmtree(home)


async def test_what_an_engine_runs_out_of_stays(paths: Paths) -> None:
    folder = fake_environment(paths, "cpu", "0.32.0")
    other = fake_environment(paths, "cpu", "0.31.0")
    profile = replace(CPU, executable=None)
    async with living_engine(paths, profile, (str(folder / "bin" / "vllm"), "serve")):
        with pytest.raises(RefusedError, match="in use") as refused:
            uninstall(paths, "0.32.0")
        assert CPU.name in refused.value.evidence
        uninstall(paths, "0.31.0").remove()
    assert not other.exists()
    assert uninstall(paths, "vllm-0.32.0-cpu").remove() > 0
    assert installed(paths.environments) == ()


def test_a_link_goes_alone_and_what_it_leads_to_is_named(paths: Paths, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "pyvenv.cfg").touch()
    paths.environments.mkdir(parents=True)
    (paths.environments / "vllm-0.32.0").symlink_to(theirs)
    target = uninstall(paths, "vllm-0.32.0")
    assert target.stays == theirs
    assert target.remove() == 0
    assert (theirs / "pyvenv.cfg").exists()
    assert list(paths.environments.iterdir()) == []


def test_the_newest_is_by_number_and_not_by_letter(paths: Paths) -> None:
    for version in ("0.9.2", "0.33.0rc1", "0.32.0", "0.33.0"):
        fake_environment(paths, "gpu", version)
    found = newest(paths.environments, "gpu")
    assert found is not None
    assert found.stamp.version == "0.33.0"
    assert newest(paths.environments, "cpu") is None


def test_a_version_that_is_there_twice_is_asked_for_by_name(paths: Paths) -> None:
    fake_environment(paths, "gpu", "0.32.0")
    fake_environment(paths, "cpu", "0.32.0")
    with pytest.raises(UsageError) as refused:
        uninstall(paths, "0.32.0")
    assert refused.value.remedy == "Name one: vllm-0.32.0, vllm-0.32.0-cpu"
    with pytest.raises(UsageError, match=r"No environment 1\.0"):
        uninstall(paths, "1.0")
