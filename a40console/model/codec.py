"""Frozen dataclasses to JSON and back, and the closed JSON schema of one: driven by annotations.

Own code rather than a validation library: the console's process decodes one snapshot a second, and
must paint within its start-up and memory budgets.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from math import isfinite
from typing import Any, Literal, TypeVar, Union

from a40console.model.figures import Estimated, Missing

T = TypeVar("T")
Json = Any
"""A value that `json` can write."""

Decoder = Callable[[Json, str], Any]

_DECODERS: dict[Any, Decoder] = {}
_NAMES: dict[type, tuple[str, ...]] = {}
_KIND_NAMES: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
    types.NoneType: "nothing",
    date: "a date",
    time: "a time",
    datetime: "a date and time",
}
_KEPT_REASONS = 256
_NOT_FINITE = {"missing": "it is no finite number"}
_MOST_BITS = 1000
"""Of a whole number: with more, no real number comes near it, and nothing computes with it."""


class DecodeError(ValueError):
    """JSON that does not follow the contract; the text names the place."""


def encode(value: Any) -> Json:
    """The JSON form of a model value; a number that is not finite has none, and is missing."""
    match value:
        case Missing(reason):
            return {"missing": reason}
        case Estimated(number):
            return {"value": number, "estimated": True} if _is_finite(number) else _NOT_FINITE
        case enum.Enum():
            return value.value
        case Decimal() | float():
            return float(value) if _is_finite(value) else _NOT_FINITE
        case tuple() | list():
            return [encode(item) for item in value]
        case Mapping():
            return {key: encode(item) for key, item in value.items()}
        case _ if is_dataclass(value):
            return {name: encode(getattr(value, name)) for name in _names(type(value))}
        case _:
            return value


def _is_finite(number: float | Decimal) -> bool:
    """Whether it is a number in JSON, which a `Decimal` may be too large for."""
    if isinstance(number, Decimal) and number.is_snan():
        return False
    return isinstance(number, int) or isfinite(number)


def _names(kind: type) -> tuple[str, ...]:
    if kind not in _NAMES:
        _NAMES[kind] = tuple(field.name for field in fields(kind))
    return _NAMES[kind]


def decode(kind: type[T], data: Json) -> T:
    """A model value from its JSON form.

    Raises:
        DecodeError: Where a key is missing, unknown or of the wrong type.
    """
    result: T = _decoder(kind)(data, kind.__name__)
    return result


def decode_as(kind: Any, data: Json, where: str) -> Any:
    """A value of any annotation, `where` naming its place in errors.

    Raises:
        DecodeError: Where it does not fit.
    """
    return _decoder(kind)(data, where)


def _decoder(kind: Any) -> Decoder:
    if kind not in _DECODERS:
        origin, members = typing.get_origin(kind), typing.get_args(kind)
        _DECODERS[kind] = _make(kind) if origin is None else _make_generic(origin, members)
    return _DECODERS[kind]


def _make_generic(origin: Any, members: tuple[Any, ...]) -> Decoder:
    if origin in (Union, types.UnionType):
        return _union_decoder(members)
    if origin is tuple:
        return _tuple_decoder(_decoder(members[0]))
    if origin is Literal:
        return _choice_decoder(members)
    return _dict_decoder(_decoder(members[1]))


def _make(kind: Any) -> Decoder:
    if kind is Missing:
        return _missing
    if kind is Estimated:
        return _estimated
    if is_dataclass(kind):
        return _dataclass_decoder(typing.cast("type", kind))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _enum_decoder(kind)
    return _plain_decoder(kind)


def _dataclass_decoder(kind: type) -> Decoder:
    hints = typing.get_type_hints(kind)
    decoders = {field.name: _decoder(hints[field.name]) for field in fields(kind)}
    required = {field.name for field in fields(kind) if not _has_default(field)}

    def read(data: Json, where: str) -> Any:
        if not isinstance(data, Mapping):
            raise DecodeError(f"{where}: expected an object, got {kind_name(type(data))}")
        if unknown := data.keys() - decoders.keys():
            raise DecodeError(f"{where}: unknown key {min(unknown)}")
        if absent := required - data.keys():
            raise DecodeError(f"{where}: key {min(absent)} is missing")
        return kind(**{key: decoders[key](item, f"{where}.{key}") for key, item in data.items()})

    return read


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _union_decoder(members: tuple[Any, ...]) -> Decoder:
    decoders = [_decoder(member) for member in members]

    def read(data: Json, where: str) -> Any:
        for decoder in decoders:
            try:
                return decoder(data, where)
            except DecodeError:
                continue
        raise DecodeError(f"{where}: {data!r} fits none of its types")

    return read


def _tuple_decoder(item: Decoder) -> Decoder:
    def read(data: Json, where: str) -> Any:
        if not isinstance(data, list | tuple):
            raise DecodeError(f"{where}: expected a list, got {kind_name(type(data))}")
        return tuple(item(entry, f"{where}[{index}]") for index, entry in enumerate(data))

    return read


def _dict_decoder(item: Decoder) -> Decoder:
    def read(data: Json, where: str) -> Any:
        if not isinstance(data, Mapping):
            raise DecodeError(f"{where}: expected an object, got {kind_name(type(data))}")
        return {_text(key): item(entry, f"{where}.{key}") for key, entry in data.items()}

    return read


def _choice_decoder(choices: tuple[Any, ...]) -> Decoder:
    def read(data: Json, where: str) -> Any:
        if data not in choices:
            raise DecodeError(f"{where}: {data!r} is none of {', '.join(map(repr, choices))}")
        return data

    return read


def _enum_decoder(kind: type[enum.Enum]) -> Decoder:
    def read(data: Json, where: str) -> Any:
        try:
            return kind(data)
        except ValueError as error:
            raise DecodeError(f"{where}: {error}") from error

    return read


def _plain_decoder(kind: Any) -> Decoder:
    def read(data: Json, where: str) -> Any:
        if kind is Any:
            return data
        if kind is Decimal and isinstance(data, int | float | str):
            return _decimal(str(data), where)
        if kind is types.NoneType and data is None:
            return None
        # JSON has no integers of its own and Python's bool is one: both are told apart here.
        exact = type(data) is kind or (kind is float and type(data) is int)
        if not exact:
            raise DecodeError(f"{where}: expected {kind_name(kind)}, got {kind_name(type(data))}")
        if kind is str:
            return _text(data)
        _check_size(data, where)
        return data

    return read


def _text(text: str) -> str:
    """A text that can be written: half a character, which JSON may hold, cannot."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _check_size(data: Json, where: str) -> None:
    if type(data) is float and not isfinite(data):
        raise DecodeError(f"{where}: {data} is no finite number")
    if type(data) is int and data.bit_length() > _MOST_BITS:
        raise DecodeError(f"{where}: a whole number of {data.bit_length()} bits is too large")


def kind_name(kind: type) -> str:
    """A type as those who write documents by hand call it."""
    return _KIND_NAMES.get(kind, kind.__name__)


def _decimal(text: str, where: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise DecodeError(f"{where}: {text!r} is no number") from error
    if not value.is_finite():
        raise DecodeError(f"{where}: {text} is no finite number")
    return value


def _missing(data: Json, where: str) -> Missing:
    if isinstance(data, Mapping) and data.keys() == {"missing"} and type(data["missing"]) is str:
        return _known(_text(data["missing"]))
    raise DecodeError(f"{where}: not a missing figure")


@lru_cache(_KEPT_REASONS)
def _known(reason: str) -> Missing:
    """One object a reason: a reader keeps thousands of points that lack the same figures."""
    return Missing(reason)


def _estimated(data: Json, where: str) -> Estimated:
    if isinstance(data, Mapping) and data.keys() == {"value", "estimated"} and data["estimated"]:
        if type(data["value"]) not in (int, float):
            raise DecodeError(f"{where}: expected a number, got {kind_name(type(data['value']))}")
        _check_size(data["value"], where)
        return Estimated(data["value"])
    raise DecodeError(f"{where}: not an estimate")
