"""vLLM's command line (0.27 to 0.33), and what a start says of itself in the log. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from a40console.engines.phases import PhaseRule
from a40console.engines.plugin_folder import WORKER_EXTENSION
from a40console.model.profile import Profile

SYNCHRONOUS_METHODS = frozenset({"ngram", "suffix", "medusa", "mlp_speculator", "custom_class"})
"""Methods with which an explicit `--async-scheduling` makes vLLM refuse to start."""

QUIET_ROUTES = ("/health", "/metrics", "/version", "/ping", "/load")
"""Routes that we poll; without them in the access log the others can be read."""


def arguments(profile: Profile, *, model: str, address: Sequence[str]) -> list[str]:
    """Everything behind `vllm`: `serve`, the model, our flags, then the profile's own."""
    return [
        "serve",
        model,
        "--served-model-name",
        profile.public_name,
        *address,
        *shared_arguments(profile),
        "--enable-prompt-tokens-details",
        "--enable-request-id-headers",
        "--disable-access-log-for-endpoints",
        ",".join(QUIET_ROUTES),
        *profile.arguments,
    ]


def shared_arguments(profile: Profile) -> list[str]:
    """What the profile's settings come to; vllm.cpp takes them in the same words."""
    return [
        *_settings(profile),
        *_switches(profile),
        *_tools(profile),
        *_speculation(profile),
    ]


def environment() -> dict[str, str]:
    """What every vLLM of ours gets: no usage reports, and output that arrives when written."""
    return {"VLLM_NO_USAGE_STATS": "1", "PYTHONUNBUFFERED": "1"}


def batched_tokens(profile: Profile) -> int | None:
    """The limit of tokens a pass that is asked for, speculation's own where it is ready."""
    speculation = profile.speculation
    if speculation is not None and speculation.ready and speculation.max_batched_tokens:
        return speculation.max_batched_tokens
    return profile.max_batched_tokens


def async_scheduling(profile: Profile) -> bool | None:
    """What is said of it on the command line; None leaves it to vLLM.

    With a method that excludes it vLLM turns it off by itself, but refuses to start when told to
    turn it on.
    """
    speculation = profile.speculation
    excluded = (
        speculation is not None and speculation.ready and speculation.method in SYNCHRONOUS_METHODS
    )
    return None if excluded and profile.async_scheduling else profile.async_scheduling


def _settings(profile: Profile) -> list[str]:
    values = {
        "--max-model-len": profile.max_model_len,
        "--max-num-seqs": profile.max_running,
        "--max-num-batched-tokens": batched_tokens(profile),
        "--kv-cache-dtype": profile.kv_cache_dtype,
        "--gpu-memory-utilization": profile.gpu_memory_utilization,
        "--tensor-parallel-size": profile.tensor_parallel,
        "--quantization": profile.quantization,
    }
    return [
        word for flag, value in values.items() if value is not None for word in (flag, str(value))
    ]


def _switches(profile: Profile) -> list[str]:
    values = {
        "enable-prefix-caching": profile.prefix_caching,
        "async-scheduling": async_scheduling(profile),
        "enforce-eager": profile.enforce_eager,
    }
    return [
        f"--{'' if value else 'no-'}{name}" for name, value in values.items() if value is not None
    ]


def _tools(profile: Profile) -> list[str]:
    words: list[str] = []
    if profile.tool_call_parser is not None:
        words += ["--enable-auto-tool-choice", "--tool-call-parser", profile.tool_call_parser]
    if profile.reasoning_parser is not None:
        words += ["--reasoning-parser", profile.reasoning_parser]
    return words


def _speculation(profile: Profile) -> list[str]:
    """Nothing at all where it is not ready: an engine started with it never is without it."""
    asked = profile.speculation
    if asked is None or not asked.ready:
        return []
    settings: dict[str, str | int] = {
        "method": asked.method,
        "num_speculative_tokens": asked.tokens,
    }
    if asked.prompt_lookup_max is not None:
        settings["prompt_lookup_max"] = asked.prompt_lookup_max
    if asked.prompt_lookup_min is not None:
        settings["prompt_lookup_min"] = asked.prompt_lookup_min
    words = ["--speculative-config", json.dumps(settings, separators=(",", ":"))]
    return [*words, "--worker-extension-cls", WORKER_EXTENSION] if profile.turns_live else words


