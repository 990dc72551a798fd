"""What the console changes in the simulated engine, as its plugin would change it in vLLM."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from a40console.sim.driver import Driver
from a40console.sim.settings import Settings

START_DEPTH_VARIABLE = "A40CONSOLE_SPECULATION_DEPTH"
EXTENSION = "depth.DepthWorker"
CONTROLS = ("speculation", "abort", "reset-prefix-cache", "sleep", "wake", "pause", "resume")
LARGEST_NUMBER = 10_000
LONGEST_ID = 512
_NEVER_SLEEPS = "the engine was started without --enable-sleep-mode"


class ControlRefusedError(Exception):
    """It cannot be done as things are; the text says why."""


class Controls:
    """The controls of one engine."""

    def __init__(self, settings: Settings, driver: Driver) -> None:
        self._settings = settings
        self._driver = driver
        self._core = driver.core
        self._why_not = _why_not(settings)
        wanted = os.environ.get(START_DEPTH_VARIABLE, "")
        if wanted.isdecimal() and "speculation" not in self._why_not:
            self._core.depth = min(int(wanted), self._core.options.depth)

    def told(self) -> dict[str, Any]:
        """The depth, and per control why not, if so."""
        return {
            "speculation": self._depth(),
            "controls": {name: self._why_not.get(name) for name in CONTROLS},
        }

    def set_speculation(self, tokens: int) -> dict[str, Any]:
        """Drafts of so many tokens from the next pass on."""
        self._require("speculation")
        deepest, before = self._core.options.depth, self._core.depth
        if tokens > deepest:
            raise ControlRefusedError(
                f"{tokens} is deeper than the {deepest} that it was started with"
            )
        self._core.depth = tokens
        passes = self._core.statistics.passes
        return {"before": before, "after": tokens, "steps": passes, **self._depth()}

    def abort(self, request_id: str) -> bool:
        """End a request by the engine's id or the client's; whether there was one."""
        for request in self._core.live():
            if request_id in (request.order.request_id, request.order.external_id):
                self._driver.abort(request.order.request_id)
                return True
        return False

    def reset_prefix_cache(self) -> bool:
        """Forget every cached prefix; False while a running request holds blocks."""
        return self._core.pool.forget()

    def sleep(self, level: int) -> None:
        """Free the memory: what runs is aborted, and the cache is gone."""
        self._require("sleep")
        if level not in (1, 2):
            raise ControlRefusedError(f"level must be one of (1, 2), not {level}")
        for request in self._core.live():
            self._driver.abort(request.order.request_id)
        self._core.pool.forget()
        self._core.paused, self._core.sleep_level = True, level

    def wake(self) -> None:
        """Take the memory again."""
        self._require("wake")
        faults = self._settings.faults
        if self._core.sleep_level and faults.has("junk_after_wake"):
            faults.set("junk")
        self._core.sleep_level = 0
        self._core.resume(self._driver.now_s())

    def pause(self) -> None:
        """Schedule nothing more."""
        self._core.paused = True

    def resume(self) -> None:
        """Schedule again."""
        self._core.resume(self._driver.now_s())

    def _require(self, name: str) -> None:
        if reason := self._why_not.get(name):
            raise ControlRefusedError(reason)

    def _depth(self) -> dict[str, Any]:
        """As vLLM's worker reports it; where it cannot be changed it is not asked."""
        why_not = self._why_not.get("speculation")
        asked = self._settings.speculation or {}
        return {
            "depth": None if why_not else self._core.depth,
            "deepest": 0 if why_not else self._core.options.depth,
            "method": None if why_not else str(asked.get("method", "ngram")),
            "why_not": why_not,
        }


def _why_not(settings: Settings) -> dict[str, str]:
    lacking: dict[str, str] = {}
    if not settings.words.enable_sleep_mode:
        lacking |= dict.fromkeys(("sleep", "wake"), _NEVER_SLEEPS)
    asked = settings.speculation
    if asked is None:
        lacking["speculation"] = "the engine was started without speculation"
    elif not str(settings.words.worker_extension_cls or "").endswith(EXTENSION):
        lacking["speculation"] = "the engine was started without our worker extension"
    elif (method := asked.get("method", "ngram")) != "ngram":
        lacking["speculation"] = (
            f"the drafts of {method} were not proven to take another depth while it runs"
        )
    return lacking


def _speculation(controls: Controls, body: Mapping[str, Any]) -> dict[str, Any]:
    return controls.set_speculation(_number(body, "tokens"))


def _abort(controls: Controls, body: Mapping[str, Any]) -> dict[str, Any]:
    request_id = body.get("request_id")
    if not isinstance(request_id, str) or not 0 < len(request_id) <= LONGEST_ID:
        raise ValueError("request_id must be a string")
    return {"aborted": controls.abort(request_id)}


def _reset(controls: Controls, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"reset": controls.reset_prefix_cache()}


def _sleep(controls: Controls, body: Mapping[str, Any]) -> dict[str, Any]:
    controls.sleep(_number(body, "level"))
    return {"asleep": True}


def _wake(controls: Controls, body: Mapping[str, Any]) -> dict[str, Any]:
    controls.wake()
    return {"asleep": False}


def _pause(controls: Controls, body: Mapping[str, Any]) -> dict[str, Any]:
    controls.pause()
    return {"paused": True}


def _resume(controls: Controls, body: Mapping[str, Any]) -> dict[str, Any]:
    controls.resume()
    return {"paused": False}


Act = Callable[[Controls, Mapping[str, Any]], dict[str, Any]]

ACTS: dict[str, Act] = {
    "speculation": _speculation,
    "abort": _abort,
    "reset-prefix-cache": _reset,
    "sleep": _sleep,
    "wake": _wake,
    "pause": _pause,
    "resume": _resume,
}
"""By the last part of the route."""


def _number(body: Mapping[str, Any], name: str) -> int:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_NUMBER:
        raise ValueError(f"{name} must be a whole number from 0 to {LARGEST_NUMBER}")
    return value
