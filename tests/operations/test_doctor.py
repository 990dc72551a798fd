"""The doctor finds what is missing, says the line that mends it, and holds nobody up."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from a40console.config import GatewaySettings, Settings
from a40console.engines import capability
from a40console.engines.gpu_driver import CudaVersion, GpuDriver
from a40console.model.check import Check
from a40console.model.figures import Missing
from a40console.operations import doctor
from a40console.operations.checks import engines as engine_checks
from a40console.operations.checks import machine as machine_checks
from a40console.operations.doctor import blocks, examine
from a40console.paths import Paths, locate
from a40console.service.examination import doctor_handler
from a40console.tui.panels.checks import read_checks
from tests.operations.living import fake_environment

NO_GPU = Missing("no NVIDIA driver on this machine")
A40 = GpuDriver("580.95.05", CudaVersion(13, 0), ("NVIDIA A40",))
OLD = GpuDriver("550.90.07", CudaVersion(12, 4), ("NVIDIA A40",))


@pytest.fixture
def paths() -> Iterator[Paths]:
    home = Path(tempfile.mkdtemp(prefix="a4d-", dir="/tmp"))
    found = locate({"A40CONSOLE_HOME": str(home)})
    yield found
    shutil.rmtree(home)


@pytest.fixture
def look(paths: Paths, tmp_path: Path) -> Callable[..., dict[str, Check]]:
    """Examines, and gives the checks by their names."""

    def run(
        *,
        driver: GpuDriver | Missing = NO_GPU,
        settings: Settings | None = None,
        **environment: str,
    ) -> dict[str, Check]:
        own: Mapping[str, str] = {"PATH": "/nonexistent", "HF_HOME": str(tmp_path), **environment}
        checks = examine(
            paths,
            settings or Settings(gateway=GatewaySettings(port=0)),
            own,
            driver=lambda: driver,
        )
        for check in checks:
            assert check.text
            assert "\n" not in check.text + check.mend
            if check.state in ("warn", "missing"):
                assert check.mend or check.name == "CUDA", check
        return {check.name: check for check in checks}

    return run


Look = Callable[..., dict[str, Check]]


def test_a_machine_with_the_embedded_engine_lacks_nothing_that_blocks(look: Look) -> None:
    checks = look()
    assert not blocks(tuple(checks.values()))
    assert checks["profiles"].text.startswith("1 of 10 run here, simulated ones aside: smollm2")
    assert checks["GPU"].state == "unchecked"
    assert checks["vLLM, CPU"].mend == "a40console engine install --cpu"
    assert checks["vLLM, GPU"].state == "unchecked"


def test_with_a_gpu_the_build_for_it_is_wanted(look: Look) -> None:
    checks = look(driver=A40)
    assert checks["GPU"].text == "NVIDIA A40, driver 580.95.05, CUDA 13.0"
    assert checks["vLLM, GPU"].state == "warn"
    assert checks["vLLM, GPU"].mend == "a40console engine install --gpu"


def test_what_is_installed_is_read_and_not_run(look: Look, paths: Paths) -> None:
    fake_environment(paths, "gpu", cuda="13.0.96")
    fake_environment(paths, "cpu", "0.32.0")
    checks = look(driver=A40)
    assert checks["vLLM, GPU"].text.startswith("0.33.0, ")
    assert "environment vllm-0.33.0, installed here" in checks["vLLM, GPU"].text
    assert checks["vLLM, CPU"].text.startswith("0.32.0+cpu, ")
    assert checks["CUDA"].state == "ok"
    assert checks["plugin, GPU"].state == "ok"


def test_a_build_that_the_driver_does_not_run_blocks(look: Look, paths: Paths) -> None:
    fake_environment(paths, "gpu", cuda="13.0.96")
    checks = look(driver=OLD)
    assert checks["CUDA"].state == "missing"
    assert "needs driver 580.65.06 or newer" in checks["CUDA"].text
    assert blocks(tuple(checks.values()))


def test_a_release_that_the_plugin_does_not_know_is_told(look: Look, paths: Paths) -> None:
    fake_environment(paths, "cpu", "0.19.1")
    checks = look()
    assert checks["plugin, CPU"].state == "warn"
    assert "0.27 to 0.33" in checks["plugin, CPU"].text


def test_half_an_installation_is_told(look: Look, paths: Paths) -> None:
    (paths.environments / "vllm-0.32.0-cpu").mkdir(parents=True)
    check = look()["vllm-0.32.0-cpu"]
    assert check.state == "warn"
    assert "a40console engine uninstall vllm-0.32.0-cpu" in check.mend


def test_nothing_to_run_blocks(look: Look, monkeypatch: pytest.MonkeyPatch, paths: Paths) -> None:
    monkeypatch.setattr(capability, "_has_module", lambda name: False)
    monkeypatch.setattr(engine_checks, "EMBEDDED_MODULE", "no-such-distribution")
    checks = look()
    assert checks["profiles"].state == "missing"
    assert checks["profiles"].mend == "pip install 'a40console[embedded]'"
    assert checks["llama.cpp"].state == "warn"


@pytest.mark.parametrize("name", ["qwen3-coder-30b", "no-such-profile"])
def test_a_default_that_cannot_start_blocks(look: Look, name: str) -> None:
    settings = Settings(profile=name, gateway=GatewaySettings(port=0))
    check = look(settings=settings)["profiles"]
    assert check.state == "missing"
    assert name in check.text


def test_a_profile_that_is_wrong_is_named(look: Look, paths: Paths) -> None:
    paths.profiles.mkdir(parents=True)
    (paths.profiles / "bad.toml").write_text("kind = 7\n")
    assert look()["bad.toml"].mend.startswith("a40console profiles check ")


def test_a_taken_port_blocks_and_its_holder_is_named(look: Look) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        check = look(settings=Settings(gateway=GatewaySettings(port=port)))["gateway port"]
    assert check.state == "missing"
    assert str(port) in check.text
    assert f"pid {os.getpid()}" in check.text
    assert "[gateway] port" in check.mend
    again = look(settings=Settings(gateway=GatewaySettings(port=port)))["gateway port"]
    assert again.state == "ok"


def test_a_socket_path_that_is_too_long_blocks(paths: Paths, look: Look) -> None:
    assert look()["socket path"].state == "ok"
    long = Paths(paths.home, paths.config, paths.state, paths.data, Path("/tmp") / ("x" * 100))
    checks = examine(long, Settings(), {}, driver=lambda: NO_GPU)
    check = next(each for each in checks if each.name == "socket path")
    assert check.state == "missing"
    assert check.mend == "export TMPDIR=/tmp"


def test_a_home_that_is_a_file_blocks(paths: Paths, look: Look) -> None:
    (paths.home / "data").write_text("")
    assert look()["home"].state == "missing"


def test_a_service_that_lost_its_socket_blocks(paths: Paths, look: Look) -> None:
    paths.state.mkdir(parents=True)
    with paths.service_lock.open("w") as lock:
        lock.write("4711")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        check = look()["service"]
    assert check.state == "missing"
    assert "process 4711" in check.text
    assert check.mend.startswith("a40console stop")


def test_a_driver_that_hangs_holds_nobody_up(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "DRIVER_TIMEOUT_S", 0.1)
    released = threading.Event()

    def hangs() -> Missing:
        released.wait(10)
        return NO_GPU

    checks = examine(paths, Settings(), {}, driver=hangs)
    released.set()
    assert "did not answer in 0.1 s" in next(each for each in checks if each.name == "GPU").text


async def test_no_row_is_lost_on_the_way_to_the_console(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two programs of vLLM, each with a check of the same name."""
    paths.profiles.mkdir(parents=True)
    for name in ("one", "two"):
        program = tmp_path / name / "bin" / "vllm"
        program.parent.mkdir(parents=True)
        for path in (program, program.with_name("python")):
            path.write_text(f"#!{program.parent}/python\n")
            path.chmod(0o755)
        site = tmp_path / name / "lib/python3.11/site-packages"
        (site / "vllm-0.33.0.dist-info").mkdir(parents=True)
        text = f'kind = "vllm"\nmodel = "/nowhere"\nexecutable = "{program}"\n'
        (paths.profiles / f"{name}.toml").write_text(text)
    monkeypatch.setattr("os.environ", {"PATH": "/nonexistent", "HF_HOME": str(tmp_path)})
    checks = read_checks(await doctor_handler(paths)({}))
    assert {check.group for check in checks} == {"machine", "engines", "console"}
    for name in ("one", "two"):
        assert any(str(tmp_path / name) in check.text for check in checks), name


