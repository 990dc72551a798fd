"""Every recorded log of vLLM and llama.cpp is a case: its code, its line, its remedy, its fix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines import llamacpp, vllm
from a40console.engines.diagnosis import (
    Diagnosis,
    Ending,
    StartFailureKind,
    diagnose,
)
from a40console.engines.logs import strip_escapes
from a40console.engines.readiness import PhaseTracker
from a40console.engines.run_record import EngineExit
from a40console.model.profile import Profile, Speculation
from a40console.profiles.loader import load_profiles

DATA = Path(__file__).parents[1] / "data" / "engine_logs"
SHIPPED = load_profiles(Path("/nonexistent")).profiles
LLAMA = SHIPPED["smollm2-135m"]
NGRAM = Speculation(enabled=True, method="nope", tokens=5)
VLLM = replace(
    SHIPPED["qwen3-coder-30b"],
    max_model_len=100_000,
    kv_cache_dtype="fp9",
    quantization="awq",
    max_running=128,
    max_batched_tokens=64,
    tool_call_parser="nope",
    listen="loopback",
    speculation=NGRAM,
    arguments=("--disable-log-requests",),
)


@dataclass(frozen=True)
class Case:
    """What a log must come to."""

    file: str
    code: str
    kind: StartFailureKind
    line: str
    """What the evidence must say."""

    remedy: str
    fix: tuple[str, object, object] | None = None
    """Key, before and after; None where there is none that is certain."""


OFF = ("speculation.enabled", True, False)
CASES = [
    Case(
        "fail-unknown-flag.log",
        "unknown-flag",
        "rejected",
        "vllm: error: unrecognized arguments: --disable-log-requests",
        "Remove it from the profile's arguments: renamed",
        ("arguments", ("--disable-log-requests",), ()),
    ),
    Case(
        "fail-bad-int.log",
        "bad-value",
        "rejected",
        "argument --max-num-seqs: invalid int value: 'lots'",
        "Correct it in the profile.",
    ),
    Case(
        "fail-bad-spec-json.log",
        "speculation-json",
        "rejected",
        "Value {method:ngram} cannot be converted",
        "double quotes",
        OFF,
    ),
    Case(
        "fail-bad-spec-method.log",
        "speculation-method",
        "rejected",
        "1 validation error for SpeculativeConfig method Input should be 'ngram'",
        "Set a method that the line lists",
        OFF,
    ),
    Case(
        "fail-spec-unknown-key.log",
        "speculation-key",
        "rejected",
        "disable_by_batch_size Unexpected keyword argument",
        "Take it out of --speculative-config",
        OFF,
    ),
    Case(
        "fail-spec-missing-tokens.log",
        "speculation-refused",
        "rejected",
        "num_speculative_tokens must be provided",
        "or turn it off",
        OFF,
    ),
    Case(
        "fail-bad-tool-parser.log",
        "unknown-parser",
        "rejected",
        "KeyError: 'invalid tool call parser: nope (chose from { apertus,",
        "Set one that the line lists",
    ),
    Case(
        "fail-mml-over-model.log",
        "context-beyond-model",
        "rejected",
        "User-specified max_model_len (100000) is greater",
        "Set max_model_len = 8192 or less.",
        ("max_model_len", 100_000, 8192),
    ),
    Case(
        "fail-port-in-use.log",
        "address-in-use",
        "other",
        "OSError: [Errno 98] Address already in use",
        "listen = 'socket'",
        ("listen", "loopback", "socket"),
    ),
    Case(
        "fail-model-missing-path.log",
        "model-path-missing",
        "other",
        "Repo id must be in the form",
        "Correct model in the profile",
    ),
    Case(
        "fail-model-missing-hub.log",
        "hub-not-reached",
        "other",
        "outgoing traffic has been disabled",
        "HF_HUB_OFFLINE",
    ),
    Case("fail-gguf-direct.log", "gguf-in-vllm", "other", ".gguf' is not a valid JSON", "llamacpp"),
    Case(
        "fail-kv-too-small-bytes2.log",
        "kv-cache-too-small",
        "out_of_memory",
        "the estimated maximum model length is 4096",
        "Set max_model_len = 4096",
        ("max_model_len", 100_000, 4096),
    ),
    Case("fail-chat-template.log", "chat-template-missing", "rejected", "nope.jinja", "full path"),
    Case(
        "fail-kv-dtype-unknown.log",
        "kv-dtype-unknown",
        "rejected",
        "argument --kv-cache-dtype: invalid choice",
        "kv_cache_dtype = 'auto'",
        ("kv_cache_dtype", "fp9", "auto"),
    ),
    Case("fail-tp-heads.log", "heads-not-divisible", "rejected", "must be divisible", "divides"),
    Case("fail-batch-small.log", "batch-below-context", "rejected", "is smaller than", "4096"),
    Case(
        "fail-batch-seqs.log",
        "batch-below-running",
        "rejected",
        "must be greater than or equal to max_num_seqs (128)",
        "Raise max_batched_tokens",
        ("max_batched_tokens", 64, 128),
    ),
    Case(
        "fail-awq.log",
        "not-quantized-so",
        "rejected",
        "Cannot find the config file for awq",
        "Remove quantization",
        ("quantization", "awq", None),
    ),
    Case("fail-noconfig.log", "model-invalid", "other", "m_noconfig", "config.json"),
    Case("fail-badtok.log", "model-json-damaged", "other", "JSONDecodeError", "Fetch the model"),
    Case("fail-noweights.log", "weights-missing", "other", "Cannot find any model", "Fetch them"),
    Case("fail-trunc.log", "weights-damaged", "other", "Safetensor", "Delete it"),
    Case("fail-gated.log", "model-gated", "other", "gated", "HF_TOKEN"),
    Case(
        "fail-private.log", "model-unknown", "other", "is not a valid model identifier", "HF_TOKEN"
    ),
    Case("fail-badtoken.log", "token-refused", "other", "Invalid", "valid HF_TOKEN"),
    Case("fail-forbidden.log", "model-forbidden", "other", "403", "the right to read"),
    Case(
        "llama-bad_flag.txt",
        "unknown-flag",
        "rejected",
        "error: invalid argument: --no-such-flag",
        "Remove it from the profile's arguments.",
    ),
    Case("llama-bad_value.txt", "bad-value", "rejected", '"-np": stoi', "Correct or remove"),
    Case(
        "llama-bad_removed_flag.txt",
        "bad-value",
        "rejected",
        "the argument has been removed. use --spec-draft-n-max or",
        "Correct or remove",
    ),
    Case("llama-bad_spec_type.txt", "bad-value", "rejected", "unknown speculative type", "remove"),
    Case("llama-bad_lora_missing.txt", "lora-missing", "rejected", "/nope.gguf", "arguments"),
    Case("llama-bad_missing_file.txt", "model-path-missing", "other", "/nope/x.gguf", "Correct"),
    Case("llama-bad_not_gguf.txt", "not-gguf", "other", "invalid magic", "Give a GGUF file"),
    Case("llama-bad_truncated_gguf.txt", "weights-damaged", "other", "", "fetch it again"),
    Case("llama-bad_port_in_use.txt", "address-in-use", "other", "port: 18082", "listen"),
    Case(
        "llama-bad_oom_ctx_ulimit.txt",
        "host-out-of-memory",
        "out_of_memory",
        "insufficient memory (attempted to allocate 175781.25 MB)",
        "Lower max_model_len",
    ),
    Case(
        "llama-bad_oom_weights_ulimit.txt",
        "host-out-of-memory",
        "out_of_memory",
        "41.96 MB",
        "smaller model",
    ),
]
HEALTHY = sorted(
    path.name
    for pattern in ("startup-*.log", "serve-*.log", "shutdown-*.log", "llama-log_*.txt")
    for path in DATA.glob(pattern)
    if path.name != "startup-033b.log"  # its worker is killed at the end
)
STARTED = tuple(name for name in HEALTHY if name.startswith(("startup-", "serve-")))
NO_TROUBLE = ("stopped-from-outside", "start-failed", "unknown")
"""Nothing in the output explains the end: by the exit alone, or by an orderly stop."""

KILLED = ("enginecore-killed.log", "killed-033overlay.log", "startup-033b.log")


def written(name: str) -> list[str]:
    return (DATA / name).read_text(errors="replace").splitlines()


def profile_of(name: str) -> Profile:
    return LLAMA if name.startswith("llama-") else VLLM


def messages(lines: list[str], profile: Profile) -> str:
    """What was written, without prefixes and escapes, in one line: evidence is a part of it."""
    bare = (strip_escapes(line) for line in lines)
    said = (
        vllm.split_prefix(line.rstrip())[1]
        if profile.speaks_vllm
        else llamacpp.strip_prefix(line.rstrip())
        for line in bare
    )
    return " ".join(" ".join(said).split())


def failed(name: str) -> Diagnosis:
    ending = Ending(
        profile=profile_of(name),
        exit=EngineExit(code=1),
        lines=written(name)[-400:],
        phase="starting",
        after_s=1.0,
    )
    return diagnose(ending)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file)
def test_a_recorded_failure_comes_to_its_code_line_remedy_and_fix(case: Case) -> None:
    found = failed(case.file)
    assert (found.code, found.start_failure) == (case.code, case.kind)
    assert case.line in found.evidence
    assert found.evidence.rstrip("…") in messages(written(case.file), profile_of(case.file))
    assert case.remedy in found.remedy
    fix = found.fix and (found.fix.key, found.fix.before, found.fix.after)
    assert fix == case.fix
    assert found.fix is None or found.fix.why


def test_every_recorded_log_is_a_case() -> None:
    known = {case.file for case in CASES} | set(HEALTHY) | set(KILLED)
    logs = {path.name for path in DATA.iterdir() if not path.name.startswith("vllm-flags")}
    assert logs == known


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_gives_no_finding(name: str) -> None:
    """Neither while it starts nor while it serves, and its start never counts as stalled."""
    lines, profile = written(name), profile_of(name)
    tracker = PhaseTracker(profile.kind, started_s=0.0, stall_after_s=10.0)
    begun = len(lines)
    for number, line in enumerate(lines):
        tracker.feed(line, float(number) * 0.01)
        assert tracker.stall(float(number) * 0.01) is None
        if tracker.phase == "ready":
            begun = min(begun, number)
    assert name not in STARTED or begun < len(lines)
    # A router's own start is well where that of a model below it is not.
    starts = begun < len(lines) and name != "llama-log_router.txt"
    for phase, seen in (("capture", lines[:begun] if starts else []), ("ready", lines)):
        ending = Ending(profile=profile, exit=EngineExit(code=0), lines=seen, phase=phase)
        assert diagnose(ending).code in NO_TROUBLE


@pytest.mark.parametrize("name", KILLED)
def test_a_killed_engine_core_is_no_refused_setting(name: str) -> None:
    found = diagnose(Ending(profile=VLLM, exit=EngineExit(code=0), lines=written(name)))
    assert (found.code, found.start_failure, found.fix) == ("engine-core-died", "other", None)
    assert found.evidence in messages(written(name), VLLM)


EXITS = st.builds(
    EngineExit,
    code=st.none() | st.integers(-20, 255),
    signal=st.none() | st.sampled_from(["SIGKILL", "SIGTERM", "SIGBUS", "SIGSEGV"]),
)
PIECES = [line for case in CASES for line in written(case.file)[-12:]]
NO_LINE = ("it wrote nothing", "its last line tells of no fault")


@given(
    lines=st.lists(st.sampled_from(PIECES) | st.text(max_size=120), max_size=12),
    exit_=EXITS,
    phase=st.sampled_from(["starting", "load", "compile", "capture", "ready"]),
    vllm_speaks=st.booleans(),
)
def test_any_text_is_diagnosed_and_no_evidence_is_invented(
    lines: list[str], exit_: EngineExit, phase: str, *, vllm_speaks: bool
) -> None:
    profile = VLLM if vllm_speaks else LLAMA
    text = [part for line in lines for part in line.splitlines() or [""]]
    found = diagnose(Ending(profile=profile, exit=exit_, lines=text, phase=phase, after_s=1.0))
    assert found.code
    assert found.cause
    assert found.remedy
    known = [messages(text, profile), exit_.cause, *NO_LINE]
    assert any(found.evidence.rstrip("…") in place for place in known)
    assert len(found.evidence) <= 300
    if found.fix is not None:
        assert found.fix.before != found.fix.after
