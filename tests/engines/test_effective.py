"""What was asked against what real engines say that they run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from a40console.engines import vllm
from a40console.engines.effective import differences, with_cache_config
from a40console.model.figures import Missing
from a40console.model.profile import Profile
from a40console.model.snapshot import Difference
from a40console.profiles.loader import load_profiles

DATA = Path(__file__).parents[1] / "data" / "engine_logs"
SHIPPED = load_profiles(Path("/nonexistent")).profiles
CPU = SHIPPED["smollm2-135m-vllm-cpu"]
QWEN = SHIPPED["qwen3-coder-30b"]
CONFIG = (
    "(EngineCore pid=9) INFO 11-29 13:00:00 [core.py:133] "
    "Initializing a V1 LLM engine (v0.32.0) with config: model='m', speculative_config=None, "
    "max_seq_len=262144, quantization=awq_marlin, "
    "enforce_eager=False, kv_cache_dtype=fp8_e4m3, device_config=cuda, enable_prefix_caching=True, "
    "enable_chunked_prefill=True"
)


def lines(name: str) -> list[str]:
    return (DATA / name).read_text(errors="replace").splitlines()


def on(profile: Profile) -> Profile:
    assert profile.speculation is not None
    return replace(profile, speculation=replace(profile.speculation, enabled=True))


def found(profile: Profile, text: list[str]) -> dict[str, Difference]:
    result = differences(profile, text)
    assert not isinstance(result, Missing)
    return {difference.setting: difference for difference in result}


@pytest.mark.parametrize("name", ["startup-ngram.log", "serve-0.27.1.log", "startup-033rust.log"])
def test_what_speculation_turns_off_is_listed_with_vllms_own_words(name: str) -> None:
    told = found(on(replace(CPU, async_scheduling=True, max_batched_tokens=16384)), lines(name))
    tokens, scheduling = told["max_num_batched_tokens"], told["async_scheduling"]
    assert (tokens.asked, tokens.effective) == (16384, 2048)
    assert tokens.evidence.startswith("max_num_scheduled_tokens is set to 2048")
    assert (scheduling.asked, scheduling.effective) == (True, False)
    assert "Async scheduling" in scheduling.evidence


def test_a_change_that_vllm_tells_of_is_listed_though_nothing_was_asked() -> None:
    told = found(on(CPU), lines("serve-0.27.1.log"))
    assert set(told) == {"max_num_batched_tokens", "async_scheduling"}
    assert told["async_scheduling"].asked is None


SPECULATING = ["startup-ngram.log", "serve-0.27.1.log", "startup-033rust.log"]


@pytest.mark.parametrize("name", SPECULATING)
@pytest.mark.parametrize("profile", [CPU, QWEN, SHIPPED["sim-a40-qwen3-coder-30b"]])
def test_asked_is_what_the_profile_and_its_command_line_say(profile: Profile, name: str) -> None:
    asked = on(profile)
    argv = vllm.arguments(asked, model=asked.model, address=())
    for setting, told in found(asked, lines(name)).items():
        flag = f"--{setting.replace('_', '-')}"
        on_the_line = {flag, f"--no-{flag[2:]}"} & set(argv)
        if setting == "async_scheduling":  # left out by us where vLLM would refuse to start
            assert (told.asked, bool(on_the_line)) == (profile.async_scheduling, False)
        elif setting != "num_speculative_tokens":
            assert (told.asked is not None) == bool(on_the_line), setting


def test_the_profiles_own_arguments_ask_too() -> None:
    own = ("--max-num-batched-tokens=16384", "--async-scheduling", "--max-model-len", "auto")
    told = found(on(replace(CPU, max_model_len=None, arguments=own)), lines("startup-ngram.log"))
    assert told["max_num_batched_tokens"].asked == 16384
    assert told["async_scheduling"].asked is True
    assert "max_model_len" not in told, "to choose was what was asked"
    off = replace(CPU, arguments=("--no-async-scheduling",))
    assert "async_scheduling" not in found(on(off), lines("startup-ngram.log"))


def test_an_engine_that_runs_as_asked_has_no_difference() -> None:
    eager_off = replace(CPU, enforce_eager=False, tool_call_parser=None)
    assert differences(eager_off, lines("startup-quiet-compiled.log")) == ()


def test_every_setting_that_runs_otherwise_is_listed() -> None:
    told = found(replace(QWEN, enforce_eager=True), lines("startup-quiet-compiled.log"))
    assert {
        setting: (difference.asked, difference.effective) for setting, difference in told.items()
    } == {
        "max_num_seqs": (64, 8),
        "max_model_len": (262144, 4096),
        "kv_cache_dtype": ("fp8", "auto"),
        "enforce_eager": (True, False),
        "async_scheduling": (True, False),
    }


def test_speculation_started_by_the_profiles_own_arguments_is_seen() -> None:
    told = found(CPU, lines("startup-ngram.log"))
    assert (told["speculation"].asked, told["speculation"].effective) == ("off", "ngram")


def test_another_depth_is_seen() -> None:
    told = found(on(QWEN), lines("startup-ngram.log"))
    depth = told["num_speculative_tokens"]
    assert (depth.asked, depth.effective) == (24, 5)


def test_fp8_has_more_than_one_name_and_a_quantization_kernel_is_told() -> None:
    told = found(replace(QWEN, quantization="awq"), [CONFIG])
    assert set(told) == {"quantization"}
    assert told["quantization"].effective == "awq_marlin"


NO_FULL_GRAPHS = (
    "WARNING CUDAGraphMode.FULL is not supported with spec-decode for attention backend "
    "TritonMLABackend; setting cudagraph_mode=PIECEWISE"
)
NO_PREFIX_CACHE = "WARNING Disabling prefix caching: model has non-causal attention layers."
FITTED = (
    "INFO Auto-fit max_model_len: reduced from 262144 to 180000 to fit in available KV cache memory"
)


@pytest.mark.parametrize(
    ("line", "setting", "effective"),
    [
        (NO_FULL_GRAPHS, "cudagraph_mode", "PIECEWISE"),
        (NO_PREFIX_CACHE, "enable_prefix_caching", False),
        (FITTED, "max_model_len", 180000),
    ],
)
def test_what_a_gpu_start_says_in_passing(line: str, setting: str, effective: Any) -> None:
    assert found(QWEN, [CONFIG, line])[setting].effective == effective


def test_a_gpu_engine_without_cuda_graphs_says_so() -> None:
    config = CONFIG + ", compilation_config={'cudagraph_mode': <CUDAGraphMode.NONE: 0>}"
    assert found(QWEN, [config])["cudagraph_mode"].effective == "NONE"
    eager = config.replace("enforce_eager=False", "enforce_eager=True")
    assert "cudagraph_mode" not in found(replace(QWEN, enforce_eager=True), [eager])


def test_the_metrics_labels_have_the_last_word() -> None:
    labels: dict[str, str | int | float | bool] = {
        "enable_prefix_caching": False,
        "cache_dtype": "auto",
        "gpu_memory_utilization": 0.92,
    }
    asked = replace(QWEN, gpu_memory_utilization=0.9)
    listed = with_cache_config(differences(asked, [CONFIG]), asked, labels)
    assert not isinstance(listed, Missing)
    told = {difference.setting: difference for difference in listed}
    assert told["enable_prefix_caching"].effective is False
    assert told["kv_cache_dtype"].effective == "auto"
    assert told["gpu_memory_utilization"].effective == 0.92
    assert told["kv_cache_dtype"].evidence == "cache_config_info: cache_dtype=auto"


def test_llama_servers_slots_and_threads() -> None:
    asked = replace(SHIPPED["smollm2-135m"], max_model_len=4096, max_running=2, threads=4)
    told = found(asked, lines("llama-log_startup_np4.txt"))
    assert {setting: difference.effective for setting, difference in told.items()} == {
        "max_model_len": 2048,
        "max_running": 4,
        "threads": 2,
    }


@pytest.mark.parametrize("profile", [CPU, SHIPPED["smollm2-135m"]])
def test_a_log_without_the_start_is_no_proof_that_all_is_as_asked(profile: Profile) -> None:
    assert isinstance(differences(profile, ["INFO: hello"]), Missing)
