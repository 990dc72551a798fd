"""A gateway in a process of its own: `python -m tests.gateway.gateway_process SOCKET PORT`."""

from __future__ import annotations

import sys

import uvicorn

from a40console.gateway.app import Collaborators, build_gateway
from a40console.gateway.auth import allow_this_machine
from a40console.gateway.bodies import BodyLimits
from a40console.gateway.meter import Meter
from a40console.gateway.upstream import Upstream
from a40console.model.engine import Endpoint
from tests.gateway.stub import NATIVE_ENGINE, State


def main(path: str, port: str) -> None:
    upstream = Upstream(Endpoint("http://engine", path), "vllm", "smollm2", False, "run-1")
    app = build_gateway(
        upstream=State(upstream),
        meter=Meter(),
        authorise=allow_this_machine,
        limits=BodyLimits(wait_s=120),
        collaborators=Collaborators(dialects=NATIVE_ENGINE),
    )
    uvicorn.run(
        app, host="127.0.0.1", port=int(port), loop="uvloop", http="httptools", ws="none",
        access_log=False, log_level="warning",
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