_PREFIX = re.compile(
    r"^(?:\((?P<process>[\w.-]+) pid=\d+\) )?"
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\] ?)?"
)


def split_prefix(line: str) -> tuple[str, str]:
    """The process that wrote a line (empty where it does not say) and the message itself."""
    match = _PREFIX.match(line)
    if match is None:
        return "", line
    return match["process"] or "", line[match.end() :]


PHASES = (
    PhaseRule("starting", r"Resolved architecture: (\w+)", "{}"),
    PhaseRule("starting", r"Initializing a V1 LLM engine", "engine core"),
    PhaseRule("starting", r"rank \d+ in world size (\d+) is assigned", "workers ({})"),
    PhaseRule(
        "download",
        r"\.(?:safetensors|bin|pt|gguf)[^:|]*: +\d+%\|.*?\| *(\S+)/(\S+) \[[^\],]*, *(\d\S*B/s)",
        "{} of {} of a file, {}",
    ),
    PhaseRule(
        "download",
        r"\.(?:safetensors|bin|pt|json|gguf)[^:|]*: +\d+%\|.*?\| *(\S+)/(\S+) \[",
        "{} of {} of a file",
    ),
    PhaseRule(
        "download",
        r"Download\w*[^|]*: +\d+%\|.*?\| *(\S+B?)/(\S+B?) \[[^\],]*, *(\d\S*B/s)",
        "{} of {}, {}",
    ),
    PhaseRule("download", r"Fetching (\d+) files: +\d+%\|.*?\| *(\d+)/\d+ \[", "file {1} of {0}"),
    PhaseRule("load", r"Time spent downloading weights for .*: (\d+)\.?\d* s", "fetched in {} s"),
    PhaseRule("load", r"Starting to load model"),
    PhaseRule("load", r"Prefetching checkpoint files: \d+% \((\d+/\d+)\)", "read ahead {}"),
    PhaseRule("load", r"Loading drafter model", "the draft model"),
    PhaseRule("load", r"(?:checkpoint|loading) shards[^|]*\| *(\d+/\d+) \[", "weights {}"),
    PhaseRule("load", r"Loading weights took ([\d.]+) s", "weights loaded in {} s"),
    PhaseRule("load", r"Model loading took ([\d.]+ GiB)", "weights loaded, {}"),
    PhaseRule("compile", r"Warming up model for the compilation"),
    PhaseRule("compile", r"Using cache directory: .* for vLLM's torch\.compile"),
    PhaseRule("compile", r"Starting torch\.compile"),
    PhaseRule("compile", r"Directly load (?:AOT compilation|the compiled graph)", "from the cache"),
    PhaseRule("compile", r"Cache the graph of compile range (\S+(?: \S+\))?)", "range {} kept"),
    PhaseRule("compile", r"torch\.compile takes ([\d.]+) s in total", "compiled in {} s"),
    PhaseRule("compile", r"[Aa]utotuning process starts|\[Autotuner\]: Tuning", "tuning kernels"),
    PhaseRule("compile", r"Dynamo bytecode transform time: ([\d.]+) s", "traced in {} s"),
    PhaseRule("compile", r"Compiling a graph for compile range (.+?) takes", "range {} compiled"),
    PhaseRule("compile", r"Compile and warming up model for size (\d+)", "size {}"),
    PhaseRule("compile", r"saved AOT compiled function", "compiled"),
    PhaseRule("compile", r"Initial profiling/warmup run took ([\d.]+) s", "profiled in {} s"),
    PhaseRule("capture", r"Profiling CUDA graph memory"),
    PhaseRule("capture", r"Capturing (?:model for|\d+ encoder CUDA)"),
    PhaseRule(
        "capture", r"Capturing (?:[\w-]+ )*CUDA graphs[^|]*\|.*?\| *(\d+/\d+) \[", "graphs {}"
    ),
    PhaseRule("capture", r"[Gg]raph capturing finished in (\d+) secs", "graphs captured in {} s"),
    PhaseRule("ready", r"Application startup complete\.|server is ready to accept requests"),
)
"""Phases by the lines that begin or advance them, as 0.27 to 0.33 write them."""

WAITING = re.compile(
    r"Waiting for \d+ (?:local, \d+ remote )?core engine proc"
    r"|No available shared memory broadcast block found"
    r"|HTTP/1\.[01]\" \d{3}"
)
"""Lines that say only that time passes."""
