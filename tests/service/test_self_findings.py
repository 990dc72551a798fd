"""What is wrong with a running service itself is a finding as long as it holds."""

from __future__ import annotations

import os
import signal
import sqlite3
from typing import Any

from a40console.engines.run_record import read_identity
from tests.live.console import Console, console


def test_a_locked_history_and_a_lost_keeper_are_findings_while_they_last() -> None:
    with console() as made:
        made.serve("--profile", "sim-a40-qwen3-coder-30b")
        made.succeed("wait", "ready", "--timeout", "60")
        assert finding(made, "state-not-written") is finding(made, "keeper-gone") is None

        lock = sqlite3.connect(made.paths.state / "history.sqlite", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        made.wait_for(lambda: finding(made, "state-not-written") is not None, 30)
        told = finding(made, "state-not-written")
        assert told is not None
        assert told["severity"] == "warn"
        assert "history: " in told["evidence"]
        assert "locked" in told["evidence"]
        lock.execute("ROLLBACK")
        lock.close()
        made.wait_for(lambda: finding(made, "state-not-written") is None, 30)

        identity = read_identity(made.run_folder())
        assert identity is not None
        os.kill(identity.keeper.pid, signal.SIGKILL)
        made.wait_for(lambda: finding(made, "keeper-gone") is not None, 10)
        made.succeed("engine", "restart", "--timeout", "60")
        assert finding(made, "keeper-gone") is None, "the new engine has its own"


def test_a_history_with_a_damaged_row_starts_the_service_as_ever() -> None:
    with console() as made:
        made.serve()
        made.wait_for((made.paths.state / "history.sqlite").exists, 10)
        made.succeed("stop")
        assert made.service is not None
        made.service.wait(20)
        with sqlite3.connect(made.paths.state / "history.sqlite") as file:
            file.execute("INSERT OR REPLACE INTO tallies VALUES (60, 60, 'x')")
        file.close()
        made.serve()
        events = made.succeed("events", "--json")
        assert events.count("service.started") == 2, "it did not come back again and again"
        assert events.count("history.lost") == 1
        assert (made.paths.state / "history.sqlite.broken").exists()


def finding(made: Console, code: str) -> dict[str, Any] | None:
    return next((found for found in made.status()["findings"] if found["code"] == code), None)
