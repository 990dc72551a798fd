"""A slow link that can be cut: `ProxyCommand python relay.py HOST PORT FOLDER`.

`FOLDER/delay_ms` says how late everything comes; while `FOLDER/cut` exists there is no link.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

LOOK_S = 0.05
CHUNK_BYTES = 65_536


async def main(host: str, port: int, folder: Path) -> None:
    """Carry bytes both ways until one side ends, or the link is cut."""
    if (folder / "cut").exists():
        sys.exit("relay: the link is cut")
    reader, writer = await asyncio.open_connection(host, port)
    loop = asyncio.get_running_loop()
    incoming = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(incoming), sys.stdin)
    tasks = [
        asyncio.create_task(carry(incoming, folder, writer.write)),
        asyncio.create_task(carry(reader, folder, lambda data: os.write(1, data))),
        asyncio.create_task(asyncio.to_thread(watch, folder)),
    ]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    os._exit(0)


async def carry(
    reader: asyncio.StreamReader, folder: Path, write: Callable[[bytes], object]
) -> None:
    """One direction, each piece late by the present delay, in order."""
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def deliver() -> None:
        while True:
            at_s, data = await queue.get()
            await asyncio.sleep(max(0.0, at_s - loop.time()))
            try:
                write(data)
            except OSError:  # whoever called us is gone
                os._exit(1)
            queue.task_done()

    delivering = asyncio.create_task(deliver())
    while data := await reader.read(CHUNK_BYTES):
        queue.put_nowait((loop.time() + delay_s(folder), data))
    await queue.join()
    delivering.cancel()


def delay_s(folder: Path) -> float:
    """How late a piece comes now."""
    try:
        return int((folder / "delay_ms").read_text()) / 1000
    except (OSError, ValueError):
        return 0.0


def watch(folder: Path) -> None:
    """Return once the link is cut."""
    while not (folder / "cut").exists():
        time.sleep(LOOK_S)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # to end at once, as what it stands for does
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
