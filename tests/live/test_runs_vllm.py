"""Experiments on real vLLM by the command line: what they measure, steer, and conclude there."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from a40console.model.own_request import RUN_SESSION
from tests.live.console import Console, console
from tests.live.streams import chat
from tests.live.test_vllm import PROFILE, engines

pytestmark = [
    pytest.mark.engine,
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

VERSION = "0.32.0"
WINDOW_TOKENS = 2048
DRAFTS_FOR_A_VERDICT = 100
CHECK_FAILED = 6
WORDS = "the cat sat on the mat and then " * 20
COUNTED = ("requests", "prompt_tokens", "cached_tokens", "generated_tokens")
TURNS = 5
SESSION_LENGTHS = f"6700;10800/800*{TURNS}"
"""In this window: 200 tokens, and five turns of 322 and 24; the last ones are past 1,433."""

Json = dict[str, Any]


@pytest.fixture(scope="module")
def server() -> Iterator[Console]:
    """One vLLM that was started to speculate, for all of them."""
    folder = engines()
    text = PROFILE.format(
        executable=folder / f"vllm-{VERSION}/venv/bin/vllm",
        model=folder / "smollm2-safetensors",
        plugin="true",
        speculation="true",
    )
    with console() as made:
        made.configure("[gateway]\nport = 0\n[service]\nrestart_engine = false\n")
        made.profile("cpu", text.replace("= 4096", f"= {WINDOW_TOKENS}"))
        made.serve("--profile", "cpu")
        made.succeed("wait", "ready", "--timeout", "400", timeout_s=420)
        yield made


@pytest.fixture
def live(server: Console) -> Console:
    """The same, serving: started again where a test has ended it."""
    if server.status()["engine"]["state"] != "serving":
        server.succeed("engine", "start", "cpu", timeout_s=420)
    server.wait_for(lambda: server.status()["speculation"]["control"] == "live", 60)
    return server


class Measured:
    """A run that has ended, with its requests and what was counted around its arms."""

    def __init__(self, made: Console, run: Json, engine: str) -> None:
        """With the start of the engine that it began with."""
        exported = made.succeed("runs", "export", run["id"], "--format", "json")
        document: Json = json.loads(exported)
        self.run = run
        self.engine = engine
        self.arms: list[Json] = document["arm_ends"]
        self.samples: list[Json] = document["samples"]

    @property
    def verdict(self) -> Json:
        verdict: Json = self.run["result"]["verdict"]
        return verdict

    @property
    def stands(self) -> bool:
        """Whether it may be believed; a busy machine's client makes it invalid, and says so."""
        if self.run["state"] == "done":
            return True
        assert self.run["state"] == "invalid", self.run
        assert "the client was the limit" in self.run["reason"], self.run["reason"]
        return False

    def rows(self, title: str) -> list[Json]:
        """A table's rows by its columns' titles."""
        tables = {table["title"]: table for table in self.run["result"]["tables"]}
        names = [column["title"] for column in tables[title]["columns"]]
        return [dict(zip(names, row, strict=True)) for row in tables[title]["rows"]]

    def of(self, arm: str, repeat: int, *roles: str) -> list[Json]:
        """Requests of an arm's repeat."""
        return [
            sample
            for sample in self.samples
            if (sample["arm"], sample["repeat"]) == (arm, repeat) and sample["role"] in roles
        ]


def measure(made: Console, experiment: str, *words: str, **settings: object) -> Measured:
    """Run an experiment to its end."""
    told = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    engine = made.status()["engine"]["id"]
    done = made.run("run", experiment, *words, *told, "--yes", "--json", timeout_s=600)
    assert done.returncode in (0, CHECK_FAILED), (done.stdout, done.stderr)
    return Measured(made, json.loads(done.stdout), engine)


def assert_counted_as_the_engine_does(measured: Measured) -> None:
    """The client's figures are the engine's own, around every arm."""
    assert measured.arms
    for arm in measured.arms:
        ours = {name: arm["client"][name] for name in COUNTED}
        assert ours == {name: arm["server"][name] for name in COUNTED}, arm["arm"]
        assert ours["generated_tokens"] > 0