def test_the_hubs_token_is_seen_and_not_told(look: Look, tmp_path: Path) -> None:
    check = look(HF_TOKEN="hf_secretsecret")["hub token"]
    assert check.state == "ok"
    assert check.text == "HF_TOKEN is set"
    assert look()["hub token"].state == "unchecked"
    (tmp_path / "named").write_text("hf_secretsecret")
    named = look(HF_TOKEN_PATH=str(tmp_path / "named"))["hub token"]
    assert (named.state, named.text) == ("ok", f"in {tmp_path}/named")


def test_little_of_something_is_told(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    small = shutil.disk_usage("/")._replace(total=64_000_000, free=100_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: small)
    checks = look()
    assert checks["/dev/shm"].mend == "Start the container with --shm-size=1g"
    assert checks["disk, our data"].state == "missing"


def test_a_clock_before_our_own_files_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine_checks._clock(time.time()).state == "ok"
    assert machine_checks._clock(0.0).state == "warn"


def test_a_service_that_answers_is_told(paths: Paths, look: Look) -> None:
    paths.state.mkdir(parents=True)
    paths.runtime.mkdir(mode=0o700)
    try:
        with socket.socket(socket.AF_UNIX) as door, paths.service_lock.open("w") as lock:
            door.bind(str(paths.control_socket))
            door.listen()
            lock.write("4711")
            lock.flush()
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert look()["service"].text == "runs, process 4711"
    finally:
        shutil.rmtree(paths.runtime)
