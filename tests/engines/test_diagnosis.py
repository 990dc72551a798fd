"""Every recorded failure gets its cause, a line that shows it, and something to do."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines.diagnosis import Diagnosis, Ending, diagnose
from a40console.engines.run_record import EngineExit
from a40console.model.profile import Profile
from tests.engines.diagnoses import UNKNOWN, everything
from tests.engines.failures import (
    CORE_DIED,
    CORE_ERROR,
    LACKING,
    OOM,
    QWEN,
    RECORDED,
    SMOL,
    lines,
    recorded,
)

SERVER_ERROR = "(APIServer pid=1) ERROR 11-29 13:00:00 [serving.py:929] "
SERVER_WARNING = "(APIServer pid=1) WARNING 11-29 13:00:01 [core_client.py:817] "


def failed_start(name: str) -> Diagnosis:
    return diagnose(recorded(name))


def served(name: str, exit_: EngineExit) -> Diagnosis:
    return diagnose(Ending(profile=QWEN, exit=exit_, lines=lines(name), after_s=900))


@pytest.mark.parametrize(("name", "kind", "cause", "remedy"), RECORDED)
def test_a_failed_start_is_explained(name: str, kind: str, cause: str, remedy: str) -> None:
    diagnosis = failed_start(name)
    assert diagnosis.kind == kind
    assert cause in diagnosis.cause
    assert remedy in diagnosis.remedy
    assert diagnosis.evidence
    assert len(diagnosis.evidence) <= 300


@pytest.mark.parametrize(
    ("name", "key", "after"),
    [
        ("fail-unknown-flag.log", "arguments", ()),
        ("fail-bad-spec-json.log", "arguments", ()),
        ("fail-bad-spec-method.log", "arguments", ()),
        ("fail-mml-over-model.log", "max_model_len", 8192),
        ("fail-port-in-use.log", "listen", "socket"),
        ("fail-kv-too-small-bytes2.log", "max_model_len", 4096),
        ("fail-kv-dtype-unknown.log", "kv_cache_dtype", "auto"),
        ("fail-batch-seqs.log", "max_batched_tokens", 128),
        ("fail-awq.log", "quantization", None),
        ("llama-bad_port_in_use.txt", "listen", "socket"),
    ],
)
def test_the_profile_of_a_failed_start_is_mended(name: str, key: str, after: object) -> None:
    fix = failed_start(name).fix
    assert fix is not None
    assert (fix.key, fix.after) == (key, after)


def test_every_failure_that_is_known_here_is_told_by_a_code_of_its_own() -> None:
    told = list(everything())
    assert [one.name for one in told if one.code in UNKNOWN] == []
    assert all(one.cause == one.cause.strip() and one.evidence and one.remedy for one in told)


def test_the_evidence_of_a_removed_flag_names_its_successor() -> None:
    assert "--spec-draft-n-max" in failed_start("llama-bad_removed_flag.txt").evidence


@pytest.mark.parametrize("name", CORE_DIED)
def test_a_dead_engine_core_is_seen_though_vllm_exits_with_0(name: str) -> None:
    diagnosis = served(name, EngineExit(code=0))
    assert diagnosis.kind == "core"
    assert "the engine core died" in diagnosis.cause


def test_a_killed_worker_is_named_with_its_signal() -> None:
    diagnosis = served("startup-033b.log", EngineExit(code=0))
    assert "worker VllmWorker-0 was ended by SIGKILL" in diagnosis.cause
    assert "exit code: -9" in diagnosis.evidence


def test_a_kill_for_memory_long_before_is_no_cause_of_this_death() -> None:
    """Some other program here may have been killed hours ago."""
    earlier = replace(OOM, code=0, signal=None, oom_kill_at="2026-11-29T11:00:00.000Z")
    diagnosis = served("startup-033b.log", earlier)
    assert diagnosis.kind == "core"
    assert "memory" not in diagnosis.cause


@pytest.mark.parametrize("name", CORE_DIED)
def test_a_kill_by_the_kernel_is_memory(name: str) -> None:
    diagnosis = served(name, replace(OOM, code=0, signal=None))
    assert diagnosis.kind == "memory"
    assert "want of memory" in diagnosis.cause


@pytest.mark.parametrize("name", ["shutdown-sigterm-idle.log", "shutdown-inflight.log"])
def test_a_stop_that_somebody_else_asked_for_is_no_crash(name: str) -> None:
    """Its drained requests fail with EngineDeadError all the same."""
    assert served(name, EngineExit(code=0)).kind == "stopped"


def test_an_error_of_a_request_does_not_explain_the_end() -> None:
    """An engine that has served wrote of wrong requests, which it survived."""
    text = [
        SERVER_ERROR + "Traceback (most recent call last):",
        SERVER_ERROR + "ValueError: no multimodal model",
        SERVER_ERROR + "1 validation error for Request",
        "  messages",
        SERVER_WARNING + "[shutdown] MPClient: engine core exited unexpectedly; starting cleanup",
    ]
    diagnosis = diagnose(Ending(profile=QWEN, exit=EngineExit(code=0), lines=text))
    assert diagnosis.kind == "core"
    assert "without a word" in diagnosis.cause


def test_an_error_of_the_core_itself_is_the_evidence() -> None:
    text = [
        CORE_ERROR + "EngineCore encountered a fatal error.",
        CORE_ERROR + "AssertionError: block table is torn",
        SERVER_ERROR
        + "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
    ]
    diagnosis = diagnose(Ending(profile=QWEN, exit=EngineExit(code=0), lines=text))
    assert diagnosis.evidence == "AssertionError: block table is torn"


OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 160.00 MiB. GPU 0 has a total "
    "capacity of 44.42 GiB of which 143.00 MiB is free."
)
HELD_BY_OTHERS = (
    "ValueError: Free memory on device cuda:0 (2.1/44.42 GiB) on startup is less than desired GPU "
    "memory utilization (0.92, 40.87 GiB). Decrease GPU memory utilization."
)
WARMING_UP = (
    "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests"
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (OUT_OF_MEMORY, "160.00 MiB more were asked for"),
        (HELD_BY_OTHERS, "2.1 of 44.42 GiB free, and 40.87"),
        ("ValueError: No available memory for the cache blocks. Try increasing", "no memory for"),
        (WARMING_UP, "warming up with 256"),
    ],
)
def test_a_gpu_that_is_full_is_memory(text: str, says: str) -> None:
    line = CORE_ERROR + text
    diagnosis = diagnose(
        Ending(profile=QWEN, exit=EngineExit(code=1), lines=[line], phase="load", after_s=80)
    )
    assert diagnosis.kind == "memory"
    assert says in diagnosis.cause


@pytest.mark.parametrize(("text", "kind", "says", "remedy"), LACKING)
def test_what_a_gpu_machine_lacks_is_named(text: str, kind: str, says: str, remedy: str) -> None:
    """In the words of vLLM's, PyTorch's and the hub's sources: no machine at hand shows them."""
    ending = Ending(
        profile=QWEN, exit=EngineExit(code=1), lines=[CORE_ERROR + text], phase="load", after_s=40
    )
    diagnosis = diagnose(ending)
    assert diagnosis.kind == kind
    assert says in diagnosis.cause
    assert remedy in diagnosis.remedy
    assert diagnosis.evidence in text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "kernel"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "the GPU itself failed"),
        ("OSError: [Errno 24] Too many open files", "no more files"),
    ],
)
def test_what_ends_an_engine_that_serves_is_named_too(text: str, says: str) -> None:
    ending = Ending(profile=QWEN, exit=EngineExit(code=0), lines=[CORE_ERROR + text])
    assert says in diagnose(ending).cause


