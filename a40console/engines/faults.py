"""What engines write when they fail, what it means, and what to do about it. Data only."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

FaultKind = Literal[
    "stopped",
    "rejected",
    "memory",
    "model",
    "address",
    "missing",
    "disk",
    "core",
    "killed",
    "crashed",
    "unknown",
]
"""`rejected` is a setting the engine refused, `missing` something that is not installed, `core`
vLLM's engine core or a worker, `killed` a signal from outside, `crashed` one of its own making."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A passage of the output (it may span lines) and its meaning; `{name}` takes a group."""

    kind: FaultKind
    pattern: str
    cause: str
    remedy: str
    only_starting: bool = True
    """Whether it explains nothing in an engine that has served."""

    regex: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", re.compile(self.pattern, re.MULTILINE))


_SMALLER = "Lower max_running, max_model_len or gpu_memory_utilization in the profile."
_TO_KV = "raise gpu_memory_utilization, lower max_running, or set kv_cache_dtype = 'fp8'."

VLLM = (
    Fault(
        "memory",
        r"Free memory on device .*?\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less "
        r"than desired GPU memory utilization \((?P<share>[\d.]+), (?P<need>[\d.]+) GiB\)",
        "the GPU has {free} of {total} GiB free, and {need} were asked for",
        "End what holds its memory first, or lower gpu_memory_utilization below {share}.",
    ),
    Fault(
        "memory",
        r"model's max seq len \((?P<asked>\d+)\), \((?P<need>[\d.]+) GiB KV cache is needed, which "
        r"is larger than the available KV cache memory \((?P<have>[\d.]+) GiB\)\. Based on the "
        r"available memory, the estimated maximum model length is (?P<most>\d+)",
        "the KV cache has {have} GiB, and one request of {asked} tokens needs {need}",
        f"Set max_model_len = {{most}}, which vLLM estimates to fit, or {_TO_KV}",
    ),
    Fault(
        "memory",
        r"model's max seq len \((?P<asked>\d+)\), \((?P<need>[\d.]+) GiB KV cache is needed, which "
        r"is larger than the available KV cache memory \((?P<have>[\d.]+) GiB\)",
        "the KV cache has {have} GiB, and one request of {asked} tokens needs {need}",
        f"Lower max_model_len, {_TO_KV}",
    ),
    Fault(
        "memory",
        r"No available memory for the cache blocks",
        "the weights leave no memory for the KV cache",
        "Raise gpu_memory_utilization, or take a smaller model or quantization.",
    ),
    Fault(
        "memory",
        r"CUDA out of memory occurred when warming up \w+ with (?P<rows>\d+) dummy requests",
        "the GPU ran out of memory while warming up with {rows} requests",
        "Lower max_running or gpu_memory_utilization in the profile.",
    ),
    Fault(
        "memory",
        r"CUDA out of memory\. Tried to allocate (?P<size>[\d.]+ [KMG]iB)",
        "the GPU ran out of memory: {size} more were asked for",
        _SMALLER,
        only_starting=False,
    ),
    Fault(
        "memory",
        r"CUDA error: out of memory|cudaErrorMemoryAllocation",
        "the GPU ran out of memory",
        _SMALLER,
        only_starting=False,
    ),
    Fault(
        "memory",
        r"Cannot allocate memory|std::bad_alloc|^MemoryError|DefaultCPUAllocator: can't allocate",
        "the machine ran out of memory",
        "Lower the KV cache or the context, or take a machine with more memory.",
        only_starting=False,
    ),
    Fault(
        "disk",
        r"No space left on device",
        "a disk is full",
        "Free space where models and caches lie (HF_HOME, /dev/shm), then start again.",
        only_starting=False,
    ),
    Fault(
        "rejected",
        r"error: unrecognized arguments: (?P<flags>.+)",
        "this vLLM does not know {flags}",
        "Remove it from the profile's arguments: it was renamed or removed, or needs a newer vLLM.",
    ),
    Fault(
        "rejected",
        r"error: argument (?P<flag>[^\s:]+): (?P<why>.+)",
        "vLLM refused the value of {flag}",
        "Correct it in the profile.",
    ),
    Fault(
        "rejected",
        r"invalid (?P<what>tool call|reasoning) parser: (?P<name>[^\s(]+)",
        "this vLLM has no {what} parser {name}",
        "Set one that the line lists, or remove the setting.",
    ),
    Fault(
        "rejected",
        r"max_model_len \((?P<asked>\d+)\) is greater than the derived max_model_len "
        r"\(\w+=(?P<most>\d+)",
        "the model was made for {most} tokens, and max_model_len asks for {asked}",
        "Set max_model_len = {most} or less.",
    ),
    Fault(
        "rejected",
        r"async scheduling is only supported with",
        "async scheduling and this kind of speculation exclude each other",
        "Remove --async-scheduling from the profile's arguments, or turn speculation off.",
    ),
    Fault(
        "rejected",
        r"validation errors? for (?P<part>\w+)\n(?P<field>[a-z][\w.]*)\n\s+(?P<why>.+)",
        "vLLM refused {field} in {part}",
        "Correct or remove it in the profile.",
    ),
    Fault(
        "rejected",
        r"validation errors? for (?P<part>\w+)\n\s+(?P<why>.+)",
        "vLLM refused the settings of {part}",
        "Correct or remove the setting that the line names.",
    ),
    Fault(
        "address",
        r"Address already in use",
        "its address is taken by another program",
        "Set listen = 'socket' in the profile, or another port, or end what holds it.",
    ),
    Fault(
        "model",
        r"Repo id must be in the form [^:]*: '(?P<model>[^']+)'",
        "there is no model folder {model}",
        "Correct model in the profile: a folder on this machine, or owner/name on the hub.",
    ),
    Fault(
        "model",
        r"GatedRepoError|Access to model .+ is restricted|Cannot access gated repo",
        "the model's owner lets only those in who accepted its terms",
        "Accept them on the model's page, and set HF_TOKEN in the service's environment.",
    ),
    Fault(
        "model",
        r"RepositoryNotFoundError|is not a valid model identifier|RevisionNotFoundError",
        "the hub knows no such model",
        "Correct model in the profile; a private one needs HF_TOKEN in the environment.",
    ),
    Fault(
        "model",
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|couldn't connect to 'https?://"
        r"|Max retries exceeded with url|Name or service not known|Temporary failure in name",
        "the model is not on this machine, and the hub was not reached",
        "Connect the machine, unset HF_HUB_OFFLINE, or give the model as a folder.",
    ),
    Fault(
        "model",
        r"config file at '(?P<model>[^']+\.gguf)' is not a valid JSON file",
        "vLLM does not read the GGUF file {model}",
        "Use kind = 'llamacpp' for it, or take the model as safetensors.",
    ),
    Fault(
        "model",
        r"Model architectures? (?P<name>\[[^\]]*\]) (?:are|is) not supported"
        r"|does not recognize this architecture",
        "this vLLM does not know the model's architecture",
        "Take a newer vLLM or another model.",
    ),
    Fault(
        "model",
        r"trust_remote_code=True|requires you to execute the",
        "the model brings code of its own, which vLLM does not run unasked",
        "If you trust its author, add --trust-remote-code to the profile's arguments.",
    ),
    Fault(
        "model",
        r"SafetensorError|HeaderTooLarge|MetadataIncompleteBuffer|invalid load key",
        "a weight file is damaged or incomplete",
        "Delete it, and let it be fetched again.",
    ),
    Fault(
        "missing",
        r"Failed to infer device type|No CUDA GPUs are available"
        r"|CUDA driver version is insufficient|Found no NVIDIA driver",
        "vLLM found no GPU that it can use",
        "Check nvidia-smi and the driver; without a GPU take a profile for the CPU.",
    ),
    Fault(
        "missing",
        r"No package metadata was found for (?P<name>\S+)|No module named '(?P<module>[^']+)'",
        "the engine's environment is incomplete",
        "Install the missing package there, or install the engine anew.",
    ),
)

