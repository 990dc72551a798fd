"""The closed JSON schema of a model dataclass, generated from its annotations and docstrings."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any, Literal, Union

from a40console.model.figures import Estimated, Missing

_PLAIN: Mapping[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Decimal: {"type": "number"},
    types.NoneType: {"type": "null"},
    Any: {},
}

_MISSING = {
    "type": "object",
    "description": "Not known, and why.",
    "properties": {"missing": {"type": "string"}},
    "required": ["missing"],
    "additionalProperties": False,
}

_ESTIMATED = {
    "type": "object",
    "description": "Derived rather than counted.",
    "properties": {"value": {"type": "number"}, "estimated": {"const": True}},
    "required": ["value", "estimated"],
    "additionalProperties": False,
}


def json_schema(kind: type) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a model dataclass: every object closed."""
    definitions: dict[str, Any] = {}
    root = _schema(kind, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind.__name__,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(member, definitions) for member in members]}
    if origin is tuple:
        return {"type": "array", "items": _schema(members[0], definitions)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _schema(members[1], definitions)}
    if origin is Literal:
        return {"enum": list(members)}
    if kind in (Missing, Estimated):
        definitions[kind.__name__] = _MISSING if kind is Missing else _ESTIMATED
        return _reference(kind)
    if is_dataclass(kind):
        return _object(typing.cast("type", kind), definitions)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    return dict(_PLAIN[kind])


def _object(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}  # holds the place of a type that names itself
        hints = typing.get_type_hints(kind)
        definitions[kind.__name__] = {
            "type": "object",
            "description": (kind.__doc__ or "").strip().split("\n\n")[0],
            "properties": {f.name: _schema(hints[f.name], definitions) for f in fields(kind)},
            "required": [f.name for f in fields(kind)],
            "additionalProperties": False,
        }
    return _reference(kind)


def _reference(kind: type) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{kind.__name__}"}
