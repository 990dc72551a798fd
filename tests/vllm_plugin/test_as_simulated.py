"""The simulated engine's controls are the plugin's: the same routes, limits, answers and words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a40console.sim import controls as sim_controls
from a40console.sim import plugin as sim_plugin
from a40console.vllm_plugin import control_routes, controls, endpoint
from tests.sim.engine_process import TOKEN as SIM_TOKEN
from tests.sim.engine_process import SimProcess, sim_process
from tests.vllm_plugin.test_controls import TOKEN, Engine, served

PREFIX = "/a40console/v1/"
SPECULATION = {"method": "ngram", "num_speculative_tokens": 5}
LEAST = ("--speed", "50")
ABLE = (
    *LEAST,
    "--enable-sleep-mode",
    *("--speculative-config", json.dumps(SPECULATION)),
    *("--worker-extension-cls", "a40console_vllm.depth.DepthWorker"),
)
ASKED: list[tuple[str, Any]] = [
    ("speculation", {"tokens": 2}),
    ("speculation", {"tokens": 0}),
    ("speculation", {"tokens": 5}),
    ("speculation", {"tokens": 6}),
    ("speculation", {}),
    *(("speculation", {"tokens": value}) for value in ("2", 1.5, True, -1, 10_000, 10_001, [1])),
    ("abort", {"request_id": "nobody"}),
    ("abort", {"request_id": "a" * 512}),
    ("abort", {"request_id": "a" * 513}),
    *(("abort", body) for body in ({}, {"request_id": ""}, {"request_id": 7})),
    ("reset-prefix-cache", {}),
    ("pause", {}),
    ("resume", {}),
    *(("sleep", {"level": value}) for value in (1, 2, 0, 3, None, "1")),
    ("sleep", {}),
    ("wake", {}),
    *(("pause", raw) for raw in (b"", b"[]", b"7", b"{", b"\xff", b"[" * 4000, b" " * 4097)),
    ("resume", b""),
]


@pytest.fixture(scope="module")
def able() -> Iterator[SimProcess]:
    with sim_process(*ABLE) as made:
        yield made


@pytest.fixture(scope="module")
def plain() -> Iterator[SimProcess]:
    with sim_process(*LEAST) as made:
        yield made


@pytest.fixture(autouse=True)
def _token_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(TOKEN)
    monkeypatch.setenv(endpoint.TOKEN_FILE_VARIABLE, str(path))
    monkeypatch.delenv(controls.START_DEPTH_VARIABLE, raising=False)


def test_names_and_limits_are_the_same() -> None:
    assert list(sim_controls.ACTS) == list(control_routes.ACTS)
    assert sim_controls.CONTROLS == controls.CONTROLS == tuple(control_routes.ACTS)
    assert sim_controls.LARGEST_NUMBER == control_routes.LARGEST_NUMBER
    assert sim_controls.LONGEST_ID == control_routes.LONGEST_ID
    assert sim_plugin.LARGEST_BODY_BYTES == control_routes.LARGEST_BODY_BYTES
    assert sim_controls.START_DEPTH_VARIABLE == controls.START_DEPTH_VARIABLE
    assert sim_controls.EXTENSION == controls.EXTENSION
    assert sim_plugin.TOKEN_FILE_VARIABLE == endpoint.TOKEN_FILE_VARIABLE
    assert sim_plugin.PATH == endpoint.STATE_ROUTE


def content(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def told(status: int, said: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """An answer; how many passes there were is each engine's own."""
    return status, {name: value for name, value in said.items() if name != "steps"}


async def test_every_answer_is_the_same(able: SimProcess) -> None:
    bearer = {"Authorization": f"Bearer {SIM_TOKEN}"}
    async with await served(Engine()) as client:
        for name, body in ASKED:
            real = await client.post(f"{PREFIX}{name}", content=content(body))
            simulated = able.http.post(f"{PREFIX}{name}", content=content(body), headers=bearer)
            expected = told(real.status_code, real.json())
            assert told(simulated.status_code, simulated.json()) == expected, (name, body)
            assert ("steps" in simulated.json()) == ("steps" in real.json())


async def test_what_stands_in_the_state_is_the_same(able: SimProcess) -> None:
    bearer = {"Authorization": f"Bearer {SIM_TOKEN}"}
    able.http.post(f"{PREFIX}speculation", json={"tokens": 5}, headers=bearer)
    async with await served(Engine()) as client:
        real = (await client.get(f"{PREFIX}state")).json()
    simulated = able.http.get(f"{PREFIX}state", headers=bearer).json()
    assert sorted(simulated) == sorted(real)
    assert simulated["speculation"] == real["speculation"]
    assert simulated["controls"] == real["controls"]
    assert sorted(simulated["totals"]) == sorted(real["totals"])


async def test_what_an_engine_lacks_is_told_in_the_same_words(plain: SimProcess) -> None:
    bearer = {"Authorization": f"Bearer {SIM_TOKEN}"}
    lacking = Engine(sleeps=False)
    lacking.vllm_config.speculative_config = None
    async with await served(lacking) as client:
        real = (await client.get(f"{PREFIX}state")).json()
        simulated = plain.http.get(f"{PREFIX}state", headers=bearer).json()
        assert simulated["controls"] == real["controls"]
        for name, body in (("speculation", {"tokens": 1}), ("sleep", {"level": 1}), ("wake", {})):
            refused = await client.post(f"{PREFIX}{name}", json=body)
            answer = plain.http.post(f"{PREFIX}{name}", json=body, headers=bearer)
            assert answer.status_code == refused.status_code == 409
            assert answer.json() == refused.json()


async def test_only_the_bearer_is_answered(able: SimProcess) -> None:
    async with await served(Engine()) as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": SIM_TOKEN}):
            for name in controls.CONTROLS:
                asked = {"Authorization": "", **headers}
                real = await client.post(f"{PREFIX}{name}", json={}, headers=asked)
                simulated = able.http.post(f"{PREFIX}{name}", json={}, headers=headers)
                assert simulated.status_code == real.status_code == 401
                assert simulated.json() == real.json()
