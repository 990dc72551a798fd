"""What the service tells of a failed start and its fix, and what it writes down of the change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from a40console.engines.diagnosis import Diagnosis
from a40console.engines.readiness import Stall
from a40console.engines.remedies import ProfileFix
from a40console.errors import RefusedError
from a40console.model.engine import EngineState
from a40console.model.event import Severity
from a40console.model.profile import Profile
from a40console.operations import record
from a40console.operations.failure_note import note_failure
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus
from a40console.operations.who import ask_as
from a40console.paths import Paths, locate
from a40console.profiles.loader import load_profiles
from a40console.service.fixing import EndWords, fix_handler, stall_fix
from a40console.service.parser_check import ParserCheck

TEXT = 'kind = "sim"\nmodel = "simulated/qwen3-coder-30b"\nmax_model_len = 65536\n'
FOUND = Diagnosis(
    code="kv-cache-too-small",
    kind="memory",
    cause="the KV cache has 1.50 GiB",
    evidence="ValueError: To serve at least one request",
    remedy="Set max_model_len = 32768.",
    fix=ProfileFix(key="max_model_len", before=65536, after=32768, why="it fits"),
)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = locate({"A40CONSOLE_HOME": str(tmp_path)})
    made.profiles.mkdir(parents=True)
    (made.profiles / "mine.toml").write_text(TEXT)
    return made


def a_start(paths: Paths, profile: Profile) -> RunRecord:
    run = RunRecord(
        id="2026-11-30T10-00-00-ab-mine",
        profile=profile,
        base_url="http://localhost",
        socket_path=None,
        plugin=False,
        argv=("vllm",),
        argv_digest="0" * 12,
        started_at="2026-11-30T10:00:00Z",
    )
    run.folder(paths.engine_runs).mkdir(parents=True)
    record.save(run, paths.engine_runs)
    return run


def failed(paths: Paths) -> EngineStatus:
    run = a_start(paths, load_profiles(paths.profiles).profiles["mine"])
    note_failure(run.folder(paths.engine_runs), FOUND)
    return EngineStatus(state=EngineState.FAILED, run=run, remedy="Start it again.")


class Journal:
    """Keeps what is recorded."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, Severity, dict[str, str]]] = []

    def __call__(
        self,
        kind: str,
        text: str,
        severity: Severity = "info",
        data: dict[str, str] | None = None,
    ) -> Any:
        self.events.append((kind, text, severity, data or {}))


async def test_the_change_is_an_event_with_who_what_before_and_after(paths: Paths) -> None:
    status, journal, end = failed(paths), Journal(), EndWords(paths.engine_runs)
    assert end.told(status) == (
        "Set max_model_len = 32768.",
        "max_model_len: 65536 → 32768",
    )
    ask_as("alice@laptop, pid 4711")
    answer = await fix_handler(paths, lambda: status, journal)({})
    assert answer["change"] == "max_model_len: 65536 → 32768"
    ((kind, text, severity, data),) = journal.events
    assert (kind, severity) == ("profile.fixed", "info")
    assert text == "mine: max_model_len: 65536 → 32768"
    assert data["who"] == "alice@laptop, pid 4711"
    assert (data["before"], data["after"]) == ("65536", "32768")
    assert data["failure"] == "kv-cache-too-small"
    remedy, fix = end.told(status)
    assert ("Start it again." in remedy, fix) == (True, "")


async def test_nothing_is_recorded_where_nothing_is_done(paths: Paths) -> None:
    status, journal = failed(paths), Journal()
    with pytest.raises(RefusedError):
        await fix_handler(paths, lambda: status, journal)({"fix": "another"})
    assert journal.events == []
    assert (paths.profiles / "mine.toml").read_text() == TEXT


def test_an_engine_that_did_not_fail_has_no_fix(paths: Paths) -> None:
    status = replace(failed(paths), state=EngineState.STOPPED)
    assert EndWords(paths.engine_runs).told(status) == ("Start it again.", "")
    assert stall_fix(status) == ""


def test_a_hang_in_nccl_tells_its_fix(paths: Paths) -> None:
    profile = replace(
        load_profiles(paths.profiles).profiles["mine"],
        arguments=("--tensor-parallel-size", "2"),
    )
    stall = Stall(for_s=90, cause="stuck", evidence="nccl", remedy="Wait.", code="nccl-stuck")
    status = EngineStatus(run=a_start(paths, profile), stall=stall)
    assert stall_fix(status) == 'environment.NCCL_P2P_DISABLE: not set → "1"'


def test_parsers_are_compared_once_a_start(paths: Paths) -> None:
    model = paths.home / "model"
    model.mkdir()
    template = model / "chat_template.jinja"
    template.write_text("{{ tools }}<|tool_calls_section_begin|>")
    run = a_start(paths, Profile(name="mine", kind="vllm", model=str(model)))
    check = ParserCheck({})
    assert check.look(run) == ()
    check.reading.settle()
    (unfit,) = check.look(run)
    assert unfit.fix == 'tool_call_parser: not set → "kimi_k2"'
    template.unlink()
    check.reading.settle()
    assert check.look(run) == (unfit,)
    another = replace(run, id="another")
    assert check.look(another) == ()
    check.reading.settle()
    assert check.look(another) == ()
    assert check.look(None) == ()
    simulated = replace(run, profile=replace(run.profile, kind="sim"))
    assert ParserCheck({}).look(simulated) == ()
