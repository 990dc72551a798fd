"""A change is offered for the last failed start, written as it was shown, and kept private."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from a40console.engines.diagnosis import Diagnosis
from a40console.engines.readiness import Stall
from a40console.engines.remedies import ProfileFix
from a40console.errors import RefusedError
from a40console.model.engine import EngineState
from a40console.model.profile import Profile
from a40console.operations import record
from a40console.operations.failure_note import failure_of, note_failure
from a40console.operations.profile_fix import apply_fix, offer_fix
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus
from a40console.paths import Paths, locate
from a40console.profiles.loader import load_profiles

SHORTER = ProfileFix(key="max_model_len", before=262144, after=116480, why="it fits the cache")
OWN = 'kind = "sim"\nmodel = "simulated/qwen3-coder-30b"\nmax_model_len = 262144  # all of it\n'
NOTHING = EngineStatus(state=EngineState.FAILED)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return locate({"A40CONSOLE_HOME": str(tmp_path)})


def own_profile(paths: Paths, text: str = OWN) -> Path:
    paths.profiles.mkdir(parents=True, exist_ok=True)
    file = paths.profiles / "mine.toml"
    file.write_text(text)
    return file


def a_start(paths: Paths, profile: Profile, number: int = 1) -> RunRecord:
    run = RunRecord(
        id=f"2026-11-30T10-00-{number:02d}-ab-{profile.name}",
        profile=profile,
        base_url="http://localhost",
        socket_path="/tmp/x.sock",
        plugin=False,
        argv=("vllm",),
        argv_digest="0" * 12,
        started_at="2026-11-30T10:00:00Z",
    )
    run.folder(paths.engine_runs).mkdir(parents=True)
    record.save(run, paths.engine_runs)
    return run


def fails(
    paths: Paths, name: str, fix: ProfileFix | None = SHORTER, *, number: int = 1
) -> RunRecord:
    profile = load_profiles(paths.profiles).profiles[name]
    run = a_start(paths, profile, number)
    found = Diagnosis(
        code="kv-cache-too-small",
        kind="memory",
        cause="the KV cache has 4.00 GiB",
        evidence="ValueError: To serve at least one request",
        remedy="Set max_model_len = 116480.",
        fix=fix,
    )
    note_failure(run.folder(paths.engine_runs), found)
    return run


def test_ones_own_file_is_changed_in_place(paths: Paths) -> None:
    file = own_profile(paths)
    file.chmod(0o640)
    run = fails(paths, "mine")
    offer = offer_fix(paths, NOTHING)
    assert (offer.profile, offer.code, offer.file) == ("mine", "kv-cache-too-small", str(file))
    assert offer.change == "max_model_len: 262144 → 116480"
    assert offer.diff == (
        "-max_model_len = 262144  # all of it",
        "+max_model_len = 116480  # all of it",
    )
    assert file.read_text() == OWN  # nothing is done before it is asked for
    assert apply_fix(paths, NOTHING, offer.id) == offer
    assert file.read_text() == OWN.replace("262144", "116480")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    note = failure_of(run.folder(paths.engine_runs))
    assert note is not None
    assert (note.fix, "Start it again." in note.remedy) == (None, True)


def test_a_shipped_profile_gets_a_copy_that_stands_for_it(paths: Paths) -> None:
    fails(paths, "qwen3-coder-30b")
    offer = offer_fix(paths, NOTHING)
    assert offer.new_file
    apply_fix(paths, NOTHING)
    found = load_profiles(paths.profiles)
    assert found.origins["qwen3-coder-30b"] == offer.file
    assert found.profiles["qwen3-coder-30b"] == replace(
        load_profiles(Path("/nonexistent")).profiles["qwen3-coder-30b"], max_model_len=116480
    )
    assert "The measured choice for one A40" in Path(offer.file).read_text()
    assert stat.S_IMODE(Path(offer.file).stat().st_mode) == 0o600


def test_a_write_protected_file_is_not_replaced(paths: Paths) -> None:
    file = own_profile(paths)
    file.chmod(0o444)
    fails(paths, "mine")
    for act in (offer_fix, apply_fix):
        with pytest.raises(RefusedError, match="The file of mine is write-protected") as refused:
            act(paths, NOTHING)
        assert "max_model_len = 116480" in refused.value.remedy
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == (OWN, 0o444)


def test_only_what_was_shown_is_done(paths: Paths) -> None:
    file = own_profile(paths)
    fails(paths, "mine")
    shown = offer_fix(paths, NOTHING)
    file.write_text(OWN + "max_running = 8\n")
    with pytest.raises(RefusedError, match="no longer what was shown"):
        apply_fix(paths, NOTHING, shown.id)
    assert "262144" in file.read_text()


def test_a_profile_that_was_changed_since_is_left_alone(paths: Paths) -> None:
    file = own_profile(paths)
    fails(paths, "mine")
    file.write_text(OWN.replace("262144", "32768"))
    with pytest.raises(RefusedError, match="No change of the profile is certain"):
        offer_fix(paths, NOTHING)


def test_without_a_certain_fix_the_remedy_is_told(paths: Paths) -> None:
    own_profile(paths)
    fails(paths, "mine", fix=None)
    with pytest.raises(RefusedError, match="the KV cache has") as refused:
        offer_fix(paths, NOTHING)
    assert refused.value.evidence == "ValueError: To serve at least one request"
    assert refused.value.remedy == "Set max_model_len = 116480."


def test_what_was_put_back_of_the_same_profile_does_not_end_the_failure(paths: Paths) -> None:
    """An edited profile failed, and the settings with which it ran before serve again."""
    own_profile(paths)
    run = fails(paths, "mine")
    back = a_start(paths, replace(run.profile, max_model_len=8192), 2)
    record.note_served(back.folder(paths.engine_runs))
    assert offer_fix(paths, NOTHING).change == "max_model_len: 262144 → 116480"
    own_profile(paths, OWN.replace("262144", "8192"))
    with pytest.raises(RefusedError, match="No start has failed of late"):
        offer_fix(paths, NOTHING)


def test_a_profile_that_served_since_needs_no_fix(paths: Paths) -> None:
    own_profile(paths)
    fails(paths, "mine")
    later = a_start(paths, load_profiles(paths.profiles).profiles["mine"], 2)
    record.note_served(later.folder(paths.engine_runs))
    with pytest.raises(RefusedError, match="No start has failed"):
        offer_fix(paths, NOTHING)


def test_the_failure_before_a_rollback_is_still_offered(paths: Paths) -> None:
    """What failed is the second newest start: the newest put back what served before."""
    own_profile(paths)
    fails(paths, "mine")
    back = a_start(paths, load_profiles(paths.profiles).profiles["qwen3-coder-30b"], 2)
    record.note_served(back.folder(paths.engine_runs))
    status = EngineStatus(state=EngineState.SERVING, run=back)
    assert offer_fix(paths, status).profile == "mine"


def test_a_file_that_cannot_be_edited_says_what_to_set(paths: Paths) -> None:
    speculation = 'speculation = { tokens = 5, enabled = true, method = "ngram" }\n'
    own_profile(paths, OWN + speculation)
    off = ProfileFix(key="speculation.enabled", before=True, after=False, why="it serves then")
    fails(paths, "mine", fix=off)
    with pytest.raises(RefusedError, match="cannot be changed by a program") as refused:
        offer_fix(paths, NOTHING)
    assert "it serves then" in refused.value.remedy


def test_a_file_in_the_way_of_a_copy_is_not_overwritten(paths: Paths) -> None:
    paths.profiles.mkdir(parents=True)
    (paths.profiles / "qwen3-coder-30b.toml").write_text("not a profile")
    fails(paths, "qwen3-coder-30b")
    with pytest.raises(RefusedError, match="is there already"):
        apply_fix(paths, NOTHING)
    assert (paths.profiles / "qwen3-coder-30b.toml").read_text() == "not a profile"


def test_a_start_that_stands_still_has_its_fix_too(paths: Paths) -> None:
    text = OWN + 'arguments = ["--tensor-parallel-size", "2"]\n'
    file = own_profile(paths, text)
    run = a_start(paths, load_profiles(paths.profiles).profiles["mine"])
    stall = Stall(
        for_s=90,
        cause="stuck in NCCL initialisation",
        evidence="vLLM is using nccl==2.27.5",
        remedy="Set NCCL_P2P_DISABLE=1.",
        code="nccl-stuck",
    )
    status = EngineStatus(state=EngineState.STARTING, run=run, stall=stall)
    apply_fix(paths, status)
    assert file.read_text() == text + '\n[environment]\nNCCL_P2P_DISABLE = "1"\n'


def test_a_parser_that_does_not_fit_is_mended_while_it_serves(paths: Paths) -> None:
    model = paths.home / "model"
    model.mkdir(parents=True)
    (model / "chat_template.jinja").write_text("{{ tools }}<|tool_calls_section_begin|>")
    file = own_profile(paths, f'kind = "vllm"\nmodel = "{model}"\n')
    run = a_start(paths, load_profiles(paths.profiles).profiles["mine"])
    status = EngineStatus(state=EngineState.SERVING, run=run)
    offer = apply_fix(paths, status)
    assert (offer.code, offer.change) == (
        "tool-parser-missing",
        'tool_call_parser: not set → "kimi_k2"',
    )
    assert file.read_text().endswith('tool_call_parser = "kimi_k2"\n')
    with pytest.raises(RefusedError):
        offer_fix(paths, status)
