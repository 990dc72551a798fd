"""A fix is offered where it is certain, and only there; what is near is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from a40console.engines.diagnosis import Diagnosis, Ending, StartFailureKind, diagnose
from a40console.engines.model_shape import longest_context
from a40console.engines.readiness import PhaseTracker
from a40console.engines.remedies import fix_for
from a40console.engines.run_record import EngineExit
from a40console.engines.silence import silent_words
from a40console.model.profile import Profile, Speculation
from a40console.profiles.loader import load_profiles
from tests.engines.failures import (
    BROADCAST_WAITS,
    CORE_ERROR,
    NCCL_WAITS,
    NEXT,
    OOM,
    OUT_OF_MEMORY,
    QWEN,
    SMOL,
    WORDED,
)

SHIPPED_QWEN = load_profiles(Path("/nonexistent")).profiles["qwen3-coder-30b"]
TWO_GPUS = replace(QWEN, arguments=("--tensor-parallel-size", "2"))
SERVER = replace(SMOL, executable="/opt/llama-server", file=None)


def failed(text: str, profile: Profile = QWEN, phase: str = "starting") -> Diagnosis:
    lines = [CORE_ERROR + line if profile.speaks_vllm else line for line in text.splitlines()]
    exit_ = EngineExit(code=1)
    return diagnose(Ending(profile=profile, exit=exit_, lines=lines, phase=phase, after_s=60))


@pytest.mark.parametrize(("text", "phase", "code", "kind", "says"), WORDED)
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
    text = [loading, CORE_ERROR + OUT_OF_MEMORY]
    ending = Ending(profile=QWEN, exit=EngineExit(code=1), lines=text, phase="starting")
    assert diagnose(ending).code == "cuda-oom-load"
    assert diagnose(replace(ending, phase="capture")).code == "cuda-oom-capture"
    refused = [loading, CORE_ERROR + "RuntimeError: head size 33 is odd"]
    assert diagnose(replace(ending, lines=refused)).start_failure == "other"


def test_a_kill_for_memory_is_out_of_memory() -> None:
    found = diagnose(Ending(profile=QWEN, exit=OOM, lines=["x"], phase="load"))
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
    assert "--enable-log-requests" not in found.remedy, "the opposite of what was asked for"


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


@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        (
            {"gpu_memory_utilization": 0.9, "kv_cache_dtype": None},
            " Or raise gpu_memory_utilization or lower max_running or set kv_cache_dtype = 'fp8'.",
        ),
        ({"kv_cache_dtype": "fp8", "gpu_memory_utilization": None}, " Or lower max_running."),
        ({"kv_cache_dtype": "fp8_e4m3", "max_running": 1, "gpu_memory_utilization": 0.92}, ""),
        (
            {
                "kv_cache_dtype": None,
                "max_running": None,
                "gpu_memory_utilization": None,
                "arguments": (
                    *("--kv_cache_dtype=fp8", "--max-num-seqs", "1"),
                    *("--gpu-memory-utilization", "0.85"),
                ),
            },
            " Or raise gpu_memory_utilization.",
        ),
    ],
)
def test_what_is_set_already_is_not_advised(changed: dict[str, Any], advice: str) -> None:
    profile = replace(QWEN, **changed)
    for text, first in (
        (SHORT.format(116480), "Set max_model_len = 116480, which vLLM estimates to fit."),
        (SHORT.partition(" Based on")[0], "Lower max_model_len."),
    ):
        found = failed(text, profile, phase="compile")
        assert (found.code, found.remedy) == ("kv-cache-too-small", first + advice)


def test_no_context_beyond_the_model_is_advised_or_set() -> None:
    lines = [CORE_ERROR + SHORT.format(450_112)]
    asked = replace(QWEN, max_model_len=600_000)
    ending = Ending(profile=asked, exit=EngineExit(code=1), lines=lines, phase="compile")
    found = diagnose(replace(ending, longest_context=262_144))
    assert found.fix is not None
    assert (found.fix.before, found.fix.after) == (600_000, 262_144)
    assert found.remedy.startswith("Set max_model_len = 262144,")
    within = diagnose(replace(ending, longest_context=1_048_576))
    assert within.fix is not None
    assert within.fix.after == 450_112


def test_how_much_a_model_was_made_for_is_read_where_it_lies(tmp_path: Path) -> None:
    config = {
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "hidden_size": 64,
        "max_position_embeddings": 8192,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    here = Profile(name="p", kind="vllm", model=str(tmp_path))
    assert longest_context(here, {}) == 8192
    assert longest_context(replace(here, model=str(tmp_path / "gone")), {}) == 0
    assert longest_context(replace(SHIPPED_QWEN, model="nobody/has-this"), {}) == 262_144


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
    tracker.feed(NCCL_WAITS[0], 5)
    tracker.feed(NCCL_WAITS[1], 100)
    stall = tracker.stall(200)
    assert stall is not None
    assert (stall.code, stall.evidence) == ("nccl-stuck", NCCL_WAITS[0])
    fix = fix_for(stall.code, {}, TWO_GPUS)
    assert fix is not None
    assert (fix.key, fix.before, fix.after) == ("environment.NCCL_P2P_DISABLE", None, "1")
    tried = replace(TWO_GPUS, environment={"NCCL_P2P_DISABLE": "1"})
    assert fix_for(stall.code, {}, tried) is None
    assert fix_for(stall.code, {}, QWEN) is None


@pytest.mark.parametrize(
    ("profile", "offered"),
    [
        (replace(NEXT, environment={}), True),  # tensor_parallel = 2
        (NEXT, False),  # it is set there
        (replace(NEXT, environment={}, arguments=("-tp", "1")), False),
        (replace(QWEN, tensor_parallel=1), False),
        (replace(QWEN, arguments=("--pipeline_parallel_size=2",)), True),
    ],
)
def test_whether_gpus_are_several_is_told_by_setting_and_arguments(
    profile: Profile, *, offered: bool
) -> None:
    """What stands among the arguments comes last on the command line, and counts."""
    fix = fix_for("nccl-stuck", {}, profile)
    assert (fix is not None and fix.key == "environment.NCCL_P2P_DISABLE") is offered


def test_a_wait_for_the_shared_memory_broadcast_has_its_code() -> None:
    tracker = PhaseTracker("vllm", started_s=0.0, stall_after_s=60)
    tracker.feed(BROADCAST_WAITS[0], 90)
    stall = tracker.stall(100)
    assert stall is not None
    assert (stall.code, stall.evidence) == ("workers-silent", BROADCAST_WAITS[0])


def test_a_wait_in_vain_counts_until_the_engine_works_again() -> None:
    [waits] = BROADCAST_WAITS
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
