"""`a40console endpoint`: where this machine's service is reached; what `--ssh` asks over here."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import click

from a40console import __version__
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json
from a40console.commands.running import connect, ensure_service
from a40console.errors import NoServiceError
from a40console.model.snapshot import PROTOCOL_VERSION
from a40console.paths import Paths


@click.command()
@click.option("--start", is_flag=True, help="Start the service in the background if none runs.")
@json_option
@click.pass_obj
def command(invocation: Invocation, *, start: bool, as_json: bool) -> None:
    """Where this machine's service listens: its control socket, and the gateway's address."""
    gateway = asyncio.run(_gateway(invocation.paths, start=start))
    socket = str(invocation.paths.control_socket)
    if as_json:
        print_json(
            {
                "version": __version__,
                "protocol": PROTOCOL_VERSION,
                "running": gateway is not None,
                "control_socket": socket,
                "gateway": gateway or "",
            }
        )
        return
    click.echo(f"control socket: {socket}")
    click.echo(f"gateway: {gateway or 'no service runs'}")


async def _gateway(paths: Paths, *, start: bool) -> str | None:
    """The gateway's `host:port` as this machine reaches it; None while no service runs."""
    try:
        client = await (ensure_service(paths, quiet=True) if start else connect(paths))
    except NoServiceError:
        if start:
            raise
        return None
    async with client:
        variables = (await client.environment()).variables
    return urlsplit(variables["ANTHROPIC_BASE_URL"]).netloc
