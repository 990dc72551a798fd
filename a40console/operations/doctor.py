"""What this machine lacks for serving, found out without running or importing an engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from a40console.config import Settings, SettingsProblem
from a40console.engines.gpu_driver import GpuDriver, read_driver
from a40console.model.check import Check
from a40console.model.figures import Missing
from a40console.operations.checks.asked import Asked
from a40console.operations.checks.console import console_checks
from a40console.operations.checks.engines import engine_checks
from a40console.operations.checks.machine import machine_checks
from a40console.paths import Paths
from a40console.profiles.loader import load_profiles

DRIVER_TIMEOUT_S = 1.5
"""A driver that hangs must not hold the others up."""

_GROUPS: tuple[tuple[str, Callable[[Asked], Iterator[Check]]], ...] = (
    ("machine", machine_checks),
    ("engines", engine_checks),
    ("console", console_checks),
)


def examine(
    paths: Paths,
    settings: Settings,
    environment: Mapping[str, str],
    *,
    problems: tuple[SettingsProblem, ...] = (),
    driver: Callable[[], GpuDriver | Missing] = read_driver,
) -> tuple[Check, ...]:
    """Look at everything; a check that fails by itself is told as not looked at."""
    asked = Asked(
        paths=paths,
        settings=settings,
        problems=problems,
        environment=environment,
        profiles=load_profiles(paths.profiles),
        driver=_in_time(driver),
    )
    return tuple(chain.from_iterable(_looked(name, look, asked) for name, look in _GROUPS))


def blocks(checks: tuple[Check, ...]) -> bool:
    """Whether something stands in the way of serving."""
    return any(check.state == "missing" for check in checks)


def _looked(name: str, look: Callable[[Asked], Iterator[Check]], asked: Asked) -> list[Check]:
    checks: list[Check] = []
    try:
        checks.extend(look(asked))
    except OSError as error:
        text = f"the rest was not looked at: {error}"
        checks.append(Check(group=name, name=name, state="unchecked", text=text))
    return checks


def _in_time(driver: Callable[[], GpuDriver | Missing]) -> GpuDriver | Missing:
    """What the driver answers, unless it does not in time: the thread then ends with us."""
    answer: list[GpuDriver | Missing] = []
    thread = threading.Thread(target=lambda: answer.append(driver()), daemon=True)
    thread.start()
    thread.join(DRIVER_TIMEOUT_S)
    if answer:
        return answer[0]
    return Missing(f"the driver did not answer in {DRIVER_TIMEOUT_S:g} s: restart the pod")
