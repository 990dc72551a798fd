"""The controls inside a real vLLM: what changes, when, and that no client loses anything by it.

A40CONSOLE_TEST_ENGINES names the folder that ``.ci/engines.sh`` prepared, and
A40CONSOLE_TEST_VLLM the releases to start, one after the other (default 0.27.1).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.vllm_plugin import real_engine
from tests.vllm_plugin.live_toggle import Toggle, alike, alone, toggle_live
from tests.vllm_plugin.real_engine import DEPTH, REPEATING, Engine, Server, Stream

pytestmark = real_engine.marks

NEARLY_TIED_NATS = 0.25
"""Log probability that the rounding of bf16 moves: two tokens so close may change places.

Logits from 16 to 32 lie 0.125 apart in it, from 32 to 64 0.25.
"""

SURPRISE = """
import functools, importlib.util, os, sys

MODULE = "vllm.v1.spec_decode.ngram_proposer"

def surprise(module):
    original = module.NgramProposer.propose

    @functools.wraps(original)
    def propose(*args, **kwargs):
        drafts = original(*args, **kwargs)
        surprising = os.path.exists(os.environ["TEST_SURPRISE_FILE"])
        return [tuple(draft) for draft in drafts] if surprising else drafts

    module.NgramProposer.propose = propose

class Finder:
    # The module is changed as vLLM imports it: earlier, its imports would come in vLLM's way.
    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (run(module), surprise(module))
        return spec

def load():
    if MODULE in sys.modules:
        surprise(sys.modules[MODULE])
    else:
        sys.meta_path.insert(0, Finder())
"""
"""Another plugin: once a file is there, drafts in a form that vLLM takes and ours does not know."""


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with that plugin, as pip would have installed it."""
    folder = tmp_path_factory.mktemp("others")
    (folder / "surprise.py").write_text(SURPRISE)
    metadata = folder / "surprise-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: surprise\nVersion: 1\n")
    entry_points = "[vllm.general_plugins]\nsurprise = surprise:load\n"
    (metadata / "entry_points.txt").write_text(entry_points)
    return folder


@pytest.fixture(scope="module", params=real_engine.VERSIONS)
def server(request: pytest.FixtureRequest, others: Path) -> Iterator[Server]:
    surprise = others / f"now-{request.param}"
    with real_engine.running(
        request.param,
        environment={
            "A40CONSOLE_SPECULATION_DEPTH": "0",
            "TEST_SURPRISE_FILE": str(surprise),
        },
        pythonpath=others,
    ) as started:
        yield started


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with real_engine.connected(server) as opened:
        yield opened


@pytest.fixture
def engine(server: Server, client: httpx.AsyncClient) -> Engine:
    return Engine(server, client)


async def test_it_starts_off_with_its_depth_ready(engine: Engine) -> None:
    state = await engine.settled()
    assert state["speculation"] == {
        "depth": 0,
        "deepest": DEPTH,
        "method": "ngram",
        "why_not": None,
    }
    assert state["controls"] == {
        "speculation": None,
        "abort": None,
        "reset-prefix-cache": None,
        "sleep": "the engine was started without --enable-sleep-mode",
        "wake": "the engine was started without --enable-sleep-mode",
        "pause": None,
        "resume": None,
    }
    await engine.chat("off", REPEATING, 40)
    assert (await engine.settled())["totals"]["drafts"] == 0


async def test_four_streams_go_through_off_and_on(engine: Engine) -> None:
    toggle: Toggle = await toggle_live(engine, tokens=400, stretch_s=1.2)
    before, off, on = toggle.stretches
    assert before.drafts > 0
    assert on.drafts > 0
    # Drafts that were proposed before the change are verified by the one pass that is under way.
    assert off.drafts <= 4
    assert toggle.drafting_passes_after_off <= 1
    assert max(toggle.change_s) < 1.0
    assert [stream.finish_reason for stream in toggle.streams] == ["length"] * 4
    assert [stream.usage["completion_tokens"] for stream in toggle.streams] == [400] * 4
    assert max(toggle.longest_gap_s) < 5.0
    for index, stream in enumerate(toggle.streams):
        plain = await alone(engine, index, 400, depths=(DEPTH,))
        same = alike(plain.ids, stream.ids)
        if same < 400:  # beside others a batch rounds differently
            assert await engine.apart([*plain.prompt_ids, *plain.ids[:same]]) <= NEARLY_TIED_NATS


