"""Which run a word means: its id, the beginning or the end of it, or the last one."""

from __future__ import annotations

from a40console.errors import ConsoleError, Exit, UsageError
from a40console.model.run_words import never_began
from a40console.service.client import ServiceClient

LAST = "last"
MOST = 1000
"""Runs among which an end of an id is looked for."""


async def run_id(client: ServiceClient, name: str) -> str:
    """The id of the run that is meant.

    Raises:
        UsageError: If none or more than one is.
    """
    if name == LAST:
        return await _last(client)
    try:
        return (await client.run(name)).id
    except ConsoleError as error:
        if error.exit_code is not Exit.USAGE:
            raise
        fitting = [run.id for run in await client.runs(MOST) if run.id.endswith(name)]
        if len(fitting) != 1:
            raise
    return fitting[0]


async def _last(client: ServiceClient) -> str:
    for run in await client.runs(MOST):
        if run.state != "queued" and not run.reference and not never_began(run):
            return run.id
    raise UsageError("No run has begun yet", remedy="See them with: a40console runs list")
