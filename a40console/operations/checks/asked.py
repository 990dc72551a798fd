"""What every check may look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from a40console.config import Settings
from a40console.engines.gpu_driver import GpuDriver
from a40console.model.figures import Missing
from a40console.paths import Paths
from a40console.profiles.loader import ProfileSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One examination: the place, the settings, and what was read once for all checks."""

    paths: Paths
    settings: Settings
    environment: Mapping[str, str]
    profiles: ProfileSet
    driver: GpuDriver | Missing
