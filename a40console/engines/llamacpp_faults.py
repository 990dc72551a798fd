"""What llama.cpp's server writes when it fails, what it means, what to do. Data only."""

from __future__ import annotations

from a40console.engines.faults import Fault

FAULTS = (
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
        r"error while loading shared libraries: (?P<library>\S+):",
        "the library {library} is missing",
        "Install the package with that library, or a llama-server built for this machine.",
    ),
    Fault(
        "crashed",
        r"CUDA error: (?P<why>[^\n]+)",
        "a kernel on the GPU failed: {why}",
        "Start it again; if it happens again, try another release.",
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
        "rejected",
        r"V cache quantization requires flash_attn",
        "a quantised KV cache takes flash attention, which is off",
        "Add --flash-attn on to the profile's arguments, or remove kv_cache_dtype.",
    ),
    Fault(
        "rejected",
        r"(?:failed to (?:initialize|parse|apply)|error parsing) (?:the )?chat template",
        "the model's chat template cannot be used",
        "Give another with --chat-template-file in the profile's arguments.",
    ),
    Fault(
        "model",
        r"unknown pre-tokenizer type: '(?P<name>[^']+)'"
        r"|error loading model vocabulary: (?P<why>[^\n]+)",
        "this llama.cpp cannot read the model's tokenizer {name}{why}",
        "Take a newer llama.cpp, or a GGUF file made for this one.",
    ),
    Fault(
        "model",
        r"this GGUF file is version (?P<found>\d+) but this software only supports",
        "the model file is damaged, or made for another llama.cpp",
        "Delete it and fetch it again; if it stays so, take a newer llama.cpp.",
    ),
    Fault(
        "model",
        r"failed to load draft model,? '?(?P<path>[^'\n]*)'?",
        "the draft model {path} cannot be loaded",
        "Correct it in the profile's arguments, or turn speculation off.",
    ),
    Fault(
        "model",
        r"HTTP (?:status )?(?:code )?:? ?(?P<status>40[134])|status code (?P<other>40[134])",
        "the hub refuses the model or does not know it (HTTP {status}{other})",
        "Correct the model's name; a gated one needs its terms accepted and HF_TOKEN set.",
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