LLAMACPP = (
    Fault(
        "memory",
        r"allocating (?P<size>[\d.]+) MiB on device (?P<device>\d+): cudaMalloc failed",
        "GPU {device} ran out of memory: {size} MiB were asked for",
        "Lower max_model_len or max_running, or put fewer layers on the GPU.",
        only_starting=False,
    ),
    Fault(
        "memory",
        r"insufficient memory \(attempted to allocate +(?P<size>[\d.]+) MB\)",
        "the machine ran out of memory: {size} MB were asked for",
        "Lower max_model_len or max_running, or take a smaller model.",
        only_starting=False,
    ),
    Fault(
        "memory",
        r"out of memory|failed to allocate \S+ ?buffer|GGML_ASSERT\(ctx->mem_buffer != NULL\)"
        r"|std::bad_alloc",
        "it ran out of memory",
        "Lower max_model_len or max_running, or take a smaller model.",
        only_starting=False,
    ),
    Fault(
        "missing",
        r"embedded: xllamacpp is not installed.*",
        "llama.cpp's embedded server is not installed",
        "pip install 'a40console[embedded]'",
    ),
    Fault(
        "rejected",
        r"error: invalid argument: (?P<flag>\S+)",
        "this llama-server does not know {flag}",
        "Remove it from the profile's arguments.",
    ),
    Fault(
        "rejected",
        r"error while handling argument \"(?P<flag>[^\"]+)\": (?P<why>.+)",
        "llama-server refused {flag}",
        "Correct or remove it in the profile.",
    ),
    Fault(
        "rejected",
        r"failed to load lora adapter '(?P<path>[^']+)'",
        "the LoRA adapter {path} cannot be loaded",
        "Correct or remove it in the profile's arguments.",
    ),
    Fault(
        "model",
        r"failed to open GGUF file '(?P<path>[^']+)' \((?P<why>[^)]+)\)",
        "the model file {path} cannot be opened: {why}",
        "Correct model in the profile, or put the file there; only what `[file]` names is fetched.",
    ),
    Fault(
        "model",
        r"embedded: there is no model file (?P<path>.+)",
        "there is no model file {path}",
        "Correct model in the profile, or put the file there; only what `[file]` names is fetched.",
    ),
    Fault(
        "model",
        r"invalid magic characters",
        "the model file is no GGUF file",
        "Give a GGUF file as the profile's model.",
    ),
    Fault(
        "model",
        r"failed to read key-value pairs|not within the file bounds|corrupted or incomplete"
        r"|failed to read tensor",
        "the model file is damaged or incomplete",
        "Delete it, and fetch it again.",
    ),
    Fault(
        "model",
        r"unknown model architecture: '(?P<name>[^']+)'",
        "this llama.cpp does not know the architecture {name}",
        "Take a newer llama.cpp or another model.",
    ),
    Fault(
        "address",
        r"couldn't bind HTTP server socket, hostname: (?P<host>[^,]+), port: (?P<port>\d+)",
        "its address {host}, port {port}, is taken",
        "Set listen = 'socket' in the profile, or another port, or end what holds it.",
    ),
    Fault(
        "address",
        r"embedded: (?P<path>\S+) exists already",
        "its socket {path} exists already",
        "Start it again: every start takes a fresh path.",
    ),
    Fault(
        "disk",
        r"No space left on device",
        "a disk is full",
        "Free space on it, then start again.",
        only_starting=False,
    ),
    Fault(
        "rejected",
        r"failed to create(?:_| \w*_?)context (?:with|from) model",
        "llama.cpp refused the settings: no allocation failed, so it is not memory",
        "Look at kv_cache_dtype first (recurrent layers take no quantised cache), then arguments.",
    ),
    Fault(
        "model",
        r"exiting due to model loading error|failed to load model",
        "the model could not be loaded",
        "See the lines before.",
    ),
)
