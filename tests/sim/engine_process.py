"""The simulated engine as a process of a test, reached over its socket."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

TOKEN = "plugin-token"


class SimProcess:
    """One engine; `http` speaks with it once it serves."""

    def __init__(
        self, folder: Path, words: tuple[str, ...], model: str = "qwen3-coder-30b"
    ) -> None:
        self.socket = folder / "engine.sock"
        token = folder / "token"
        token.write_text(TOKEN)
        self.output = folder / "output.log"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "a40console.sim", "serve", f"x/{model}"),
                    *("--uds", str(self.socket), "--start-s", "0.2", *words),
                ],
                stdout=output,
                stderr=output,
                env={**os.environ, "A40CONSOLE_PLUGIN_TOKEN_FILE": str(token)},
            )
        transport = httpx.HTTPTransport(uds=str(self.socket))
        self.http = httpx.Client(transport=transport, base_url="http://engine", timeout=30)

    def wait_ready(self, timeout_s: float = 20) -> None:
        """Until it answers; its output where it does not."""
        deadline_s = time.monotonic() + timeout_s
        while "startup complete" not in (told := self.output.read_text()):
            assert time.monotonic() < deadline_s, told
            assert self.process.poll() is None, told
            time.sleep(0.05)

    def close(self) -> None:
        self.http.close()
        self.process.kill()
        self.process.wait()


@contextmanager
def sim_process(
    *words: str, ready: bool = True, model: str = "qwen3-coder-30b"
) -> Iterator[SimProcess]:
    """An engine in a short private folder."""
    folder = Path(tempfile.mkdtemp(prefix="a40s-", dir="/tmp"))
    made = SimProcess(folder, words, model)
    try:
        if ready:
            made.wait_ready()
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)
