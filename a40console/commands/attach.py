"""`a40console attach`: an engine that somebody else started, watched without a service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from urllib.parse import urlsplit

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import note, print_json, print_rich
from a40console.commands.status import status_text
from a40console.commands.watch import show_all
from a40console.errors import Exit, UsageError
from a40console.model.engine import EngineState
from a40console.model.snapshot import Snapshot

INTERVAL_S = 1.0


@click.command()
@click.argument("url")
@click.option("--once", is_flag=True, help="Print one snapshot; exit code 4 if nothing serves.")
@click.option(
    "--api-key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Holds the engine's API key; a key never belongs on a command line.",
)
@json_option
@click.pass_obj
def command(
    invocation: Invocation, *, url: str, once: bool, api_key_file: Path | None, as_json: bool
) -> Exit:
    """Watch the vLLM or llama.cpp server at URL. It is only read, never steered."""
    address = _address(url)
    api_key = _read_key(api_key_file) if api_key_file else None
    if once:
        return asyncio.run(_once(invocation, address, api_key, as_json=as_json))
    stream = _snapshots(address, api_key)
    asyncio.run(show_all(invocation, stream, count=None, as_json=as_json))
    return Exit.DONE


async def _snapshots(url: str, api_key: str | None) -> AsyncGenerator[Snapshot]:
    from a40console.service.attach import snapshots

    async for snapshot in snapshots(url, api_key=api_key, interval_s=INTERVAL_S):
        yield snapshot


async def _once(invocation: Invocation, url: str, api_key: str | None, *, as_json: bool) -> Exit:
    async with aclosing(_snapshots(url, api_key)) as stream:
        snapshot = await anext(stream)
    if as_json:
        print_json(snapshot)
    else:
        print_rich(invocation, *status_text(snapshot))
    if snapshot.engine.state is EngineState.SERVING:
        return Exit.DONE
    note(f"Nothing serves at {url}")
    return Exit.NOT_SERVING


def _address(url: str) -> str:
    """The URL with its scheme: `host:8000` is meant as HTTP.

    Raises:
        UsageError: If it is no address, or holds a password.
    """
    address = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(address)
        port_fits = parts.port is None or parts.port > 0
    except ValueError:
        port_fits = False
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_fits:
        raise UsageError(f"{url} is no address of an engine", remedy="Say it as http://HOST:PORT")
    if parts.password is not None:
        raise UsageError(
            "The URL holds a password, which others can read",
            remedy="Put the key into a file: --api-key-file FILE",
        )
    return address.rstrip("/")


def _read_key(path: Path) -> str:
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The key file {path} cannot be read", evidence=str(error)) from error
    if not key:
        raise UsageError(f"The key file {path} is empty")
    return key