async def test_one_greedy_stream_is_the_same_with_changes_and_without(engine: Engine) -> None:
    await engine.control("speculation", tokens=0)
    plain, turned = Stream(), Stream()
    await engine.follow(plain, "plain", REPEATING, 120, return_token_ids=True)
    following = asyncio.create_task(
        engine.follow(turned, "turned", REPEATING, 120, return_token_ids=True)
    )
    for tokens in (DEPTH, 0, 2, 0, DEPTH, 1):
        await asyncio.sleep(0.2)
        assert (await engine.control("speculation", tokens=tokens)).status_code == 200
    await following
    assert len(plain.ids) == len(turned.ids) == 120
    assert alike(plain.ids, turned.ids) == 120


@pytest.mark.parametrize("tokens", [1, 2, DEPTH])
async def test_the_depth_shows_position_by_position(engine: Engine, tokens: int) -> None:
    changed = (await engine.control("speculation", tokens=tokens)).json()
    assert (changed["after"], changed["deepest"]) == (tokens, DEPTH)
    before = (await engine.settled())["totals"]
    await engine.chat(f"depth-{tokens}", REPEATING, 60)
    after = (await engine.settled())["totals"]
    drafted = [
        now - then
        for now, then in zip(
            after["drafted_per_position"], before["drafted_per_position"], strict=True
        )
    ]
    assert all(drafted[:tokens])
    assert not any(drafted[tokens:])
    assert (await engine.state())["speculation"]["depth"] == tokens


async def test_what_is_deeper_than_the_start_is_refused(engine: Engine) -> None:
    refused = await engine.control("speculation", tokens=DEPTH + 1)
    assert refused.status_code == 409
    assert refused.json() == {"error": "6 is deeper than the 5 that it was started with"}


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"tokens": -1}', b'{"tokens": true}', b" " * 5000]
)
async def test_a_bad_body_is_refused_in_json(engine: Engine, server: Server, body: bytes) -> None:
    answer = await engine.client.post(
        "/a40console/v1/speculation",
        content=body,
        headers={"Authorization": f"Bearer {server.token}"},
    )
    assert answer.status_code == 400
    assert answer.json()["error"]


async def test_nothing_changes_without_the_token(client: httpx.AsyncClient) -> None:
    for name in ("speculation", "abort", "reset-prefix-cache", "sleep", "wake", "pause", "resume"):
        answer = await client.post(f"/a40console/v1/{name}", json={"tokens": 1})
        assert answer.status_code == 401


@pytest.mark.parametrize("by", ["id", "external_id"])
async def test_one_request_is_aborted_and_the_other_goes_on(engine: Engine, by: str) -> None:
    doomed, kept = Stream(), Stream()
    chats = [
        asyncio.create_task(engine.follow(stream, name, "Tell a tale.", 150, ignore_eos=True))
        for name, stream in (("doomed", doomed), ("kept", kept))
    ]
    rows: dict[str, Any] = {}
    while not all(rows.get(f"chatcmpl-{name}", {}).get("passes") for name in ("doomed", "kept")):
        await asyncio.sleep(0.05)
        rows = {row["external_id"]: row for row in (await engine.state())["running"]}
    answer = await engine.control("abort", request_id=rows["chatcmpl-doomed"][by])
    assert answer.json() == {"aborted": True}
    for chat in chats:
        await chat
    assert (doomed.finish_reason, kept.finish_reason) == ("abort", "length")
    assert kept.usage["completion_tokens"] == 150
    assert (await engine.control("abort", request_id="nobody")).json() == {"aborted": False}


