"""The switch between two profiles on real vLLM, under clients that never stop asking."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.load import load
from tests.live.console import Console, console
from tests.live.test_vllm import PROFILE, engines

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(900)]

KEPT = "A40CONSOLE_TEST_OUTPUT"
"""Names a file that the measured times are added to."""


def smollm2(made: Console, name: str, *, speculation: bool, settings: str = "") -> None:
    folder = engines()
    text = PROFILE.format(
        executable=folder / "vllm-0.32.0/venv/bin/vllm",
        model=folder / "smollm2-safetensors",
        plugin="true",
        speculation=str(speculation).lower(),
    )
    made.profile(name, settings + text)


@pytest.fixture(scope="module")
def served() -> Iterator[Console]:
    with console() as made:
        made.configure("[gateway]\nport = 0\n[service]\ndrain_s = 120\n")
        smollm2(made, "plain", speculation=False)
        smollm2(made, "drafting", speculation=True, settings="prefix_caching = true\n")
        made.serve("--profile", "plain")
        made.succeed("wait", "ready", "--timeout", "400", timeout_s=420)
        yield made


def test_a_switch_under_load_fails_no_request(served: Console) -> None:
    with load(served.gateway, "smollm2", clients=4, answer_tokens=24) as clients:
        clients.until(8, timeout_s=240)
        said = served.succeed("engine", "switch", "drafting", "--yes", timeout_s=600)
        assert served.status()["engine"]["profile"] == "drafting"
        clients.until(8, timeout_s=240)
    assert clients.errors == []
    switched = event(served, "engine.switched")
    tried = event(served, "engine.canary")
    report(
        "plain to drafting, real vLLM 0.32.0 on the CPU, 4 clients without a pause",
        said.strip(),
        f"requests answered: {len(clients.outcomes)}, failed: {len(clients.errors)}",
        f"longest wait of a client: {clients.longest_s:.1f} s",
        *(f"{name}: {value}" for name, value in switched["data"].items()),
        *(f"canary, {name}: {verdict}" for name, verdict in tried["data"].items()),
    )
    assert tried["data"]["completion"].startswith("passed")
    # A model this small may not come to the end of a call; one that is broken would be `failed`.
    assert tried["data"]["tool call"].startswith(("passed", "skipped: not whole"))
    assert tried["data"]["prefix cache"].startswith("passed")
    assert float(switched["data"]["held_s"]) < 300


def event(served: Console, kind: str) -> dict[str, Any]:
    lines = map(json.loads, served.paths.events.read_text().splitlines())
    found: list[dict[str, Any]] = [each for each in lines if each["kind"] == kind]
    return found[-1]


def report(*lines: str) -> None:
    """Print what was measured; add it to the file that is named for it."""
    text = "\n".join(lines) + "\n"
    print(text)
    if file := os.environ.get(KEPT):
        with Path(file).open("a") as kept:
            kept.write(text + "\n")
