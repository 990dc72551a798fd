"""Real engines on a Unix socket of their own, as the gateway reaches them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from a40console.engines import embedded
from a40console.gateway.upstream import Upstream
from a40console.model.engine import Endpoint, EngineKind

WINDOW = 4096
VLLM_VERSIONS = os.environ.get("A40CONSOLE_TEST_VLLM", "0.32.0,0.27.1").split(",")
_QUIET = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}


@contextmanager
def vllm(version: str) -> Iterator[Upstream]:
    """A vLLM of this version with SmolLM2, from the folder that `.ci/engines.sh` prepared."""
    named = os.environ.get("A40CONSOLE_TEST_ENGINES")
    if not named:
        pytest.skip("A40CONSOLE_TEST_ENGINES names no folder that .ci/engines.sh prepared")
    engines = Path(named)
    with _served("vllm", 400) as (path, serve):
        serve(
            [
                str(engines / f"vllm-{version}/venv/bin/vllm"), "serve",
                str(engines / "smollm2-safetensors"), "--uds", str(path),
                "--served-model-name", "smollm2", "--max-model-len", str(WINDOW),
                "--max-num-seqs", "8", "--enforce-eager", "--enable-prompt-tokens-details",
                "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
            ]
        )  # fmt: skip
        yield _upstream(path, "vllm")


@contextmanager
def llamacpp(model: Path) -> Iterator[Upstream]:
    """The embedded llama.cpp with this model."""
    with _served("llama", 60) as (path, serve):
        serve(
            [
                sys.executable, "-P", str(embedded.__file__), "--model", str(model),
                "--alias", "smollm2", "--socket", str(path), "--slots", "1",
                "--context-tokens", str(WINDOW), "--threads", "1",
            ]
        )  # fmt: skip
        yield _upstream(path, "llamacpp")


def _upstream(path: Path, kind: EngineKind) -> Upstream:
    return Upstream(Endpoint("http://engine", str(path)), kind, "smollm2", False, f"run-{path}")


class _Serve:
    def __init__(self, folder: Path, timeout_s: float) -> None:
        self.folder = folder
        self.child: subprocess.Popen[bytes] | None = None
        self._timeout_s = timeout_s

    def __call__(self, command: Sequence[str]) -> None:
        log = self.folder / "log"
        with log.open("wb") as output:
            self.child = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                env=os.environ | _QUIET | {"HOME": str(self.folder)},
                start_new_session=True,
            )
        began_s = time.monotonic()
        while not ready(self.folder / "e.sock"):
            late = time.monotonic() - began_s > self._timeout_s
            if late or self.child.poll() is not None:
                raise AssertionError(log.read_text(errors="replace")[-3000:])
            time.sleep(0.1)

    def end(self) -> None:
        if self.child is None:
            return
        self.child.terminate()
        try:
            self.child.wait(30)
        finally:
            if self.child.poll() is None:
                os.killpg(self.child.pid, signal.SIGKILL)


@contextmanager
def _served(prefix: str, timeout_s: float) -> Iterator[tuple[Path, _Serve]]:
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    serve = _Serve(folder, timeout_s)
    try:
        yield folder / "e.sock", serve
    finally:
        serve.end()
        shutil.rmtree(folder, ignore_errors=True)


def ready(path: Path) -> bool:
    """Whether an engine on this socket says that it is healthy."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
            probe.sendall(b"GET /health HTTP/1.1\r\nhost: engine\r\n\r\n")
            return b" 200 " in probe.recv(4096)
        except OSError:
            return False
