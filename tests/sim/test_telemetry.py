"""What the console knows of a simulated engine: its command line, its card, and what it is."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from a40console.engines.capability import check
from a40console.engines.command import Site, plan
from a40console.model.engine import Endpoint, is_simulated
from a40console.model.figures import Missing
from a40console.profiles.loader import load_profiles
from a40console.service.assemble import gpus_of
from a40console.telemetry.fetch import EngineHttp, SourceError
from a40console.telemetry.sampler import EngineSampler
from a40console.telemetry.sim import SimulatedGpus

CARD = {
    "index": 0,
    "name": "A40 (sim)",
    "memory_used_bytes": 42_000_000_000,
    "memory_total_bytes": 48_305_799_168,
    "power_w": 278.0,
    "throttle_reasons": [],
}
SHIPPED = load_profiles(Path("/nonexistent"))


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def gpus(answer: httpx.Response, clock: Clock) -> SimulatedGpus:
    transport = httpx.MockTransport(lambda request: answer)
    http = EngineHttp(Endpoint("http://engine"), clock=clock, transport=transport)
    return SimulatedGpus(http, clock)


async def test_the_card_is_read_with_what_it_does_not_tell_missing() -> None:
    clock = Clock()
    source = gpus(httpx.Response(200, json={"gpus": [CARD]}), clock)
    assert isinstance(source.view(), Missing)
    await source.read()
    clock.now_s += 7
    view = source.view()
    assert not isinstance(view, Missing)
    (card,) = view
    assert (card.name, card.power_w, card.age_s, card.source) == ("A40 (sim)", 278.0, 7, "sim.gpus")
    assert card.throttle_reasons == ()
    assert isinstance(card.temperature_c, Missing)
    clock.now_s += 60
    assert isinstance(source.view(), Missing)


async def test_a_card_that_is_none_is_a_failed_source() -> None:
    source = gpus(httpx.Response(200, json={"gpus": ["nonsense"]}), Clock())
    with pytest.raises(SourceError, match="not understood"):
        await source.read()


@pytest.mark.parametrize(
    ("server", "version", "kind"),
    [
        ("a40console-sim", "0.33.0+sim", "sim"),
        ("nginx", "0.33.0+sim", "sim"),
        ("uvicorn", "0.33.0", "vllm"),
        ("llama.cpp", "b7", "llamacpp"),
    ],
)
async def test_a_foreign_engine_is_known_by_its_header_or_its_version(
    server: str, version: str, kind: str
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        bodies = {"/v1/models": {"data": [{"id": "m"}]}, "/version": {"version": version}}
        body = bodies.get(request.url.path)
        return httpx.Response(200 if body else 404, json=body or {}, headers={"server": server})

    sampler = EngineSampler(
        kind="foreign",
        endpoint=Endpoint("http://engine"),
        on_event=lambda *told: None,
        transport=httpx.MockTransport(answer),
    )
    assert await sampler._find_out() == kind
    await sampler.aclose()


def test_a_version_tells_whether_it_is_simulated() -> None:
    assert is_simulated("0.33.0+sim")
    assert not is_simulated("0.33.0")
    assert not is_simulated(Missing("not asked yet"))


def test_this_machines_cards_never_stand_in_for_simulated_ones() -> None:
    driver = Missing("no NVIDIA GPU on this machine")
    assert gpus_of(None, driver) is driver


@pytest.mark.parametrize("name", ["sim-a40-qwen3-coder-30b", "sim-a40-kimi-linear-48b"])
def test_the_shipped_profiles_run_anywhere_on_our_own_interpreter(name: str) -> None:
    profile = SHIPPED.find(name)
    assert check(profile, {}, has_gpu=lambda: False).ready
    site = Site(
        python="/usr/bin/python3",
        embedded_script=Path("/x"),
        socket_path=Path("/tmp/e.sock"),
        plugin_token="secret",
    )
    launch = plan(profile, site)
    assert launch.argv[:6] == (
        "/usr/bin/python3",
        "-P",
        "-m",
        "a40console.sim",
        "serve",
        profile.model,
    )
    assert "--uds" in launch.argv
    assert launch.endpoint.plugin_token == "secret"
    assert "SIMULATED" in profile.title
    assert str(profile.usd_per_hour) == "0.44"


def test_what_is_known_not_to_work_is_told_of_the_simulated_kimi_too() -> None:
    (issue,) = SHIPPED.find("sim-a40-kimi-linear-48b").known_issues
    assert issue.setting == "speculation"
    assert "corrupts code" in issue.reason
