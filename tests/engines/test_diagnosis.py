"""Every recorded failure gets its cause, a line that shows it, and something to do."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines.diagnosis import Diagnosis, Ending, diagnose
from a40console.engines.run_record import EngineExit
from a40console.model.profile import Profile
from a40console.profiles.loader import load_profiles

DATA = Path(__file__).parents[1] / "data" / "engine_logs"
SHIPPED = load_profiles(Path("/nonexistent")).profiles
QWEN, SMOL = SHIPPED["qwen3-coder-30b"], SHIPPED["smollm2-135m"]


CORE_ERROR = "(EngineCore pid=2) ERROR 11-29 13:00:00 [core.py:1586] "
SERVER_ERROR = "(APIServer pid=1) ERROR 11-29 13:00:00 [serving.py:929] "
SERVER_WARNING = "(APIServer pid=1) WARNING 11-29 13:00:01 [core_client.py:817] "


def lines(name: str) -> list[str]:
    return (DATA / name).read_text(errors="replace").splitlines()[-400:]


def failed_start(name: str, phase: str = "starting") -> Diagnosis:
    profile = SMOL if name.startswith("llama-") else QWEN
    exit_ = EngineExit(code=1)
    return diagnose(
        Ending(profile=profile, exit=exit_, lines=lines(name), phase=phase, after_s=1.0)
    )


def served(name: str, exit_: EngineExit) -> Diagnosis:
    return diagnose(Ending(profile=QWEN, exit=exit_, lines=lines(name), after_s=900))


@pytest.mark.parametrize(
    ("name", "kind", "cause", "remedy"),
    [
        ("fail-unknown-flag.log", "rejected", "does not know --disable-log-requests", "arguments"),
        ("fail-bad-int.log", "rejected", "the value of --max-num-seqs", "profile"),
        ("fail-bad-spec-json.log", "rejected", "is no JSON: {method:ngram}", "profile"),
        ("fail-bad-spec-method.log", "rejected", "speculation of method nope", "profile"),
        ("fail-spec-unknown-key.log", "rejected", "setting disable_by_batch", "Take it"),
        ("fail-spec-missing-tokens.log", "rejected", "num_speculative_tokens must", "off"),
        ("fail-bad-tool-parser.log", "rejected", "no tool call parser nope", "lists"),
        ("fail-mml-over-model.log", "rejected", "made for 8192 tokens", "max_model_len = 8192"),
        ("fail-port-in-use.log", "address", "taken by another program", "listen = 'socket'"),
        ("fail-model-missing-path.log", "model", "no model folder /nope/model", "model in the"),
        ("fail-model-missing-hub.log", "model", "hub was not reached", "HF_HUB_OFFLINE"),
        ("fail-gguf-direct.log", "model", "does not read the GGUF file", "llamacpp"),
        ("fail-kv-too-small-bytes2.log", "memory", "has 0.09 GiB", "max_model_len = 4096"),
        ("fail-chat-template.log", "rejected", "no chat template nope.jinja", "full path"),
        ("fail-kv-dtype-unknown.log", "rejected", "no KV cache of type", "profile"),
        ("fail-tp-heads.log", "rejected", "9 attention heads cannot be shared", "divides them"),
        ("fail-batch-small.log", "rejected", "256 tokens is shorter", "max_batched_tokens = 4096"),
        ("fail-batch-seqs.log", "rejected", "64 tokens has no room for 128", "max_running"),
        ("fail-awq.log", "rejected", "not quantised as awq", "Remove quantization"),
        ("fail-noconfig.log", "model", "m_noconfig is no model", "config.json"),
        ("fail-badtok.log", "model", "JSON file of the model is damaged", "again"),
        ("fail-noweights.log", "model", "no weights in m_noweights", "Fetch them"),
        ("fail-trunc.log", "model", "damaged or incomplete", "fetched again"),
        ("fail-gated.log", "model", "accepted its terms", "HF_TOKEN"),
        ("fail-private.log", "model", "no such model", "HF_TOKEN"),
        ("fail-badtoken.log", "model", "does not know the token", "valid HF_TOKEN"),
        ("fail-forbidden.log", "model", "refuses the model to this token", "the right"),
        ("llama-bad_flag.txt", "rejected", "does not know --no-such-flag", "arguments"),
        ("llama-bad_value.txt", "rejected", "refused -np", "profile"),
        ("llama-bad_removed_flag.txt", "rejected", "refused --draft-max", "remove"),
        ("llama-bad_spec_type.txt", "rejected", "refused --spec-type", "remove"),
        ("llama-bad_lora_missing.txt", "rejected", "LoRA adapter /nope.gguf", "arguments"),
        ("llama-bad_missing_file.txt", "model", "/nope/x.gguf cannot be opened: No such", "fetch"),
        ("llama-bad_not_gguf.txt", "model", "no GGUF file", "GGUF"),
        ("llama-bad_truncated_gguf.txt", "model", "damaged or incomplete", "again"),
        ("llama-bad_port_in_use.txt", "address", "127.0.0.1, port 18082", "listen = 'socket'"),
        ("llama-bad_oom_ctx_ulimit.txt", "memory", "175781.25 MB", "max_model_len"),
        ("llama-bad_oom_weights_ulimit.txt", "memory", "41.96 MB", "smaller model"),
    ],
)
def test_a_failed_start_is_explained(name: str, kind: str, cause: str, remedy: str) -> None:
    diagnosis = failed_start(name)
    assert diagnosis.kind == kind
    assert cause in diagnosis.cause
    assert remedy in diagnosis.remedy
    assert diagnosis.evidence
    assert len(diagnosis.evidence) <= 300


def test_the_evidence_of_a_removed_flag_names_its_successor() -> None:
    assert "--spec-draft-n-max" in failed_start("llama-bad_removed_flag.txt").evidence


CORE = ["enginecore-killed.log", "startup-033b.log", "killed-033overlay.log"]


@pytest.mark.parametrize("name", CORE)
def test_a_dead_engine_core_is_seen_though_vllm_exits_with_0(name: str) -> None:
    diagnosis = served(name, EngineExit(code=0))
    assert diagnosis.kind == "core"
    assert "the engine core died" in diagnosis.cause


def test_a_killed_worker_is_named_with_its_signal() -> None:
    diagnosis = served("startup-033b.log", EngineExit(code=0))
    assert "worker VllmWorker-0 was ended by SIGKILL" in diagnosis.cause
    assert "exit code: -9" in diagnosis.evidence


OOM = EngineExit(
    signal="SIGKILL",
    oom_kill=True,
    oom_kill_at="2026-11-29T14:07:28.000Z",
    ended_at="2026-11-29T14:07:30.000Z",
)


def test_a_kill_for_memory_long_before_is_no_cause_of_this_death() -> None:
    """Some other program here may have been killed hours ago."""
    earlier = replace(OOM, code=0, signal=None, oom_kill_at="2026-11-29T11:00:00.000Z")
    diagnosis = served("startup-033b.log", earlier)
    assert diagnosis.kind == "core"
    assert "memory" not in diagnosis.cause


@pytest.mark.parametrize("name", CORE)
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


DRIVER = (
    "RuntimeError: The NVIDIA driver on your system is too old (found version 12040). Please update"
)
INSUFFICIENT = "CUDA driver version is insufficient for CUDA runtime version"
CAPABILITY = (
    "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum "
    "capability: 89. Current capability: 86."
)
NO_FP8 = (
    'ValueError("type fp8e4nv not supported in this architecture. The supported fp8 dtypes are '
    "('fp8e4b15', 'fp8e5')\")"
)
NO_KERNEL = (
    "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig(head_size="
    "80, kv_cache_dtype=fp8). Reasons: {FLASH_ATTN: [kv_cache_dtype not supported]}."
)
LIBRARY = "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory"
WORLD = "RuntimeError: World size (2) is larger than the number of available GPUs (1) in this node."
NCCL = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:94, unhandled cuda"


@pytest.mark.parametrize(
    ("text", "kind", "says", "remedy"),
    [
        (DRIVER, "missing", "driver is too old for this vLLM's CUDA", "newer driver"),
        (INSUFFICIENT, "missing", "driver", "newer driver"),
        (CAPABILITY, "rejected", "capability 89, and this one has 86", "AWQ"),
        (NO_FP8, "rejected", "does not compute in FP8", "kv_cache_dtype = 'auto'"),
        (NO_KERNEL, "rejected", "no attention kernel", "kv_cache_dtype = 'auto'"),
        (LIBRARY, "missing", "libcudart.so.13 is missing", "anew"),
        ("ImportError: _C.abi3.so: undefined symbol: _ZN3c10", "missing", "do not fit", "anew"),
        (WORLD, "rejected", "2 GPUs were asked for, and there are 1", "tensor-parallel"),
        (NCCL, "crashed", "NCCL", "NCCL_DEBUG=INFO"),
        ("RuntimeError: No CUDA GPUs are available", "missing", "no GPU", "nvidia-smi"),
        ("no kernel image is available for execution on the device", "missing", "kind", "GPU"),
        ("PermissionError: [Errno 13] Permission denied: '/models/x'", "disk", "/models/x", "user"),
        ("huggingface: 429 Too Many Requests: you have reached", "model", "later", "HF_TOKEN"),
    ],
)
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
