"""What every check may look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from a40console.config import Settings, SettingsProblem
from a40console.engines.gpu_driver import GpuDriver
from a40console.model.figures import Missing
from a40console.paths import Paths
from a40console.profiles.loader import ProfileSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One examination: the place, the settings, and what was read once for all checks."""

    paths: Paths
    settings: Settings
    problems: tuple[SettingsProblem, ...]
    """What is wrong in the settings file."""

    environment: Mapping[str, str]
    profiles: ProfileSet
    driver: GpuDriver | Missing
