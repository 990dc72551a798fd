"""A fix is offered where it is certain, and only there; what is near is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from a40console.engines.diagnosis import Diagnosis, Ending, StartFailureKind, diagnose
from a40console.engines.readiness import PhaseTracker
from a40console.engines.remedies import fix_for
from a40console.engines.run_record import EngineExit
from a40console.engines.silence import silent_words
from a40console.model.profile import Profile, Speculation
from a40console.profiles.loader import load_profiles

SHIPPED = load_profiles(Path("/nonexistent")).profiles
QWEN, SMOL = SHIPPED["qwen3-coder-30b"], SHIPPED["smollm2-135m"]
TWO_GPUS = replace(QWEN, arguments=("--tensor-parallel-size", "2"))
SERVER = replace(SMOL, executable="/opt/llama-server", file=None)
CORE = "(EngineCore pid=2) ERROR 11-29 13:00:00 [core.py:1586] "


def failed(text: str, profile: Profile = QWEN, phase: str = "starting") -> Diagnosis:
    lines = [CORE + line if profile.speaks_vllm else line for line in text.splitlines()]
    exit_ = EngineExit(code=1)
    return diagnose(Ending(profile=profile, exit=exit_, lines=lines, phase=phase, after_s=60))


OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB."
SAMPLER = "RuntimeError: CUDA out of memory occurred when warming up sampler with 64 dummy requests"
TOKENIZER = (
    "ImportError: cannot import name 'bytes_to_unicode' from "
    "'transformers.convert_slow_tokenizer' (/opt/venv/lib/convert_slow_tokenizer.py)"
)
SHARED = (
    "RuntimeError: DataLoader worker is killed by signal: Bus error. It is possible that workers "
    "are out of shared memory; unable to allocate 4 MB of shared memory"
)
WATCHDOG = "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALL)"


@pytest.mark.parametrize(
    ("text", "phase", "code", "kind", "says"),
    [
        (OUT_OF_MEMORY, "load", "cuda-oom-load", "out_of_memory", "as the weights were loaded"),
        (OUT_OF_MEMORY, "compile", "cuda-oom-profile", "out_of_memory", "the first pass"),
        (OUT_OF_MEMORY, "capture", "cuda-oom-capture", "out_of_memory", "graphs were captured"),
        (OUT_OF_MEMORY, "ready", "cuda-oom", "out_of_memory", "1.50 GiB more"),
        (SAMPLER, "capture", "cuda-oom-sampler", "out_of_memory", "64 requests"),
        (TOKENIZER, "starting", "tokenizer-import", "other", "needs bytes_to_unicode of"),
        (SHARED, "ready", "shared-memory-full", "other", "/dev/shm"),
        (WATCHDOG, "ready", "nccl-timeout", "other", "another GPU"),
        ("TimeoutError: RPC call to execute_model timed out.", "ready", "workers-silent", "other",
         "did not answer execute_model"),
        ("Failed to initialize NVML: Driver/library version mismatch", "starting",
         "driver-mismatch", "other", "two versions"),
        ("OSError: [Errno 28] No space left on device", "download", "disk-full", "other", "full"),
        ("OSError: AF_UNIX path too long", "starting", "socket-unusable", "other", "listen"),
        ("head size 33 is odd", "starting", "settings-refused", "rejected", "failed fast"),
        ("ImportError: cannot import name 'AsyncLLM' from 'vllm'", "starting",
         "environment-incomplete", "other", "incomplete"),
    ],
)  # fmt: skip
def test_what_ends_a_start_has_its_code_and_kind(
    text: str, phase: str, code: str, kind: StartFailureKind, says: str
) -> None:
    found = failed(text, phase=phase)
    assert (found.code, found.start_failure, found.fix) == (code, kind, None)
    assert says in found.cause
    assert found.evidence in text


def test_the_phase_is_that_of_the_last_lines_where_nobody_had_read_them_yet() -> None:
    """A start that fails fast ends between two looks at its output."""
    loading = "(Worker pid=9) INFO 11-29 13:00:00 [gpu_model_runner.py:68] Starting to load model x"
    text = [loading, CORE + OUT_OF_MEMORY]
    ending = Ending(profile=QWEN, exit=EngineExit(code=1), lines=text, phase="starting")
    assert diagnose(ending).code == "cuda-oom-load"
    assert diagnose(replace(ending, phase="capture")).code == "cuda-oom-capture"
    refused = [loading, CORE + "RuntimeError: head size 33 is odd"]
    assert diagnose(replace(ending, lines=refused)).start_failure == "other"


def test_a_kill_for_memory_is_out_of_memory() -> None:
    killed = EngineExit(
        signal="SIGKILL",
        oom_kill=True,
        oom_kill_at="2026-11-29T14:07:28.000Z",
        ended_at="2026-11-29T14:07:30.000Z",
    )
    found = diagnose(Ending(profile=QWEN, exit=killed, lines=["x"], phase="load"))
    assert (found.code, found.start_failure) == ("container-out-of-memory", "out_of_memory")


CHOSEN = "KeyError: 'invalid tool call parser: {} (chose from {{ glm45,hermes,qwen3_coder }})'"
REASONING = "KeyError: 'invalid reasoning parser: deepseekr1 (chose from { deepseek_r1,qwen3 })'"


def test_a_parser_that_is_only_spelt_otherwise_is_put_right() -> None:
    found = failed(CHOSEN.format("qwen3-coder"), replace(QWEN, tool_call_parser="qwen3-coder"))
    assert found.fix is not None
    assert (found.fix.key, found.fix.after) == ("tool_call_parser", "qwen3_coder")
    found = failed(REASONING, replace(QWEN, reasoning_parser="deepseekr1"))
    assert found.fix is not None
    assert (found.fix.key, found.fix.after) == ("reasoning_parser", "deepseek_r1")


def test_a_parser_that_is_merely_near_is_named_and_not_set() -> None:
    found = failed(CHOSEN.format("qwen3_code"), replace(QWEN, tool_call_parser="qwen3_code"))
    assert "The nearest that it has: qwen3_coder." in found.remedy
    assert found.fix is None


UNKNOWN = "vllm: error: unrecognized arguments: {}"


@pytest.mark.parametrize(
    ("given", "refused", "left"),
    [
        (("--a", "--swap-space", "4", "--b"), "--swap-space 4", ("--a", "--b")),
        (
            ("--Enable_MFU-metrics", "--disable-log-requests"),
            "--Enable_MFU-metrics --disable-log-requests",
            ("--enable-mfu-metrics",),
        ),
    ],
)
def test_flags_that_change_nothing_any_more_are_taken_out(
    given: tuple[str, ...], refused: str, left: tuple[str, ...]
) -> None:
    found = failed(UNKNOWN.format(refused), replace(QWEN, arguments=given))
    assert found.fix is not None
    assert (found.fix.key, found.fix.before, found.fix.after) == ("arguments", given, left)


@pytest.mark.parametrize(
    ("given", "refused", "nearest"),
    [
        (("--rope-scaling", "{}"), "--rope-scaling {}", ""),
        (("--max-num-seq", "4"), "--max-num-seq 4", "The nearest that it has: --max-num-seqs."),
        (("--swap-space", "4", "--nope"), "--swap-space 4 --nope", ""),
        ((), "--swap-space 4", ""),  # it is not the profile that gives it
    ],
)
def test_a_flag_that_meant_something_is_left_to_the_operator(
    given: tuple[str, ...], refused: str, nearest: str
) -> None:
    found = failed(UNKNOWN.format(refused), replace(QWEN, arguments=given))
    assert found.code == "unknown-flag"
    assert found.fix is None
    assert nearest in found.remedy


def test_a_flag_whose_one_successor_the_engine_names_is_renamed() -> None:
    profile = replace(SERVER, arguments=("--draft-max", "16"))
    said = 'error while handling argument "--draft-max": the argument has been removed. use {}'
    found = failed(said.format("--spec-draft-n-max"), profile)
    assert found.fix is not None
    assert found.fix.after == ("--spec-draft-n-max", "16")
    assert failed(said.format("--spec-a or --spec-b"), profile).fix is None


SHORT = (
    "ValueError: To serve at least one request with the model's max seq len (262144), (9.00 GiB KV "
    "cache is needed, which is larger than the available KV cache memory (4.00 GiB). Based on the "
    "available memory, the estimated maximum model length is {}."
)


def test_the_context_that_fits_is_set_where_it_was_asked_for() -> None:
    found = failed(SHORT.format(116480), phase="compile")
    assert found.fix is not None
    assert (found.fix.key, found.fix.before, found.fix.after) == ("max_model_len", 262144, 116480)
    own = replace(QWEN, arguments=("--max-model-len=262144", "--enable-mfu-metrics"))
    found = failed(SHORT.format(116480), own, phase="compile")
    assert found.fix is not None
    assert found.fix.after == ("--max-model-len=116480", "--enable-mfu-metrics")


def test_a_context_that_serves_nobody_is_not_offered() -> None:
    found = failed(SHORT.format(160), phase="compile")
    assert (found.code, found.fix) == ("kv-cache-too-small", None)


def test_speculation_of_ones_own_arguments_is_taken_out_of_them() -> None:
    own = replace(QWEN, speculation=None, arguments=("-sc", "{method:ngram}", "--a"))
    fix = fix_for("speculation-json", {}, own)
    assert fix is not None
    assert (fix.key, fix.after) == ("arguments", ("--a",))
    off = replace(QWEN, speculation=Speculation(enabled=False, tokens=3))
    assert fix_for("speculation-json", {}, off) is None


def test_speculation_that_is_merely_ready_is_taken_out_too() -> None:
    ready = replace(QWEN, speculation=Speculation(start="off", tokens=3))
    fix = fix_for("speculation-method", {}, ready)
    assert fix is not None
    assert (fix.key, fix.before, fix.after) == ("speculation.start", "off", None)
    twice = Speculation(start="on", enabled=True, tokens=3)
    locked = Speculation(enabled=True, tokens=3, locked="measured so")
    for kept in (twice, locked):
        assert fix_for("speculation-method", {}, replace(QWEN, speculation=kept)) is None


def test_a_hang_in_nccl_among_several_gpus_is_mended_without_peer_to_peer() -> None:
    tracker = PhaseTracker("vllm", started_s=0.0, stall_after_s=60)
    line = "(Worker_TP0 pid=9) INFO 11-29 13:00:00 [pynccl.py:111] vLLM is using nccl==2.27.5"
    tracker.feed(line, 5)
    tracker.feed("(APIServer pid=1) Waiting for 1 core engine proc(s) to start.", 100)
    stall = tracker.stall(200)
    assert stall is not None
    assert (stall.code, stall.evidence) == ("nccl-stuck", line)
    fix = fix_for(stall.code, {}, TWO_GPUS)
    assert fix is not None
    assert (fix.key, fix.before, fix.after) == ("environment.NCCL_P2P_DISABLE", None, "1")
    tried = replace(TWO_GPUS, environment={"NCCL_P2P_DISABLE": "1"})
    assert fix_for(stall.code, {}, tried) is None
    assert fix_for(stall.code, {}, QWEN) is None


def test_a_wait_for_the_shared_memory_broadcast_has_its_code() -> None:
    tracker = PhaseTracker("vllm", started_s=0.0, stall_after_s=60)
    words = "No available shared memory broadcast block found in 60 seconds."
    tracker.feed(f"(EngineCore pid=2) INFO 11-29 13:00:00 [shm_broadcast.py:466] {words}", 90)
    stall = tracker.stall(100)
    assert stall is not None
    assert (stall.code, words in stall.evidence) == ("workers-silent", True)


def test_a_wait_in_vain_counts_until_the_engine_works_again() -> None:
    waits = "(EngineCore pid=2) INFO 11-29 13:00:00 [shm_broadcast.py:466] No available shared "
    waits += "memory broadcast block found in 60 seconds."
    works = "(APIServer pid=1) INFO 11-29 13:00:10 [loggers.py:335] Engine 000: Avg prompt "
    works += "throughput: 0.0 tokens/s, Avg generation throughput: {} tokens/s"
    assert silent_words([waits, works.format("0.0")]).startswith("No available shared memory")
    assert silent_words([waits, works.format("31.4")]) == ""
    assert silent_words(["nothing of the kind"]) == ""


@pytest.mark.parametrize(
    ("code", "profile", "key", "after"),
    [
        ("async-speculation", replace(QWEN, arguments=("--async-scheduling",)), "arguments", ()),
        (
            "kv-dtype-needs-flash-attention",
            SERVER,
            "arguments",
            ("--flash-attn", "on"),
        ),
        ("not-quantized-so", replace(QWEN, quantization="awq"), "quantization", None),
    ],
)
def test_other_certain_fixes(code: str, profile: Profile, key: str, after: object) -> None:
    fix = fix_for(code, {}, profile)
    assert fix is not None
    assert (fix.key, fix.after) == (key, after)


@pytest.mark.parametrize("code", ["cuda-oom", "gpu-memory-taken", "model-gated", "remote-code"])
def test_what_only_a_person_can_decide_has_no_fix(code: str) -> None:
    assert fix_for(code, {}, QWEN) is None