def cached_tokens(made: Console) -> int:
    """How much of a prompt that a client sends is in the engine's cache."""
    answer = asyncio.run(chat(made.gateway, WORDS, max_tokens=4, model="smollm2"))
    return int((answer.usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)


# --- compaction -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_ways(server: Console) -> Measured:
    """Two ways of keeping a session small, two sessions each."""
    cached_tokens(server)
    assert cached_tokens(server) > 0
    return measure(
        server,
        "compaction",
        ways="cc-auto,block",
        lengths=SESSION_LENGTHS,
        repeats=2,
        facts=2,
    )


def test_both_ways_do_the_same_work_and_it_is_counted(two_ways: Measured) -> None:
    assert_counted_as_the_engine_does(two_ways)
    names = {arm["arm"] for arm in two_ways.arms}
    assert names == {"cc-auto-1.4k", "block-1.4k"}
    lengths = {
        (name, repeat): [turn["generated_tokens"] for turn in two_ways.of(name, repeat, "turn")]
        for name in names
        for repeat in range(2)
    }
    assert {len(each) for each in lengths.values()} == {TURNS}
    assert len(set(map(tuple, lengths.values()))) == 1, "turn by turn the same number of tokens"
    for repeat in range(2):
        assert two_ways.of("cc-auto-1.4k", repeat, "summary"), "it came to shrink"
        assert not two_ways.of("block-1.4k", repeat, "summary")
        longest, last = (
            pick([turn["prompt_tokens"] for turn in two_ways.of("block-1.4k", repeat, "turn")])
            for pick in (max, lambda turns: turns[-1])
        )
        assert last < longest < WINDOW_TOKENS * 0.75, "it was not made smaller"


def test_a_summary_counts_in_the_time_and_no_question_does(two_ways: Measured) -> None:
    assert any(sample["role"] == "recall" for sample in two_ways.samples)
    if not two_ways.stands:
        return
    for row in two_ways.rows(f"The same {TURNS} turns, by arm"):
        walls = [
            sum(sample["total_s"] for sample in two_ways.of(row["arm"], repeat, "turn", "summary"))
            for repeat in range(2)
        ]
        assert row["wall"] == pytest.approx(math.sqrt(walls[0] * walls[1]), rel=0.001)
        assert 0 < row["from"] <= row["wall"] <= row["to"]
        assert row["sessions"] == 2
        assert "price" in row["session"]["missing"], "dollars are told where a price is known"


def test_the_cache_was_emptied_for_every_session(two_ways: Measured, live: Console) -> None:
    assert cached_tokens(live) == 0, "a client's prompt is read from its beginning again"
    for name in ("cc-auto-1.4k", "block-1.4k"):
        for repeat in range(2):
            first, second, *_ = two_ways.of(name, repeat, "turn")
            assert first["cached_tokens"] == 0
            assert second["cached_tokens"] > 0, "within a session the cache serves"


def test_two_repeats_are_judged_with_an_interval(two_ways: Measured) -> None:
    if not two_ways.stands:
        return
    assert two_ways.verdict["kind"] in ("difference", "no difference")
    assert two_ways.verdict["ratio"]["repeats"] == 2
    assert bool(two_ways.verdict["winner"]) is (two_ways.verdict["kind"] == "difference")
    assert two_ways.verdict["paste"] == "", "no client can be told a threshold that was scaled"


# --- regimes ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_setting(server: Console) -> Measured:
    """Off as it runs against one depth, once, and one that is deeper than the engine can."""
    return measure(
        server,
        "regimes",
        settings="off-live,on",
        depths="2,9",
        scan="no",
        streams=1,
        output_tokens=96,
        requests=1,
        repeats=1,
    )


def test_each_setting_is_in_force_and_nothing_restarts(by_setting: Measured, live: Console) -> None:
    assert_counted_as_the_engine_does(by_setting)
    counted = {arm["arm"]: arm["server"] for arm in by_setting.arms}
    for regime in ("prose", "code-edit"):
        off, on = (counted[f"{regime}, 1 stream · {name}"] for name in ("off-live", "on-2"))
        assert off["drafts"] == 0
        assert on["drafted_tokens"] <= 2 * on["drafts"]
        assert on["accepted_tokens_at_3"] == 0, "deeper was drafted than was asked"
    edited = counted["code-edit, 1 stream · on-2"]
    assert edited["accepted_tokens"] > 0
    status = live.status()
    assert (status["speculation"]["mode"], status["speculation"]["depth"]) == ("on", 5)
    assert status["engine"]["id"] == by_setting.engine, "nothing was started anew"


def test_the_tail_is_judged_only_where_enough_was_drafted(by_setting: Measured) -> None:
    if not by_setting.stands:
        return
    rows = by_setting.rows("Depth")
    assert {row["text"] for row in rows} == {"prose", "code-edit"}
    for row in rows:
        enough = row["drafts"] >= DRAFTS_FOR_A_VERDICT
        assert row["tail"].startswith("last position") is enough, row
        assert ("too few for a verdict" in row["tail"]) is not enough, row


def test_one_repeat_gives_no_verdict_and_no_interval(by_setting: Measured) -> None:
    if not by_setting.stands:
        return
    assert by_setting.verdict["kind"] == "none"
    assert "missing" in by_setting.verdict["ratio"]
    rows = by_setting.rows("Speed by setting")
    measured = [row for row in rows if row["setting"] != "on-9"]
    assert len(measured) == 4
    assert all(row["sustained"] > 0 and "missing" in row["±"] for row in measured)
    assert all(
        "missing" in row["accepted/draft"] for row in measured if row["setting"] == "off-live"
    )
    (deeper,) = (row for row in rows if row["setting"] == "on-9")
    assert "started for 5" in deeper["sustained"]["missing"]


# --- lossless, protocol -----------------------------------------------------------------------


def test_speculation_writes_what_the_engine_writes_without(live: Console) -> None:
    measured = measure(live, "lossless", probes=4, output_tokens=64)
    assert measured.run["state"] == "done", "nothing is timed, so no client can be too slow"
    assert_counted_as_the_engine_does(measured)
    drafts = {arm["arm"]: arm["server"]["drafts"] for arm in measured.arms}
    assert drafts["without"] == 0 < drafts["with"]
    rows = measured.rows("Probes")
    assert len(rows) == 4
    for row in rows:
        assert row["result"] in ("exact", "near-tie"), row
        parts = row["result"] == "near-tie"
        assert isinstance(row["gap"], int | float) is parts, "a gap is told where answers part"
    assert measured.verdict["kind"] == "passed"
    assert live.status()["speculation"]["depth"] == 5, "as it was before"


def test_the_messages_api_is_spoken_through_the_gateway(live: Console) -> None:
    measured = measure(live, "protocol", "--gateway", "--dialect", "anthropic")
    assert measured.run["state"] == "done"
    assert_counted_as_the_engine_does(measured)
    rows = {row["check"]: row for row in measured.rows("Messages protocol")}
    passed = [name for name, row in rows.items() if row["result"] == "passed"]
    assert {"text", "stream order", "count_tokens"} <= set(passed)
    assert rows["tool call"]["result"] != "failed"
    assert rows["parallel calls"]["result"] != "failed"
    assert all(row["evidence"] for row in rows.values())
    kind = "passed" if len(passed) == len(rows) else "none"
    assert measured.verdict["kind"] == kind, "what could not be tried has not passed"
    assert f"{len(passed)} of 5 passed" in measured.run["result"]["headline"]
    sessions = live.succeed("sessions", "list", "--json")
    assert RUN_SESSION + measured.run["id"] in sessions, "it came as clients come"


# --- The fault: last, as it ends the engine ------------------------------------------------------


def test_a_core_that_dies_in_an_arm_ends_the_run_partial(live: Console) -> None:
    asked = ("streams=1,2", "output_tokens=64", "prompt_tokens=64", "requests=2", "repeats=9")
    told = [word for each in asked for word in ("--set", each)]
    engine = live.status()["engine"]["id"]
    begun = json.loads(live.succeed("run", "sweep", *told, "--yes", "--detach", "--json"))
    records = live.paths.runs / begun["id"] / "run.jsonl"
    live.wait_for(lambda: '"kind":"arm"' in _text(records), 300)
    core_of(live).kill()
    ended = live.run("run", "follow", begun["id"], "--json", timeout_s=300)
    measured = Measured(live, json.loads(ended.stdout), engine)
    run = measured.run
    assert run["state"] == "partial" or not measured.stands, run
    assert "EngineCore" in run["reason"] or run["state"] == "invalid", run["reason"]
    assert measured.arms, "what was measured before is kept"
    assert any(sample["error"] for sample in measured.samples), "what was cut is an error"
    assert_none_is_concluded(run)


def assert_none_is_concluded(run: Json) -> None:
    assert "missing" in run["result"] or run["result"]["verdict"]["kind"] == "none"


def core_of(made: Console) -> psutil.Process:
    """The engine's process that does the work."""
    served = psutil.Process(made.status()["engine"]["pid"])
    return next(
        process
        for process in served.children(recursive=True)
        if "EngineCore" in " ".join(process.cmdline())
    )


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
