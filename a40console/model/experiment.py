"""What an experiment is asked with: parameters and presets, for commands and screens alike."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, TypeAlias

ParameterKind: TypeAlias = Literal["whole", "number", "yes", "choice", "choices", "wholes", "text"]
Value: TypeAlias = int | float | bool | str | tuple[str, ...] | tuple[int, ...]
PRESETS = ("quick", "standard", "full")
LONGEST_TEXT = 400
MOST_MINUTES = 7 * 24 * 60.0
MOST_USD = 1_000_000
"""Limits of a run are at most these."""

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One thing that may be set."""

    name: str
    kind: ParameterKind
    help: str
    default: Value
    presets: dict[str, Value] = field(default_factory=dict)
    """What a preset sets otherwise than the default."""

    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    unit: str = ""
    longest: int = LONGEST_TEXT
    """Characters of a text."""

    def of(self, preset: str) -> Value:
        """Its value in a preset."""
        return self.presets.get(preset, self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment, as it is offered."""

    name: str
    title: str
    question: str
    """What it answers, in one sentence."""

    parameters: tuple[Parameter, ...]
    presets: dict[str, str] = field(default_factory=dict)
    """What each preset is for; `quick` gives no verdict where it says so."""


class ParameterError(ValueError):
    """No such parameter, or a value that it cannot have; the text is for the operator."""


def settle(experiment: Experiment, preset: str, asked: dict[str, str]) -> dict[str, Value]:
    """Every parameter's value: the preset's, and over it what was asked.

    Raises:
        ParameterError: Where a preset or parameter is unknown, or a value is impossible.
    """
    if preset not in PRESETS:
        raise ParameterError(f"there is no preset {preset!r}: {', '.join(PRESETS)}")
    known = {parameter.name: parameter for parameter in experiment.parameters}
    if unknown := asked.keys() - known.keys():
        names = ", ".join(sorted(known)) or "none"
        raise ParameterError(
            f"{experiment.name} has no parameter {min(unknown)!r}; it has: {names}"
        )
    return {
        name: read_value(parameter, asked[name]) if name in asked else parameter.of(preset)
        for name, parameter in known.items()
    }


def read_value(parameter: Parameter, text: str) -> Value:
    """A value from how it was written; lists are separated by commas.

    Raises:
        ParameterError: Where it does not fit.
    """
    return _READERS[parameter.kind](parameter, text)


def write_value(value: Value) -> str:
    """A value as one would write it; `read_value` reads it back."""
    match value:
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)


def _listed(parameter: Parameter, text: str) -> list[str]:
    items = [item.strip() for item in text.split(",")]
    if not any(items):
        raise ParameterError(f"{parameter.name} needs at least one value")
    if not all(items):
        raise ParameterError(f"{parameter.name} has an empty value between its commas: {text}")
    if len(set(items)) < len(items):
        raise ParameterError(f"{parameter.name} names one value twice: {text}")
    return items


def _whole(parameter: Parameter, text: str) -> int:
    try:
        if _WHOLE.fullmatch(text.strip()):
            return int(text)
    except ValueError:
        pass  # more digits than Python reads
    raise ParameterError(f"{parameter.name} is a whole number, not {text[:40]!r}")


def _number(parameter: Parameter, text: str) -> float:
    if not _NUMBER.fullmatch(text.strip()):
        raise ParameterError(f"{parameter.name} is a number, not {text[:40]!r}")
    value = float(text)
    if not isfinite(value):
        raise ParameterError(f"{parameter.name} is a finite number, not {text[:40]!r}")
    return value


def _yes(parameter: Parameter, text: str) -> bool:
    if text in {"yes", "true", "on", "1"}:
        return True
    if text in {"no", "false", "off", "0"}:
        return False
    raise ParameterError(f"{parameter.name} is yes or no, not {text!r}")


def _chosen(parameter: Parameter, text: str) -> str:
    if text not in parameter.choices:
        raise ParameterError(
            f"{parameter.name} is one of {', '.join(parameter.choices)}, not {text!r}"
        )
    return text


def _bounded(parameter: Parameter, value: float) -> int | float:
    if parameter.least is not None and value < parameter.least:
        raise ParameterError(f"{parameter.name} is at least {parameter.least:g}{_unit(parameter)}")
    if parameter.most is not None and value > parameter.most:
        raise ParameterError(f"{parameter.name} is at most {parameter.most:g}{_unit(parameter)}")
    return value


def _unit(parameter: Parameter) -> str:
    return f" {parameter.unit}" if parameter.unit else ""


def _text(parameter: Parameter, text: str) -> str:
    if len(text) > parameter.longest:
        raise ParameterError(f"{parameter.name} is longer than {parameter.longest} characters")
    return text


_READERS: dict[ParameterKind, Callable[[Parameter, str], Value]] = {
    "whole": lambda parameter, text: _bounded(parameter, _whole(parameter, text)),
    "number": lambda parameter, text: _bounded(parameter, _number(parameter, text)),
    "wholes": lambda parameter, text: tuple(
        int(_bounded(parameter, _whole(parameter, item))) for item in _listed(parameter, text)
    ),
    "yes": _yes,
    "choice": lambda parameter, text: _chosen(parameter, text.strip()),
    "choices": lambda parameter, text: tuple(
        _chosen(parameter, item) for item in _listed(parameter, text)
    ),
    "text": _text,
}