def test_a_warning_of_what_might_happen_is_no_cause() -> None:
    """vLLM warns at each start of the files that it may open, and names the error to come."""
    text = next(line for line in lines("fail-kv-too-small-bytes2.log") if "Found ulimit" in line)
    ending = Ending(profile=QWEN, exit=EngineExit(signal="SIGSEGV"), lines=[text])
    assert "files" not in diagnose(ending).cause


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("llama-server: error while loading shared libraries: libgomp.so.1: x", "missing", "gomp"),
        ("0.00.1 E llama_context: V cache quantization requires flash_attn", "rejected", "flash"),
        ("unknown pre-tokenizer type: 'kimi-k3'", "model", "kimi-k3"),
        (
            "this GGUF file is version 20 but this software only supports up to 3",
            "model",
            "damaged",
        ),
        ("E srv load_model: failed to load draft model, '/m/draft.gguf'", "model", "/m/draft.gguf"),
    ],
)
def test_llama_cpps_other_refusals_are_named(text: str, kind: str, says: str) -> None:
    ending = Ending(profile=SMOL, exit=EngineExit(code=1), lines=[text], phase="load", after_s=1)
    assert diagnose(ending).kind == kind
    assert says in diagnose(ending).cause


REFUSED = "failed to create llama_context from model"


