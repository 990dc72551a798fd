"""`a40console demo`: the console on a simulated A40, with two sessions at work."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from a40console.commands.console import check_terminal, open_console
from a40console.commands.demo_ending import MODULE, end, ending_command
from a40console.commands.invocation import Invocation
from a40console.commands.output import note
from a40console.commands.running import ensure_service
from a40console.config import Settings
from a40console.errors import RefusedError
from a40console.model.wording import size
from a40console.paths import Paths, locate, make_private
from a40console.service.demo_owner import mark_owned

PROFILE = "sim-a40-qwen3-coder-30b"
NEEDS_BYTES = 64 * 1000 * 1000
"""What a demo of some hours writes, with room to spare."""

ENDS_WITHIN_S = 60.0
"""What the clients allow the service, its engine and themselves, and a little more."""


@click.command()
@click.option(
    "--screenshots",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Draw every view of a rehearsed day into DIR instead, as SVG and PNG.",
)
@click.pass_obj
def command(invocation: Invocation, *, screenshots: Path | None) -> int:
    """The console on a SIMULATED A40 with two Claude Code sessions at work.

    It has a service of its own in a temporary folder: yours is not touched, and nothing stays.
    """
    if screenshots is not None:
        from a40console.commands.gallery import draw_gallery

        return draw_gallery(screenshots)
    if not invocation.plain:
        check_terminal()  # before anything is started
    settings, _ = invocation.lenient_settings()
    with demo_home(settings, invocation.paths) as paths, crowd(paths):
        return open_console(replace(invocation, paths=paths))


@contextmanager
def demo_home(settings: Settings, theirs: Paths) -> Generator[Paths]:
    """A home for one demo, with the operator's theme and keys, removed again."""
    home = _folder()
    before = os.environ.get("A40CONSOLE_HOME")
    os.environ["A40CONSOLE_HOME"] = str(home)
    paths = locate()
    try:
        mark_owned(home)
        make_private(paths.config)
        paths.config_file.write_text(_config(settings), encoding="utf-8")
        if theirs.themes.is_dir():
            paths.themes.symlink_to(theirs.themes)
        yield paths
    finally:
        if before is None:
            del os.environ["A40CONSOLE_HOME"]
        else:
            os.environ["A40CONSOLE_HOME"] = before
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(paths.runtime, ignore_errors=True)


def _folder() -> Path:
    """A new folder on a disk with room for a demo."""
    try:
        place = tempfile.gettempdir()
        free = shutil.disk_usage(place).free
        if free >= NEEDS_BYTES:
            return Path(tempfile.mkdtemp(prefix="a40-demo-", dir=place))
        evidence = f"{size(free)} are free in {place}, and {size(NEEDS_BYTES)} are needed"
    except OSError as error:
        evidence = str(error)
    raise RefusedError(
        "There is no room for a demo",
        evidence=evidence,
        remedy="Free space there, or set TMPDIR to a folder on another disk.",
    )


@contextmanager
def crowd(paths: Paths) -> Generator[None]:
    """The service with its simulated engine, and the clients that keep it busy.

    The clients' process ends the service when it is told to, or when we are gone: a terminal that
    is closed on us leaves nothing behind. So it is there before the service is.
    """
    with (make_private(paths.state) / "crowd.out").open("wb") as output:
        clients = subprocess.Popen(
            [*MODULE, "a40console.sim.crowd", str(paths.control_socket), *ending_command(paths)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
        )
    try:
        asyncio.run(_serve(paths))
        yield
    finally:
        try:
            note("The demo ends: its service and its simulated engine are stopped.")
        finally:
            _end(paths, clients)


def _end(paths: Paths, clients: subprocess.Popen[bytes]) -> None:
    try:
        clients.terminate()
        clients.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        clients.kill()
    finally:
        asyncio.run(end(paths))  # of what the clients could not end


async def _serve(paths: Paths) -> None:
    async with await ensure_service(paths, quiet=True):
        return


def _config(settings: Settings) -> str:
    """The demo's settings; a JSON string is a TOML string too."""
    lines = [f"profile = {json.dumps(PROFILE)}", "[gateway]", "port = 0", "[console]"]
    lines.append(f"theme = {json.dumps(settings.console.theme)}")
    lines.append("[keys]")
    lines += [f"{json.dumps(name)} = {json.dumps(key)}" for name, key in settings.keys.items()]
    return "\n".join([*lines, ""])
