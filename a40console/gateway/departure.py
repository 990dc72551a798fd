"""A client that leaves: whatever is done for it stops at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

T = TypeVar("T")


class ClientLeftError(Exception):
    """The client closed the connection before its answer was complete."""


async def unless_left(
    receive: Receive, work: Coroutine[Any, Any, T], answered: Callable[[], bool] = lambda: False
) -> T:
    """Do the work, and cancel it at the moment the client closes the connection.

    To be used once the request's body is read: then nothing but a departure can be received.

    Args:
        receive: Where it is told.
        work: What is done.
        answered: Whether the last of an answer is on its way. A client closes the connection as
            soon as it has that, and the server calls it a departure: it is none.

    Raises:
        ClientLeftError: If the client left first.
    """
    serving = asyncio.create_task(work)
    leaving = asyncio.create_task(_left(receive))
    try:
        await asyncio.wait((serving, leaving), return_when=asyncio.FIRST_COMPLETED)
        if answered():
            await asyncio.wait((serving,))
        if serving.done():
            return serving.result()
        raise ClientLeftError
    finally:
        serving.cancel()
        leaving.cancel()
        await asyncio.gather(serving, leaving, return_exceptions=True)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
