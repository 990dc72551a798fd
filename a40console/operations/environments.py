"""Removing an environment of vLLM, unless an engine runs out of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from a40console.engines.installing import environments
from a40console.engines.installing.environments import (
    environment_name,
    installed,
    read_environment,
    unfinished,
)
from a40console.errors import RefusedError, UsageError
from a40console.operations.running import living_runs
from a40console.paths import Paths


@dataclass(frozen=True, slots=True)
class Removal:
    """An environment that may be removed."""

    name: str
    folder: Path
    size_bytes: int
    stays: Path | None
    """What a link leads to, which is not removed with it; None where there is no link."""

    def remove(self) -> int:
        """Remove it; the bytes freed.

        Raises:
            RefusedError: If the disk does not let go of it.
        """
        try:
            return environments.remove(self.folder)
        except OSError as error:
            raise RefusedError(
                f"{self.name} could not be removed whole",
                evidence=str(error),
                remedy="It is not used any more; look at the folder's permissions and try again.",
            ) from error


def uninstall(paths: Paths, version: str) -> Removal:
    """The environment that a version or a name means.

    Raises:
        UsageError: If there is none, or the version is installed for GPU and CPU.
        RefusedError: If an engine runs out of it.
    """
    folder = _find(paths, version)
    real = folder.resolve()
    for run in living_runs(paths):
        if run.argv and Path(run.argv[0]).resolve().is_relative_to(real):
            raise RefusedError(
                f"{folder.name} is in use",
                evidence=f"the engine of {run.profile.name} runs out of it",
                remedy="Stop it first: a40console engine stop",
            )
    complete = read_environment(folder)
    size = complete.stamp.size_bytes if complete else environments.size_on_disk(real)
    return Removal(folder.name, folder, size, real if folder.is_symlink() else None)


def _find(paths: Paths, version: str) -> Path:
    engines = paths.environments
    known = {each.name: each.folder for each in installed(engines)}
    known |= {folder.name: folder for folder in unfinished(engines)}
    names = (version, environment_name(version, "gpu"), environment_name(version, "cpu"))
    fitting = [known[name] for name in names if name in known]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(
            f"{version} is installed twice",
            remedy=f"Name one: {', '.join(folder.name for folder in fitting)}",
        )
    raise UsageError(
        f"No environment {version} is installed",
        remedy=f"There are: {', '.join(sorted(known))}." if known else "None is.",
    )
