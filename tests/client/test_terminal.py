"""Claude Code in a real terminal: /compact, /context and Esc."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.client.claude_code import ClaudeCode, until
from tests.client.sessions import detail_of, ended
from tests.faults.console import FaultConsole
from tests.live.terminal import Tmux

Start = Callable[..., tuple[FaultConsole, ClaudeCode]]
LONG = "the window keeps what the ledger drops and the gauge folds it " * 400


def opened(user: ClaudeCode) -> Tmux:
    """The client as it is opened in a folder that its user trusts."""
    words = user.command("--session-id", user.session, "--permission-mode", "acceptEdits")
    folder = Path(user.home)
    terminal = Tmux(
        ["sh", "-c", 'cd "$0" && exec "$@"', str(user.folder), *words], {}, folder=folder
    )
    terminal.wait_for("❯", 30)
    return terminal


def said(terminal: Tmux, text: str) -> None:
    """Type a prompt and send it."""
    terminal.type(text)
    terminal.wait_for(text[:20])
    terminal.press("Enter")


def test_compaction_is_seen_as_one_and_is_no_fault(claude: Start) -> None:
    summary = {"text": "<summary>We said hello.</summary>"}
    console, user = claude(
        [
            {"when": "CRITICAL: Respond with TEXT ONLY", "say": [summary]},
            {"when": "", "say": [{"text": "Understood, sir."}]},
        ]
    )
    with opened(user) as terminal:
        said(terminal, "hello there")
        terminal.wait_for("Understood, sir.", 30)
        said(terminal, "/compact")
        terminal.wait_for("ompacted", 30)
        before = until(lambda: ended(console, user, requests=2))
        said(terminal, "and now go on")
        terminal.wait_for(lambda screen: screen.count("Understood, sir.") >= 1, 30)
        until(lambda: ended(console, user, requests=before["requests"] + 1))
    detail = detail_of(console, user)
    assert detail["window"]["compactions"] == 1
    assert [loss["kind"] for loss in detail["losses"]] in ([], ["compacted"])
    assert [row["purpose"] for row in detail["timeline"]].count("compaction") >= 1


def test_escape_frees_the_slot_within_a_second(claude: Start) -> None:
    console, user = claude([{"when": "tell", "say": [{"text": LONG}]}], speed=1)
    with opened(user) as terminal:
        said(terminal, "tell me all of it")
        console.until(lambda snapshot: snapshot["requests"]["running"] == 1, 20)
        terminal.wait_for("the window keeps", 20)
        terminal.press("Escape")
        terminal.wait_for("nterrupted", 10)
        console.until(lambda snapshot: snapshot["requests"]["running"] == 0, 2)
        assert detail_of(console, user)["aborted"] == 1


def test_the_context_view_counts_by_the_engines_tokenizer(claude: Start) -> None:
    console, user = claude([{"when": "", "say": [{"text": "Yes."}]}])
    with opened(user) as terminal:
        said(terminal, "a question")
        terminal.wait_for("Yes.", 30)
        before = until(lambda: ended(console, user, requests=1))
        said(terminal, "/context")
        screen = terminal.wait_for("Free space", 30)
        after = detail_of(console, user)
        assert after["requests"] == before["requests"]
    read = before["context_tokens"]  # as the engine told of the request itself
    assert read > 10_000
    assert f"{read / 1000:.1f}k/131.1k tokens" in screen
    parts = [thousands(text) for text in re.findall(r"⛁ [A-Z][^:\n]+: ([\d.]+k?) \(", screen)]
    assert len(parts) >= 4
    assert sum(parts) == pytest.approx(read, rel=0.05)  # each was asked for by itself, and rounded


def thousands(text: str) -> float:
    """`2.1k` as a number."""
    return float(text.removesuffix("k")) * (1000 if text.endswith("k") else 1)
