"""The gate as the operator sets it up, and what the journal says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from a40console.config import GatewaySettings, load_settings
from a40console.errors import UsageError
from a40console.gateway.hold import HoldLimits
from a40console.gateway.meter import Meter
from a40console.model.event import Severity
from a40console.service.holding import admission_gate, model_names
from tests.gateway.holding import CHAT
from tests.gateway.messages_asked import ASK
from tests.gateway.stub import StubEngine, call, gateway
from tests.gateway.test_model_names import Listing


def silent(
    kind: str, text: str, severity: Severity = "info", data: dict[str, str] | None = None
) -> None:
    """A journal that keeps nothing."""


def test_the_operators_limits_are_the_gates() -> None:
    assert admission_gate(GatewaySettings(), silent).limits == HoldLimits(128, 128 * 2**20, 600.0)
    own = GatewaySettings(hold_requests=3, hold_mib=1, hold_s=2.5)
    assert admission_gate(own, silent).limits == HoldLimits(3, 2**20, 2.5)


def test_a_request_that_is_sent_again_is_an_event_that_says_whose() -> None:
    told: list[Any] = []

    def record(
        kind: str, text: str, severity: Severity = "info", data: dict[str, str] | None = None
    ) -> None:
        told.append((kind, text, severity, data))

    gate = admission_gate(GatewaySettings(), record)
    passage = Meter().accept("messages", "a40-01")
    passage.session, passage.client = "7f3a", "claude-code"
    gate.on_resent(passage)
    (kind, text, severity, data) = told[0]
    assert (kind, severity) == ("request.resent", "warn")
    assert text == "the engine ended before it answered 7f3a: the next one is asked"
    assert data == {
        "request": "a40-01", "session": "7f3a", "client": "claude-code", "route": "messages",
    }  # fmt: skip


def test_a_request_that_is_lost_for_it_was_not_kept_is_an_event() -> None:
    told: list[Any] = []
    gate = admission_gate(GatewaySettings(), lambda *event: told.append(event))
    passage = Meter().accept("chat", "a40-01")
    passage.client = "openai-python"
    gate.on_unkept(passage, 5 * 2**20)
    (kind, text, severity, data) = told[0]
    assert (kind, severity, data["bytes"]) == ("request.lost", "warn", str(5 * 2**20))
    assert text == (
        "the engine ended before it answered openai-python, and the request was not kept to ask "
        "the next one (5.0 MiB): the client is told to send it again"
    )


async def test_a_name_that_no_engine_here_has_is_an_event_that_says_what_answers() -> None:
    told: list[Any] = []
    async with (
        StubEngine(Listing("coder"), served_name="coder") as engine,
        gateway(engine.upstream, names=model_names(lambda *event: told.append(event))) as served,
    ):
        for _ in range(2):
            async with call(served.port, CHAT, {**ASK, "model": "gpt-9"}) as answer:
                assert answer.status == 200
    ((kind, text, severity, data),) = told
    assert (kind, severity) == ("request.renamed", "info")
    assert (
        text == f"{data['session']} asks for gpt-9, which the engine does not have: coder answers"
    )
    assert (data["before"], data["after"]) == ("gpt-9", "coder")


@pytest.mark.parametrize("line", ["hold_requests = -1", "hold_mib = 193", "hold_s = -0.1"])
def test_limits_that_cannot_be_are_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[gateway]\n{line}\n")
    with pytest.raises(UsageError) as refused:
        load_settings(file)
    assert line.split(" ")[0] in refused.value.evidence
