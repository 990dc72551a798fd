"""A start in vLLM's words: each line with the moment at which it is written. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from a40console.sim.settings import VERSION, Settings

SHARES = {"starting": 0.15, "download": 0.15, "load": 0.35, "compile": 0.2, "capture": 0.15}
"""Of a start's time."""

_SHARDS = 4
_GRAPHS = 7


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the output."""

    phase: str
    after_s: float
    """Seconds since the phase began."""

    process: str
    """`APIServer`, `EngineCore` or `Worker`; empty for a bare line."""

    place: str
    text: str
    level: str = "INFO"


def lines(settings: Settings) -> Iterator[Line]:
    """Every line of a start that goes well, in order."""
    yield from _starting(settings)
    yield from _loading(settings)
    yield from _compiling(settings)


def phase_s(settings: Settings, phase: str) -> float:
    """Seconds that a phase takes."""
    return settings.start_s * SHARES[phase]


def cache_tokens(settings: Settings) -> int:
    """Tokens that the KV cache holds."""
    blocks = settings.options.kv_blocks
    blocks = blocks or settings.sheet.kv_capacity_tokens // settings.sheet.block_tokens
    return blocks * settings.sheet.block_tokens


def _starting(settings: Settings) -> Iterator[Line]:
    def line(process: str, place: str, text: str, level: str = "INFO") -> Line:
        return Line("starting", 0.0, process, place, text, level)

    sheet, options = settings.sheet, settings.options
    yield line("APIServer", "sim.py:1", "SIMULATED: no model runs here, and no GPU is used")
    yield line("APIServer", "startup.py:96", f"non-default args: {settings.non_default()}")
    yield line("APIServer", "model.py:733", f"Resolved architecture: {sheet.architecture}")
    yield line("APIServer", "model.py:2152", f"Using max model len {options.max_model_len}")
    yield line(
        "APIServer",
        "scheduler.py:239",
        f"Chunked prefill is enabled with max_num_batched_tokens={options.batched_tokens}.",
    )
    if options.depth:
        yield line(
            "APIServer",
            "vllm.py:1605",
            "Async scheduling not supported with ngram-based speculative decoding and will be "
            "disabled.",
            "WARNING",
        )
    if settings.lowered:
        yield line(
            "APIServer",
            "vllm.py:2276",
            f"max_num_scheduled_tokens is set to {options.batched_tokens} based on the "
            "speculative decoding settings. This may lead to suboptimal performance.",
            "WARNING",
        )
    config = ", ".join(f"{name}={value}" for name, value in _config(settings).items())
    yield line(
        "EngineCore",
        "core.py:139",
        f"Initializing a V1 LLM engine (v{VERSION}) with config: {config}",
    )


def _config(settings: Settings) -> dict[str, Any]:
    words, options = settings.words, settings.options
    speculation: Any = None
    if options.depth:
        method = (settings.speculation or {}).get("method", "ngram")
        speculation = (
            f"SpeculativeConfig(method='{method}', model=None, num_spec_tokens={options.depth})"
        )
    return {
        "model": repr(words.model),
        "speculative_config": speculation,
        "max_seq_len": options.max_model_len,
        "quantization": words.quantization,
        "enforce_eager": options.eager,
        "kv_cache_dtype": words.kv_cache_dtype or "auto",
        "device_config": "cuda",
        "served_model_name": settings.served_name,
        "enable_prefix_caching": options.prefix_caching,
        "enable_chunked_prefill": True,
    }


def _loading(settings: Settings) -> Iterator[Line]:
    sheet, each_s = settings.sheet, phase_s(settings, "download") / (_SHARDS + 1)
    for shard in range(_SHARDS + 1):
        share = 100 * shard // _SHARDS
        text = f"Fetching {_SHARDS} files: {share:3d}%|{'#' * shard}| {shard}/{_SHARDS} [00:00<?]"
        yield Line("download", shard * each_s, "", "", text)
    gib, took_s = sheet.weights_bytes / 2**30, phase_s(settings, "load")
    each_s = took_s / (_SHARDS + 2)
    yield Line(
        "load", 0, "Worker", "gpu_model_runner.py:68", f"Starting to load model {sheet.name}..."
    )
    for shard in range(_SHARDS + 1):
        share = 100 * shard // _SHARDS
        text = (
            f"Loading safetensors checkpoint shards: {share:3d}% Completed | "
            f"{shard}/{_SHARDS} [00:00<00:00,  1.00it/s]"
        )
        yield Line("load", (shard + 1) * each_s, "", "", text)
    yield Line(
        "load", took_s, "Worker", "default_loader.py:501", f"Loading weights took {took_s:.2f} s"
    )
    yield Line(
        "load",
        took_s,
        "Worker",
        "gpu_model_runner.py:90",
        f"Model loading took {gib:.2f} GiB and {took_s:.2f} seconds",
    )


def _compiling(settings: Settings) -> Iterator[Line]:
    options, took_s = settings.options, phase_s(settings, "compile")
    if not options.eager:
        text = f"Dynamo bytecode transform time: {took_s / 2:.2f} s"
        yield Line("compile", 0, "Worker", "backends.py:548", "Starting torch.compile")
        yield Line("compile", took_s / 2, "Worker", "backends.py:559", text)
    text = f"Initial profiling/warmup run took {took_s:.2f} s"
    yield Line("compile", took_s, "Worker", "monitor.py:91", text)
    tokens = cache_tokens(settings)
    text = (
        f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for "
        f"{options.max_model_len:,} tokens per request: {tokens / options.max_model_len:.2f}x"
    )
    yield Line("compile", took_s, "EngineCore", "kv_cache_utils.py:2327", text)
    took_s = phase_s(settings, "capture")
    if not options.eager:
        for graph in range(_GRAPHS + 1):
            share = 100 * graph // _GRAPHS
            text = (
                f"Capturing CUDA graphs (decode, FULL): {share:3d}%|##| {graph}/{_GRAPHS} [00:00<?]"
            )
            yield Line("capture", graph * took_s / (_GRAPHS + 1), "", "", text)
        text = f"Graph capturing finished in {took_s:.0f} secs, took 0.61 GiB"
        yield Line("capture", took_s, "Worker", "gpu_model_runner.py:4100", text)