def test_a_fast_failure_without_an_allocators_message_is_a_refused_setting() -> None:
    ending = Ending(
        profile=SMOL, exit=EngineExit(code=1), lines=[REFUSED], phase="load", after_s=2.0
    )
    diagnosis = diagnose(ending)
    assert diagnosis.kind == "rejected"
    assert "kv_cache_dtype" in diagnosis.remedy


def test_a_slow_one_with_it_is_memory() -> None:
    text = ["allocating 29000.00 MiB on device 0: cudaMalloc failed: out of memory", REFUSED]
    ending = Ending(profile=SMOL, exit=EngineExit(code=1), lines=text, phase="load", after_s=29.9)
    diagnosis = diagnose(ending)
    assert diagnosis.kind == "memory"
    assert "GPU 0 ran out of memory: 29000.00 MiB" in diagnosis.cause


def test_unknown_words_before_anything_was_loaded_are_a_refused_setting() -> None:
    text = ["Traceback (most recent call last):", "RuntimeError: head size 33 is odd"]
    early = Ending(profile=QWEN, exit=EngineExit(code=1), lines=text, phase="starting", after_s=30)
    assert diagnose(early).kind == "rejected"
    assert diagnose(early).evidence == "RuntimeError: head size 33 is odd"
    assert diagnose(replace(early, phase="compile")).kind == "crashed"


@pytest.mark.parametrize(
    ("exit_", "kind"),
    [
        (OOM, "memory"),
        (replace(OOM, oom_kill_at="2026-11-29T11:00:00.000Z"), "killed"),
        (replace(OOM, oom_kill_at=None), "killed"),
        (EngineExit(signal="SIGKILL", oom_kill=False), "killed"),
        (EngineExit(signal="SIGSEGV"), "crashed"),
        (EngineExit(code=137), "killed"),
        (EngineExit(code=139), "crashed"),
        (EngineExit(code=143), "stopped"),
        (EngineExit(signal="SIGTERM"), "stopped"),
        (EngineExit(), "unknown"),
    ],
)
def test_a_signal_says_what_it_can(exit_: EngineExit, kind: str) -> None:
    assert diagnose(Ending(profile=SMOL, exit=exit_, lines=["last words"])).kind == kind


NO_FAULT = "its last line tells of no fault"


@pytest.mark.parametrize(
    ("line", "evidence"),
    [
        ("(APIServer pid=7) INFO 11-29 19:37:40 [loggers.py:248] Avg prompt", NO_FAULT),
        ('INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK', NO_FAULT),
        ("(APIServer pid=7) WARNING 11-29 19:37:40 [a.py:1] the disk is full", "the disk is full"),
    ],
)
def test_an_everyday_line_is_no_evidence_of_a_kill(line: str, evidence: str) -> None:
    killed = Ending(profile=QWEN, exit=EngineExit(signal="SIGKILL"), lines=[line, ""])
    assert diagnose(killed).evidence == evidence


def test_a_program_that_is_not_there_is_missing() -> None:
    gone = EngineExit(error="No such file or directory: vllm (ENOENT)", error_number=errno.ENOENT)
    diagnosis = diagnose(Ending(profile=QWEN, exit=gone, phase="starting"))
    assert diagnosis.kind == "missing"
    assert "Install the engine" in diagnosis.remedy


def test_a_missing_wheel_is_one_line_to_mend() -> None:
    text = [
        "embedded: xllamacpp is not installed in /venv (No module named 'xllamacpp'): pip install"
    ]
    ending = Ending(profile=SMOL, exit=EngineExit(code=69), lines=text, phase="starting")
    assert diagnose(ending).kind == "missing"
    assert diagnose(ending).remedy == "pip install 'a40console[embedded]'"


def test_the_exit_records_lines_serve_where_there_are_no_others() -> None:
    exit_ = EngineExit(code=2, last_lines=("vllm: error: unrecognized arguments: --nope",))
    assert "--nope" in diagnose(Ending(profile=QWEN, exit=exit_, phase="starting")).cause


@given(
    st.sampled_from([QWEN, SMOL]),
    st.lists(st.text(max_size=60), max_size=10),
    st.none() | st.integers(0, 255),
    st.none() | st.sampled_from(["SIGKILL", "SIGTERM", "SIGSEGV"]),
    st.sampled_from(["starting", "load", "ready"]),
)
def test_there_is_always_a_diagnosis(
    profile: Profile, text: list[str], code: int | None, signal: str | None, phase: str
) -> None:
    exit_ = EngineExit(code=code, signal=signal)
    diagnosis = diagnose(Ending(profile=profile, exit=exit_, lines=text, phase=phase))
    assert diagnosis.cause
    assert diagnosis.evidence
