"""Findings about sessions: each in a situation where it must speak, and one where it must not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from a40console.advisor.evidence import Evidence
from a40console.advisor.findings import findings
from a40console.advisor.session_findings import BUSTERS
from a40console.gateway.anthropic.busters import BUSTERS as TAKEN_OUT
from a40console.model.event import Finding
from a40console.model.figures import Estimated
from a40console.model.session import CountDisagreement, PrefixLoss, SessionSigns
from tests.advisor.scenes import Scene

LOSS = PrefixLoss(
    kind="changed",
    at="2026-11-29T14:05:00.000Z",
    request_id="a40-1",
    agent="main",
    turn=127,
    block=7,
    block_kind="tool_result",
    message=3,
    cause="tool_result of message 3 was pruned",
    remedy="Pruning tool results at every turn loses the prefix every time.",
    tokens=Estimated(16400),
    prefill_s=Estimated(5.3),
)


def signs(**changes: Any) -> SessionSigns:
    quiet: dict[str, Any] = {
        "session": "7f3a9c52-5d1e-4b8a-9f60-2f8a1c7e4b10",
        "silent_s": 20.0,
        "loss": None,
        "losses": 0,
        "window_wrong": False,
        "window_evidence": "it asks for max_tokens 8,192, not its default",
        "overflows": 0,
        "nearly_full": False,
        "safeguards": False,
        "removed": {},
        "fallbacks": 0,
    }
    return SessionSigns(**(quiet | changes))


def found(scene: Scene, *sessions: SessionSigns, **more: Any) -> list[Finding]:
    return list(findings(scene(), Evidence(sessions=sessions, **more)))


def test_a_session_with_nothing_amiss_finds_nothing(scene: Scene) -> None:
    assert found(scene, signs()) == []


def test_a_prefix_that_changed_is_named_with_turn_block_and_price(scene: Scene) -> None:
    (finding,) = found(scene, signs(loss=LOSS, losses=3), signs(session="a91c"))

    assert (finding.code, finding.severity) == ("prefix-changed", "warn")
    assert finding.title == ("The prompt's beginning changed: tool_result of message 3 was pruned")
    assert finding.evidence == (
        "session 7f3a9c52, turn 127 · block 7, tool_result · ≈ 16,400 tokens read again, "
        "≈ 5.3 s of prefill · 3 changes in this session"
    )
    assert finding.remedy.startswith("Pruning tool results")


def test_of_several_the_newest_change_is_told(scene: Scene) -> None:
    later = replace(LOSS, at="2026-11-29T14:06:00.000Z", turn=12)

    (finding,) = found(scene, signs(loss=LOSS, losses=1), signs(session="b", loss=later, losses=1))

    assert "session b, turn 12" in finding.evidence
    assert "2 sessions so" in finding.evidence


def test_a_window_taken_for_too_large_is_a_warning_and_its_evidence_stands_there(
    scene: Scene,
) -> None:
    evidence = "it asks for max_tokens 32,000, its own default"

    (finding,) = found(scene, signs(window_wrong=True, window_evidence=evidence))

    assert (finding.code, finding.severity) == ("client-window-wrong", "warn")
    assert finding.evidence == (
        f"session 7f3a9c52 · {evidence} · the engine's window is 262,144 tokens"
    )
    assert finding.remedy == (
        "Start the client with the lines of `a40console env`: they name the window."
    )


def test_a_prompt_that_was_refused_for_its_length_is_an_error(scene: Scene) -> None:
    (finding,) = found(scene, signs(overflows=1))

    assert (finding.code, finding.severity) == ("client-window-wrong", "error")


def test_a_claude_name_has_a_remedy_of_its_own(scene: Scene) -> None:
    said = "it asks for claude-sonnet-5, whose window it takes for 200,000 tokens"

    (finding,) = found(scene, signs(window_wrong=True, window_evidence=said))

    assert finding.remedy.startswith("Name the served model in ANTHROPIC_MODEL")


def test_a_context_beyond_nine_tenths_without_a_summary_speaks(scene: Scene) -> None:
    (finding,) = found(scene, signs(nearly_full=True))

    assert finding.code == "client-window-wrong"


def test_a_session_that_left_hours_ago_accuses_nobody(scene: Scene) -> None:
    gone = signs(
        silent_s=3600.0,
        window_wrong=True,
        overflows=2,
        safeguards=True,
        fallbacks=1,
        removed={"billing header": 9},
    )

    assert found(scene, gone) == []


def test_a_count_that_is_off_is_told_with_both_numbers(scene: Scene) -> None:
    (finding,) = found(scene, counts=CountDisagreement(counted_tokens=48, served_tokens=728))

    assert (finding.code, finding.severity) == ("count-tokens-off", "warn")
    assert finding.evidence == "count_tokens answered 48 · the engine read 728"


def test_an_engine_that_cannot_count_is_worth_knowing(scene: Scene) -> None:
    (finding,) = found(scene, uncounted=True)

    assert (finding.code, finding.severity) == ("count-tokens-off", "info")


def test_auto_mode_waits_for_a_classifier(scene: Scene) -> None:
    (finding,) = found(scene, signs(safeguards=True))

    assert finding.code == "auto-mode-unclassified"
    assert finding.remedy == "Start it in another mode: claude --permission-mode acceptEdits"


def test_removed_cache_busters_are_counted_and_nothing_else_that_is_removed(scene: Scene) -> None:
    (finding,) = found(
        scene, signs(removed={"billing header": 57, "context_management": 57}), signs()
    )

    assert (finding.code, finding.severity) == ("cache-busters-removed", "info")
    assert finding.evidence == "billing header 57 times · 1 session"
    assert found(scene, signs(removed={"context_management": 57})) == []


def test_what_counts_as_a_cache_buster_is_what_the_gateway_takes_out_as_one() -> None:
    assert set(TAKEN_OUT) == BUSTERS


def test_an_answer_asked_for_twice_may_run_its_tools_twice(scene: Scene) -> None:
    (finding,) = found(scene, signs(fallbacks=2))

    assert (finding.code, finding.severity) == ("answers-doubled", "warn")
    assert "session 7f3a9c52, 2 times" in finding.evidence
    assert "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1" in finding.remedy
