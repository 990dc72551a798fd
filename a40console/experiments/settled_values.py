"""Typed reading of a run's settled parameters. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from a40console.model.experiment import Value


def whole(settled: Mapping[str, Value], name: str) -> int:
    """A whole number."""
    value = settled[name]
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError(f"{name} is {value!r}, no whole number")


def wholes(settled: Mapping[str, Value], name: str) -> tuple[int, ...]:
    """Whole numbers, in the order in which they were given."""
    value = settled[name]
    if isinstance(value, tuple):
        return tuple(int(each) for each in value)
    raise TypeError(f"{name} is {value!r}, no list")


def words(settled: Mapping[str, Value], name: str) -> tuple[str, ...]:
    """Choices, in the order in which they were given."""
    value = settled[name]
    if isinstance(value, tuple):
        return tuple(str(each) for each in value)
    raise TypeError(f"{name} is {value!r}, no list")


def word(settled: Mapping[str, Value], name: str) -> str:
    """One choice, or a text."""
    value = settled[name]
    if isinstance(value, str):
        return value
    raise TypeError(f"{name} is {value!r}, no text")


def yes(settled: Mapping[str, Value], name: str) -> bool:
    """Yes or no."""
    value = settled[name]
    if isinstance(value, bool):
        return value
    raise TypeError(f"{name} is {value!r}, neither yes nor no")
