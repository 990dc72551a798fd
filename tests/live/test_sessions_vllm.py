"""A session on real vLLM: what its prefix cache held, what a changed prompt cost, by the block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from a40console.model.figures import Missing, number
from tests.live.console import Console, console
from tests.live.test_sessions import read
from tests.live.test_vllm import BLOCK_TOKENS, serve

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(600)]

SYSTEM = "Monday. " + "the ledger keeps what the gauge drops and the window folds it again " * 60


@pytest.fixture(scope="module")
def served() -> Iterator[Console]:
    with console() as made:
        yield serve(made, plugin=True, speculation=False)


def test_a_sessions_cache_and_its_loss_are_seen(served: Console) -> None:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "Say hi to the sea."}]

    def turn(system: str) -> dict[str, Any]:
        answer = httpx.post(
            f"{served.gateway}/s/night/v1/messages",
            json={"model": "m", "max_tokens": 24, "system": system, "messages": turns},
            timeout=120,
            trust_env=False,
        )
        message: dict[str, Any] = answer.raise_for_status().json()
        turns.append({"role": "assistant", "content": message["content"]})
        turns.append({"role": "user", "content": "And to the moon?"})
        return message

    turn(SYSTEM)
    second = turn(SYSTEM)
    third = turn(SYSTEM.replace("Monday", "Friday"))
    served.wait_for(lambda: read(served, "night").phase == "idle", 10)

    detail = read(served, "night")
    first, again, changed = detail.timeline
    assert (detail.turns, detail.requests, detail.origin) == (3, 3, "prefix")
    assert again.reused_tokens == second["usage"]["cache_read_input_tokens"]
    assert again.prompt_tokens == again.reused_tokens + second["usage"]["input_tokens"]
    # Of what was sent before all whole blocks were found again.
    shared = (number(first.prompt_tokens) or 0) + (number(first.generated_tokens) or 0)
    assert again.reused_tokens == shared // BLOCK_TOKENS * BLOCK_TOKENS
    assert again.reread_tokens == shared % BLOCK_TOKENS
    assert again.loss == Missing("nothing was lost")
    assert not isinstance(changed.loss, Missing)
    assert (changed.loss.kind, changed.loss.block_kind) == ("changed", "system")
    assert third["usage"]["cache_read_input_tokens"] == 0
    assert changed.reused_tokens == 0
    assert (number(changed.loss.tokens) or 0) > 700
    served.wait_for(lambda: number(read(served, "night").timeline[-1].queue_s) is not None, 10)
