"""The log's own throughput beside the counters: a share is told apart from the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from a40console.telemetry.log_speed import LogSpeed

LINE = (
    "({who} pid={pid}) INFO 11-29 13:20:16 [loggers.py:335] Engine 000: Avg prompt throughput: "
    "99.1 tokens/s, Avg generation throughput: {rate:.1f} tokens/s, Running: 1 reqs, Waiting: 0 "
    "reqs, CPU KV cache usage: 0.3%, Prefix cache hit rate: 10.4%\n"
)
RUST = (
    "\x1b[36m(RustFrontend pid=7)\x1b[0m INFO 11-29 13:47:44 [log_stats.rs:273] Avg prompt tput: "
    "41.6 toks/s, Avg generation tput: {rate:.1f} toks/s, Reqs Running: 0, Waiting: 0\n"
)
COUNTED = 80.0


class Engine:
    """Generates 80 tokens a second and logs what a test says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.write_text("Application startup complete.\n")
        self.speed = LogSpeed()
        self.now_s = 0.0
        self.speed.observe(path, 0.0, 0.0)

    def log(self, text: str) -> None:
        with self.path.open("a") as log:
            log.write(text)

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now_s += 1
            self.speed.observe(self.path, COUNTED * self.now_s, self.now_s)

    def log_every_10_s(self, times: int, *rates: float, line: str = LINE) -> None:
        for _ in range(times):
            for number, rate in enumerate(rates):
                self.log(line.format(who=f"APIServer_{number}", pid=40 + number, rate=rate))
            self.run(10)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path / "output.log")


@pytest.mark.parametrize("line", [LINE, RUST])
def test_a_log_that_agrees_says_nothing(engine: Engine, line: str) -> None:
    engine.log_every_10_s(6, 84.0, line=line)
    assert engine.speed.disagreement(engine.now_s) is None


def test_shares_of_two_servers_are_told_with_the_counters(engine: Engine) -> None:
    engine.log_every_10_s(2, 30.0, 50.0)
    assert engine.speed.disagreement(engine.now_s) is not None
    found = engine.speed.disagreement(engine.now_s)
    assert found is not None
    assert found.logged_tokens_per_s in (30.0, 50.0)
    assert found.counted_tokens_per_s == pytest.approx(COUNTED)
    assert found.over_s == pytest.approx(10.0)
    assert found.speakers == 2


def test_one_line_that_differs_is_no_verdict(engine: Engine) -> None:
    engine.log_every_10_s(2, 30.0)
    assert engine.speed.disagreement(engine.now_s) is None
    engine.log_every_10_s(1, 30.0)
    assert engine.speed.disagreement(engine.now_s) is not None
    engine.log_every_10_s(1, 80.0)
    assert engine.speed.disagreement(engine.now_s) is None, "it agrees again"


def test_an_old_line_says_nothing_of_now(engine: Engine) -> None:
    engine.log_every_10_s(3, 30.0)
    engine.run(31)
    assert engine.speed.disagreement(engine.now_s) is None


def test_a_line_in_two_pieces_is_read_as_one_and_a_flood_is_skipped(engine: Engine) -> None:
    engine.log_every_10_s(1, 30.0)
    whole = LINE.format(who="APIServer_0", pid=40, rate=30.0)
    engine.log(whole[:90])
    engine.run(1)
    engine.log(whole[90:])
    engine.run(9)
    engine.log("noise\n" * 40_000 + whole)
    engine.run(10)
    found = engine.speed.disagreement(engine.now_s)
    assert found is not None
    assert found.logged_tokens_per_s == 30.0


def test_another_engine_or_a_truncated_log_begins_anew(engine: Engine, tmp_path: Path) -> None:
    engine.log_every_10_s(3, 30.0)
    engine.path.write_text("")
    engine.run(1)
    assert engine.speed.disagreement(engine.now_s) is not None
    other = tmp_path / "other.log"
    engine.speed.observe(other, 0.0, engine.now_s)
    assert engine.speed.disagreement(engine.now_s) is None
    engine.speed.observe(None, None, engine.now_s)
    assert engine.speed.disagreement(engine.now_s) is None
