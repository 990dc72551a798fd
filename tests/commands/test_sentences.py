"""What a screen reader is given: whole sentences, no signs to guess at, and only what changed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.commands.sentences import DETAILS, Detail, changes, report, sentence, spoken
from a40console.model.engine import EngineEnd, EngineState
from a40console.model.event import Finding
from a40console.model.figures import Missing
from a40console.model.snapshot import Snapshot
from tests import make_snapshot as make
from tests.tui.fog import fogged

SNAPSHOT = make.snapshot()
SIGNS = re.compile(r"[●◐✖○▲✓▸≈×…·]|\s{2}|–\s*[.,]")


def finding(severity: str) -> Finding:
    return Finding(
        code="disk",
        severity=severity,  # type: ignore[arg-type]
        title="the disk is nearly full",
        evidence="1 GiB left",
        remedy="delete a model",
        since="",
        command="",
    )


def with_state(state: EngineState) -> Snapshot:
    end = EngineEnd(code=Missing("-"), signal="SIGKILL", cause="killed for memory", at="")
    return replace(SNAPSHOT, engine=replace(SNAPSHOT.engine, state=state, exit=end))


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        (
            "● SERVING   509 tok/s   2 decoding · 1 held",
            "SERVING. 509 tokens a second. 2 decoding, 1 held",
        ),
        ("≈22.7 × 18.2", "about 22.7 times 18.2"),
        ("$0.454/h", "$0.454 an hour"),
        ("slots  –  no source", "slots, unknown, no source"),
        ("a–b", "a–b"),
    ],
)
def test_signs_become_words(drawn: str, said: str) -> None:
    assert spoken(drawn) == said


@given(st.integers(0, 10_000))
def test_every_sentence_is_whole_and_without_signs(seed: int) -> None:
    lines = report(fogged(SNAPSHOT, 0.3, seed))
    for line in lines:
        assert not SIGNS.search(line), line
        assert line[-1] in ".!?", line
        assert "\n" not in line


def test_the_report_has_the_verdict_the_requests_and_the_findings() -> None:
    text = "\n".join(report(replace(SNAPSHOT, findings=(finding("error"),))))
    assert "SERVING" in text
    assert "Limit: " in text
    assert "Cost: " in text
    assert "Request 0, 7f3a: decode" in text
    assert "Error: The disk is nearly full. 1 GiB left. Delete a model." in text


@pytest.mark.parametrize("detail", DETAILS)
def test_what_did_not_change_is_not_told(detail: Detail) -> None:
    later = replace(SNAPSHOT, seq=SNAPSHOT.seq + 1, at="2026-11-29T14:08:00Z")
    assert changes(SNAPSHOT, later, detail) == []


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize(
    ("state", "said"),
    [
        (EngineState.FAILED, "The engine has failed: killed for memory."),
        (EngineState.HUNG, "The engine hangs"),
    ],
)
def test_the_engines_fate_is_told_at_any_detail(
    detail: Detail, state: EngineState, said: str
) -> None:
    assert changes(SNAPSHOT, with_state(state), detail)[0].startswith(said)


def test_findings_are_told_when_they_come_and_when_they_go() -> None:
    calm = replace(SNAPSHOT, findings=())
    bad, warned = (replace(calm, findings=(finding(grade),)) for grade in ("error", "warn"))
    assert changes(calm, bad, "quiet")[0].startswith("Error: The disk")
    assert changes(bad, calm, "quiet") == ["Over: the disk is nearly full."]
    assert changes(calm, warned, "quiet") == []
    assert changes(calm, warned, "normal")[0].startswith("Warning: ")


def test_the_limit_and_the_requests_are_told_as_the_detail_says() -> None:
    limited = replace(SNAPSHOT, limit=replace(SNAPSHOT.limit, cause="kv", text="the cache is full"))
    assert changes(SNAPSHOT, limited, "normal") == ["Limit: the cache is full."]
    assert changes(SNAPSHOT, limited, "quiet") == []
    busier = replace(SNAPSHOT, requests=replace(SNAPSHOT.requests, running=9, waiting=2))
    assert changes(SNAPSHOT, busier, "all") == ["Requests: 9 running, 2 waiting."]
    assert changes(SNAPSHOT, busier, "normal") == []


def test_an_empty_text_is_no_sentence() -> None:
    assert sentence("  ") == ""
