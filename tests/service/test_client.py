"""What the client makes of a service that is not ours, refuses, or says nonsense."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from a40console.errors import ConsoleError, Exit, NoServiceError, RefusedError
from a40console.model.codec import encode
from a40console.model.control import Trouble
from a40console.service.client import ServiceClient

SOMEBODY = 12345
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")


@pytest.fixture
def door() -> Iterator[Path]:
    """A control socket that something listens on."""
    folder = Path(tempfile.mkdtemp(prefix="a4c-", dir="/tmp"))
    path = folder / "control.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield path
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has connected
            listener.accept()
    shutil.rmtree(folder, ignore_errors=True)


async def refusal(path: Path) -> RefusedError:
    async with ServiceClient(path) as client:
        for call in (client.hello(), anext(client.snapshots())):
            with pytest.raises(RefusedError) as refused:
                await call
    return refused.value


@as_root
async def test_somebody_elses_folder_is_not_connected_to(door: Path) -> None:
    os.chown(door.parent, SOMEBODY, SOMEBODY)
    error = await refusal(door)
    assert str(door.parent) in error.message
    assert f"owner uid {SOMEBODY}" in error.evidence


@as_root
async def test_somebody_elses_socket_is_not_connected_to(door: Path) -> None:
    os.chown(door, SOMEBODY, SOMEBODY)
    assert str(door) in (await refusal(door)).message


async def test_a_link_in_the_folders_place_is_not_followed(door: Path) -> None:
    link = door.parent.with_suffix(".link")
    link.symlink_to(door.parent)
    try:
        error = await refusal(link / door.name)
    finally:
        link.unlink()
    assert "symbolic link" in error.message


async def test_without_a_socket_there_is_no_service(tmp_path: Path) -> None:
    async with ServiceClient(tmp_path / "none" / "control.sock") as client:
        with pytest.raises(NoServiceError):
            await client.hello()


async def test_a_refused_stream_is_the_services_own_trouble() -> None:
    trouble = Trouble(message="No such thing", evidence="e", remedy="r", exit_code=2)

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(400, content=json.dumps(encode(trouble)))

    client = ServiceClient(Path("/none"), transport=httpx.MockTransport(answer))
    async with client:
        with pytest.raises(ConsoleError) as told:
            await anext(client.snapshots())
    assert told.value.trouble == trouble
    assert told.value.exit_code is Exit.USAGE


async def test_a_stream_that_is_refused_in_no_form_of_ours_is_told_too() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(500, text="Internal error"))
    async with ServiceClient(Path("/none"), transport=transport) as client:
        with pytest.raises(NoServiceError):
            await anext(client.snapshots())
