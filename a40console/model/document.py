"""A TOML document to a frozen dataclass: every fault at once, each with its key.

On the codec rather than a validation library: what checks a settings file stays in memory for as
long as the console and the service run.
"""

from __future__ import annotations

import builtins
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

from a40console.model.codec import DecodeError, decode_as, kind_name

T = TypeVar("T")

Place = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Bounds of a number, for `Annotated`; NaN lies outside all."""

    least: float | None = None
    most: float | None = None
    below: float | None = None

    def __str__(self) -> str:
        """The bounds in words."""
        told = [
            f"{words} {bound:,}"
            for words, bound in (
                ("at least", self.least),
                ("at most", self.most),
                ("less than", self.below),
            )
            if bound is not None
        ]
        return " and ".join(told)

    def holds(self, number: Any) -> bool:
        """Whether the number lies within."""
        return (
            (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
            and (self.below is None or number < self.below)
        )


Rule = Within | Callable[[Any], Any]
"""Bounds, or what is done to a value before its type is looked at."""


@dataclass(frozen=True, slots=True)
class DocumentFault:
    """One key that is wrong."""

    place: Place
    """The key, table by table."""

    text: str
    """What is wrong, with the key."""


class DocumentError(ValueError):
    """A document that does not fit; `faults` has all that is wrong."""

    def __init__(self, faults: tuple[DocumentFault, ...]) -> None:
        super().__init__("; ".join(fault.text for fault in faults))
        self.faults = faults


def read_document(kind: type[T], document: Mapping[str, Any]) -> T:
    """A dataclass from a document's table.

    Raises:
        DocumentError: If a key is unknown (its text names the nearest), missing, or of a wrong type
            or value.
    """
    faults: list[DocumentFault] = []
    found = _table(kind, document, (), faults)
    if faults:
        raise DocumentError(tuple(faults))
    return typing.cast("T", found)


def _table(kind: type, table: object, place: Place, faults: list[DocumentFault]) -> Any:
    if not isinstance(table, Mapping):
        return _wrong(faults, place, f"expected a table, got {kind_name(type(table))}")
    hints = typing.get_type_hints(kind, include_extras=True)
    for key in [key for key in table if key not in hints]:
        nearest = get_close_matches(key, hints, n=1)
        asked = f"; did you mean {nearest[0]}?" if nearest else ""
        faults.append(_at((*place, key), f" is not a setting{asked}"))
    values = {}
    for field in fields(kind):
        inner = (*place, field.name)
        if field.name in table:
            values[field.name] = _value(hints[field.name], table[field.name], inner, faults)
        elif field.default is MISSING and field.default_factory is MISSING:
            faults.append(_at(inner, " is missing"))
    return None if faults else kind(**values)


def _value(hint: Any, value: Any, place: Place, faults: list[DocumentFault]) -> Any:
    hint, rules = _split(hint)
    members = typing.get_args(hint)
    match typing.get_origin(hint), value:
        case _ if is_dataclass(hint):
            return _table(typing.cast("type", hint), value, place, faults)
        case builtins.tuple, list():
            items = enumerate(value)
            return tuple(_value(members[0], each, (*place, str(n)), faults) for n, each in items)
        case builtins.dict, dict():
            pairs = value.items()
            return {key: _value(members[1], each, (*place, key), faults) for key, each in pairs}
    return _plain(hint, rules, value, place, faults)


def _plain(
    hint: Any, rules: tuple[Rule, ...], value: Any, place: Place, faults: list[DocumentFault]
) -> Any:
    try:
        for rule in rules:
            value = value if isinstance(rule, Within) else rule(value)
        found = decode_as(hint, value, ".".join(place))
    except DecodeError as error:
        faults.append(DocumentFault(place, str(error)))
        return None
    except ValueError as error:
        return _wrong(faults, place, str(error))
    for rule in rules:
        if isinstance(rule, Within) and not rule.holds(found):
            _wrong(faults, place, f"must be {rule}")
    return found


def _split(hint: Any) -> tuple[Any, tuple[Rule, ...]]:
    """What a document, which knows no None, may hold, and the rules of its annotation."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [each for each in typing.get_args(hint) if each is not types.NoneType]
        return _split(members[0]) if len(members) == 1 else (hint, ())
    if typing.get_origin(hint) is Annotated:
        inner, *told = typing.get_args(hint)
        inner, deeper = _split(inner)
        return inner, (*told, *deeper)
    return hint, ()


def _wrong(faults: list[DocumentFault], place: Place, text: str) -> None:
    faults.append(_at(place, f": {text}"))


def _at(place: Place, text: str) -> DocumentFault:
    return DocumentFault(place, ".".join(place) + text)
