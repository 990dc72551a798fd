"""Failed starts and ends as engines told them: recorded logs, and the words of their sources."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from a40console.engines.diagnosis import Ending
from a40console.engines.run_record import EngineExit
from a40console.model.profile import Profile
from a40console.profiles.loader import load_profiles

DATA = Path(__file__).parents[1] / "data" / "engine_logs"
SHIPPED = load_profiles(Path("/nonexistent")).profiles
QWEN, SMOL = SHIPPED["qwen3-coder-30b"], SHIPPED["smollm2-135m"]
NEXT = SHIPPED["qwen3-coder-next-80b"]

CORE_ERROR = "(EngineCore pid=2) ERROR 11-29 13:00:00 [core.py:1586] "

RECORDED = [
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
]
"""Logs of starts that failed: name, kind, and words of the cause and of the remedy."""

_ASKED: dict[str, dict[str, Any]] = {
    "fail-unknown-flag.log": {"arguments": ("--disable-log-requests",)},
    "fail-bad-spec-json.log": {"arguments": ("--speculative-config", "{method:ngram}")},
    "fail-bad-spec-method.log": {
        "arguments": ("-sc", '{"method": "nope", "num_speculative_tokens": 5}')
    },
    "fail-spec-unknown-key.log": {
        "arguments": ("-sc", '{"method": "ngram", "disable_by_batch_size": 8}'),
    },
    "fail-spec-missing-tokens.log": {
        "arguments": ("-sc", '{"method": "ngram", "prompt_lookup_max": 4}')
    },
    "fail-bad-tool-parser.log": {"tool_call_parser": "nope"},
    "fail-mml-over-model.log": {"max_model_len": 100000},
    "fail-port-in-use.log": {"listen": "loopback"},
    "fail-kv-too-small-bytes2.log": {"max_model_len": 8192},
    "fail-kv-dtype-unknown.log": {"kv_cache_dtype": "nope"},
    "fail-tp-heads.log": {"tensor_parallel": 2},
    "fail-batch-small.log": {"max_model_len": 4096, "max_batched_tokens": 256},
    "fail-batch-seqs.log": {"max_batched_tokens": 64, "max_running": 128},
    "fail-awq.log": {"quantization": "awq"},
    "llama-bad_flag.txt": {"arguments": ("--no-such-flag",)},
    "llama-bad_removed_flag.txt": {"arguments": ("--draft-max", "4")},
    "llama-bad_port_in_use.txt": {"listen": "loopback"},
}
"""What the profile of such a start asked for, where a change of it may be the remedy."""

CORE_DIED = ["enginecore-killed.log", "startup-033b.log", "killed-033overlay.log"]
"""Logs of engines whose core died while they served."""

OOM = EngineExit(
    signal="SIGKILL",
    oom_kill=True,
    oom_kill_at="2026-11-29T14:07:28.000Z",
    ended_at="2026-11-29T14:07:30.000Z",
)
"""The kernel ended it for want of memory."""

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

LACKING = [
    (DRIVER, "missing", "driver is too old for this vLLM's CUDA", "newer driver"),
    (INSUFFICIENT, "missing", "driver", "newer driver"),
    (CAPABILITY, "rejected", "capability 89, and this one has 86", "AWQ"),
    (NO_FP8, "rejected", "does not compute in FP8", "kv_cache_dtype = 'auto'"),
    (NO_KERNEL, "rejected", "no attention kernel", "kv_cache_dtype = 'auto'"),
    (LIBRARY, "missing", "libcudart.so.13 is missing", "anew"),
    ("ImportError: _C.abi3.so: undefined symbol: _ZN3c10", "missing", "do not fit", "anew"),
    (WORLD, "rejected", "2 GPUs were asked for, and there are 1", "tensor_parallel"),
    (NCCL, "crashed", "NCCL", "NCCL_DEBUG=INFO"),
    ("RuntimeError: No CUDA GPUs are available", "missing", "no GPU", "nvidia-smi"),
    ("no kernel image is available for execution on the device", "missing", "kind", "GPU"),
    ("PermissionError: [Errno 13] Permission denied: '/models/x'", "disk", "/models/x", "user"),
    ("huggingface: 429 Too Many Requests: you have reached", "model", "later", "HF_TOKEN"),
]
"""What a GPU machine lacks: the engine's words, kind, and words of the cause and the remedy."""

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

WORDED = [
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
]  # fmt: skip
"""Ends in the words of the sources: those, phase, code, what is tried next, the cause's words."""


NCCL_WAITS = [
    "(Worker_TP0 pid=9) INFO 11-29 13:00:00 [pynccl.py:111] vLLM is using nccl==2.27.5",
    "(APIServer pid=1) Waiting for 1 core engine proc(s) to start.",
]
_NO_BLOCK = (
    "(EngineCore pid=2) INFO 11-29 13:00:00 [shm_broadcast.py:466] No available shared memory "
    "broadcast block found in 60 seconds."
)
BROADCAST_WAITS = [_NO_BLOCK]


def lines(name: str) -> list[str]:
    """The last lines of a recorded log."""
    return (DATA / name).read_text(errors="replace").splitlines()[-400:]


def asked(name: str) -> Profile:
    """The profile of a recorded start, with what it asked for beyond one that serves."""
    return replace(SMOL if name.startswith("llama-") else QWEN, **_ASKED.get(name, {}))


def recorded(name: str) -> Ending:
    """The end of a recorded start that failed."""
    exit_ = EngineExit(code=1)
    return Ending(profile=asked(name), exit=exit_, lines=lines(name), phase="starting", after_s=1.0)
