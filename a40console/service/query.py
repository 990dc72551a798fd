"""What a request asks with, read or refused; and values as JSON answers."""

from __future__ import annotations

import math
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from a40console.errors import UsageError
from a40console.model.codec import encode

FARTHEST = 1e18
"""Of a real number: no instant and no span of ours in seconds comes near it."""


def as_json(value: Any, status: int = 200) -> Response:
    """A model value as the answer."""
    return JSONResponse(encode(value), status_code=status)


def whole_number(request: Request, name: str, default: int) -> int:
    """A whole number of the query.

    Raises:
        UsageError: If it is none.
    """
    try:
        return int(request.query_params.get(name, default))
    except ValueError as error:
        raise UsageError(f"{name} must be a whole number") from error


def count(request: Request, name: str, default: int) -> int:
    """A whole number of the query that is not negative.

    Raises:
        UsageError: If it is none.
    """
    if (found := whole_number(request, name, default)) < 0:
        raise UsageError(f"{name} must not be negative")
    return found


def real_number(request: Request, name: str, default: float) -> float:
    """A finite number of the query.

    Raises:
        UsageError: If it is none.
    """
    try:
        found = float(request.query_params.get(name, default))
    except ValueError as error:
        raise UsageError(f"{name} must be a number") from error
    if not math.isfinite(found):
        raise UsageError(f"{name} must be a finite number")
    if abs(found) > FARTHEST:
        raise UsageError(f"{name} must lie between -1e18 and 1e18")
    return found