async def test_the_prefix_cache_is_forgotten(engine: Engine) -> None:
    async def cached() -> int:
        usage = await engine.chat("cached", REPEATING, 2)
        return int((usage["prompt_tokens_details"] or {}).get("cached_tokens") or 0)

    await cached()
    assert await cached() >= 128
    await engine.settled()
    assert (await engine.control("reset-prefix-cache")).json() == {"reset": True}
    assert await cached() == 0


async def test_a_pause_holds_every_stream_and_loses_none(engine: Engine) -> None:
    stream = Stream()
    chat = asyncio.create_task(engine.follow(stream, "held", "Tell a tale.", 80, ignore_eos=True))
    for _ in range(500):
        if len(stream.at_s) >= 5:
            break
        await asyncio.sleep(0.02)
    assert (await engine.control("pause")).json() == {"paused": True}
    await asyncio.sleep(0.3)
    held = len(stream.at_s)
    await asyncio.sleep(0.7)
    assert len(stream.at_s) == held
    assert (await engine.state())["paused"] is True
    assert (await engine.control("resume")).json() == {"paused": False}
    await chat
    assert stream.usage["completion_tokens"] == 80


async def test_sleep_says_why_not(engine: Engine) -> None:
    refused = await engine.control("sleep", level=1)
    assert refused.status_code == 409
    assert "--enable-sleep-mode" in refused.json()["error"]


def test_the_changes_stand_in_the_engines_log(server: Server) -> None:
    with contextlib.closing(server.log.open()) as log:
        lines = [line for line in log if "POST /a40console/v1/speculation" in line]
    assert any('" 200' in line for line in lines)


async def test_a_surprise_puts_everything_back_and_no_stream_notices(
    engine: Engine, server: Server, others: Path
) -> None:
    assert (await engine.control("speculation", tokens=2)).status_code == 200
    stream = Stream()
    chat = asyncio.create_task(engine.follow(stream, "surprised", REPEATING, 200, ignore_eos=True))
    for _ in range(500):
        if len(stream.at_s) >= 5:
            break
        await asyncio.sleep(0.02)
    (others / f"now-{server.version}").touch()
    await chat
    assert stream.usage["completion_tokens"] == 200
    refused = await engine.control("speculation", tokens=0)
    assert refused.status_code == 409
    assert "runs as it was started" in refused.json()["error"]
    state = await engine.state()
    assert (state["speculation"]["depth"], state["speculation"]["deepest"]) == (DEPTH, DEPTH)
    assert state["controls"]["speculation"] == refused.json()["error"]
    before = (await engine.settled())["totals"]
    await engine.chat("after", REPEATING, 60)
    after = (await engine.settled())["totals"]
    assert after["drafted_per_position"][-1] > before["drafted_per_position"][-1]


async def test_a_proposer_that_was_not_proven_is_left_alone(server: Server) -> None:
    server.stop()  # two engines at once starve two cores
    drafts = {"method": "draft_model", "model": str(real_engine.model())}
    with real_engine.running(
        server.version,
        speculation={**drafts, "num_speculative_tokens": 3},
        environment={"A40CONSOLE_SPECULATION_DEPTH": "0"},
    ) as other:
        async with real_engine.connected(other) as client:
            engine = Engine(other, client)
            reason = (await engine.state())["controls"]["speculation"]
            assert reason == (
                "the drafts of DraftModelProposer were not proven to take another depth while it "
                "runs"
            )
            refused = await engine.control("speculation", tokens=0)
            assert (refused.status_code, refused.json()) == (409, {"error": reason})
            usage = await engine.chat("drafted", "Count from 1 to 20.", 30, ignore_eos=True)
            assert usage["completion_tokens"] == 30
            assert (await engine.settled())["totals"]["drafts"] > 0
