"""Findings become few events: what flaps is told once, what an earlier service told is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from a40console.model.event import Finding, Severity
from a40console.service.finding_log import BEGAN, ENDED, FindingLog
from a40console.service.journal import Journal

HUNG = Finding(
    "engine-hung", "error", "The engine hangs", "no token for 40 s", "then", "Restart it"
)
SLOW = Finding("vcpu-throttled", "warn", "The quota throttles", "80 ms/s", "then", "More vCPU")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "events.jsonl")


def kinds(journal: Journal) -> list[tuple[str, Severity, str]]:
    return [(e.kind, e.severity, e.data["code"]) for e in journal.since(0, 1000)]


def watch(log: FindingLog, *findings: Finding, since_s: int, until_s: int) -> None:
    for second in range(since_s, until_s):
        log.observe(findings, float(second))


def test_one_that_lasts_begins_and_ends_once(journal: Journal) -> None:
    log = FindingLog(journal.record)
    watch(log, HUNG, since_s=0, until_s=10)
    assert kinds(journal) == []
    watch(log, HUNG, since_s=10, until_s=100)
    assert kinds(journal) == [(BEGAN, "error", "engine-hung")]
    watch(log, since_s=100, until_s=150)
    assert len(kinds(journal)) == 1
    watch(log, since_s=150, until_s=300)
    assert kinds(journal)[1:] == [(ENDED, "info", "engine-hung")]
    [_, ended] = journal.since(0, 10)
    assert (ended.data["began"], ended.data["title"]) == ("then", "The engine hangs")


def test_a_moments_finding_is_no_event(journal: Journal) -> None:
    log = FindingLog(journal.record)
    for begin_s in range(0, 600, 20):
        watch(log, SLOW, since_s=begin_s, until_s=begin_s + 8)
        watch(log, since_s=begin_s + 8, until_s=begin_s + 20)
    assert kinds(journal) == []


def test_one_that_flaps_is_told_ever_more_rarely(journal: Journal) -> None:
    log = FindingLog(journal.record)
    for begin_s in range(0, 4 * 3600, 120):  # 40 s there, 80 s away
        watch(log, SLOW, since_s=begin_s, until_s=begin_s + 40)
        watch(log, since_s=begin_s + 40, until_s=begin_s + 120)
    assert 2 <= len(kinds(journal)) <= 4


def test_one_that_flaps_for_a_month_stays_an_event_that_ends() -> None:
    told: list[tuple[str, float]] = []
    now_s = 0.0

    def record(kind: str, text: str, severity: Severity = "info", data: object = None) -> None:
        told.append((kind, now_s))

    log = FindingLog(record)
    while now_s < 30 * 86_400:  # there for 20 s, away for 16 min
        for seconds, findings in ((0, (SLOW,)), (20, (SLOW,)), (21, ()), (980, ())):
            log.observe(findings, now_s + seconds)
        now_s += 981
    kinds = [kind for kind, _ in told]
    assert kinds[:2] == [BEGAN, ENDED]
    assert kinds.count(BEGAN) - kinds.count(ENDED) in (0, 1)
    assert len(kinds) > 1024
    assert told[-1][0] == ENDED, "sixteen minutes away are always enough"


def test_two_at_once_are_told_apart(journal: Journal) -> None:
    log = FindingLog(journal.record)
    watch(log, HUNG, SLOW, since_s=0, until_s=20)
    watch(log, SLOW, since_s=20, until_s=100)
    assert [(kind, code) for kind, _, code in kinds(journal)] == [
        (BEGAN, "engine-hung"),
        (BEGAN, "vcpu-throttled"),
        (ENDED, "engine-hung"),
    ]


def test_an_earlier_services_findings_are_known(journal: Journal) -> None:
    watch(FindingLog(journal.record), HUNG, SLOW, since_s=0, until_s=20)
    log = FindingLog(journal.record)
    log.recall(journal.since(0, 1000), 500.0)
    watch(log, SLOW, since_s=500, until_s=600)
    assert [(kind, code) for kind, _, code in kinds(journal)][2:] == [(ENDED, "engine-hung")]
    log = FindingLog(journal.record)
    log.recall(journal.since(0, 1000), 900.0)
    watch(log, since_s=900, until_s=1000)
    assert [(kind, code) for kind, _, code in kinds(journal)][3:] == [(ENDED, "vcpu-throttled")]


def test_what_has_an_event_of_its_own_is_not_told_twice(journal: Journal) -> None:
    failed = Finding("engine-failed", "error", "The engine ended", "", "then", "")
    watch(FindingLog(journal.record), failed, since_s=0, until_s=60)
    assert kinds(journal) == []


def test_an_end_is_told_in_the_words_of_its_begin(journal: Journal) -> None:
    log = FindingLog(journal.record)
    watch(log, HUNG, since_s=0, until_s=20)
    watch(log, replace(HUNG, title="The engine hangs still"), since_s=20, until_s=40)
    watch(log, since_s=40, until_s=200)
    began, ended = journal.since(0, 10)
    assert ended.text == f"no longer: {began.text}"
    assert ended.data["title"] == began.text
