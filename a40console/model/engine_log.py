"""Passages of an engine's output, and what the service says of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPassage:
    """A line of output, or a traceback, about which the service is asked."""

    text: str
    before_ready: bool
    """Whether it is known to stand before the line with which the engine said that it serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMeaning:
    """What the service knows of a passage: what happened, and what to do."""

    cause: str
    remedy: str
    harmless: bool = False
