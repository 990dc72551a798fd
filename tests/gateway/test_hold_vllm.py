"""What a real vLLM says when its core is killed in a prefill, and that none of it reaches a client.

Row 43 of the bug replays: a request during a model switch of 40 s timed out, or failed at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from a40console.gateway.hold import AdmissionGate
from a40console.gateway.probing import Dialects
from a40console.gateway.upstream import Upstream
from tests.gateway.holding import CHAT, is_held, serve, switched
from tests.gateway.messages_asked import MESSAGES
from tests.gateway.real_engines import VLLM_VERSIONS, vllm
from tests.gateway.stub import StubEngine, call, gateway, until
from tests.gateway.wire import read_stream

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(900)]
EXIT_S = 120.0
"""vLLM takes 3 to 5 s where nobody else wants the processor."""

LONG = "the gauge folds what the ledger drops " * 330


@pytest.fixture(params=VLLM_VERSIONS)
def engine(request: pytest.FixtureRequest) -> Iterator[Upstream]:
    """One that this test may kill."""
    with vllm(str(request.param)) as upstream:
        yield upstream


def processes_of(upstream: Upstream) -> tuple[psutil.Process, psutil.Process]:
    """The API server and the engine's core."""
    path = str(upstream.endpoint.socket_path)
    leader = next(
        process for process in psutil.process_iter(["cmdline"])
        if path in (process.info["cmdline"] or ())
    )  # fmt: skip
    core = next(
        child for child in leader.children(recursive=True)
        if "EngineCore" in " ".join(child.cmdline()) or "EngineCore" in child.name()
    )  # fmt: skip
    return leader, core


async def test_43_a_core_that_is_killed_in_a_prefill_costs_no_client_its_answer(
    engine: Upstream,
) -> None:
    gate = AdmissionGate(patience_s=EXIT_S)
    leader, core = processes_of(engine)
    asked = [
        (path, {"model": "smollm2", "max_tokens": 9, "stream": stream,
                "messages": [{"role": "user", "content": f"{path} {stream} {LONG}"}]})
        for path in (MESSAGES, CHAT) for stream in (True, False)
    ]  # fmt: skip

    async def ask(port: int, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        async with call(port, path, body) as answer:
            return answer.status, await answer.body()

    async with (
        StubEngine(serve, kind="llamacpp", run_id="the next") as another,
        gateway(engine, dialects=Dialects(), gate=gate) as served,
    ):
        await ask(served.port, MESSAGES, {**asked[0][1], "messages": [
            {"role": "user", "content": "hi"},
        ]})  # fmt: skip
        asking = [asyncio.create_task(ask(served.port, *each)) for each in asked]
        await until(lambda: sum(row.sent_at_s is not None for row in served.meter.live()) == 4, 60)
        await asyncio.sleep(0.2)
        core.kill()
        begun = [row.first_token_at_s for row in served.meter.live()]
        assert begun == [None] * 4, "the prefill was over: a longer prompt is needed"
        await until(lambda: not leader.is_running() or leader.status() == "zombie", EXIT_S)
        assert not any(one.done() for one in asking)
        gate.close("the engine ended by itself and is started again")
        await is_held(served, gate, 4)
        switched(served, gate, another)
        told = await asyncio.gather(*asking)
    for (path, body), (status, text) in zip(asked, told, strict=True):
        assert status == 200, text
        assert b"error" not in text, text
        if path == MESSAGES and body["stream"]:
            assert read_stream(text).message is not None
    assert served.meter.counts().resent == 4
