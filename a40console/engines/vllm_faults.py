"""What vLLM writes when it refuses settings or a model, and all its failures. Data only."""

from __future__ import annotations

from a40console.engines.faults import Fault
from a40console.engines.vllm_machine_faults import GPU_AND_LIBRARIES, MEMORY_AND_DISK

_SETTINGS = (
    Fault(
        "unknown-flag",
        "rejected",
        r"error: unrecognized arguments: (?P<flags>.+)",
        "this vLLM does not know {flags}",
        "Remove it from the profile's arguments: renamed, removed, or of a newer vLLM.{nearest}",
    ),
    Fault(
        "speculation-json",
        "rejected",
        r"error: argument --speculative-config\S*: (?:Value )?(?P<why>.+?)"
        r"(?: cannot be converted to .+)?$",
        "the speculation asked for is no JSON: {why}",
        "Write it as JSON with double quotes, or use the profile's [speculation] table instead.",
    ),
    Fault(
        "kv-dtype-unknown",
        "rejected",
        r"error: argument --kv-cache-dtype: invalid choice: '(?P<name>[^']*)'"
        r"(?: \(choose from (?P<known>[^)]*)\)?)?",
        "this vLLM has no KV cache of type {name}",
        "Set kv_cache_dtype = 'auto' in the profile.{nearest}",
    ),
    Fault(
        "bad-value",
        "rejected",
        r"error: argument (?P<flag>[^\s:]+): (?P<why>.+)",
        "vLLM refused the value of {flag}",
        "Correct it in the profile.",
    ),
    Fault(
        "unknown-parser",
        "rejected",
        r"invalid (?P<what>tool call|reasoning) parser: (?P<name>[^\s(]+)"
        r"(?: \(chose from \{ *(?P<known>[^}\n]*))?",
        "this vLLM has no {what} parser {name}",
        "Set one that the line lists, or remove the setting.{nearest}",
    ),
    Fault(
        "context-beyond-model",
        "rejected",
        r"max_model_len \((?P<asked>\d+)\) is greater than the derived max_model_len "
        r"\(\w+=(?P<most>\d+)",
        "the model was made for {most} tokens, and max_model_len asks for {asked}",
        "Set max_model_len = {most} or less.",
    ),
    Fault(
        "async-speculation",
        "rejected",
        r"async scheduling is only supported with",
        "async scheduling and this kind of speculation exclude each other",
        "Remove --async-scheduling from the profile's arguments, or turn speculation off.",
    ),
    Fault(
        "batch-below-context",
        "rejected",
        r"max_num_batched_tokens \((?P<batch>\d+)\) is smaller than max_model_len "
        r"\((?P<length>\d+)\)",
        "a pass of {batch} tokens is shorter than the context of {length}",
        "Set max_batched_tokens = {length} or more, or lower max_model_len.",
    ),
    Fault(
        "batch-below-running",
        "rejected",
        r"max_num_batched_tokens \((?P<batch>\d+)\) must be greater than or equal to "
        r"max_num_seqs \((?P<rows>\d+)\)",
        "a pass of {batch} tokens has no room for {rows} requests",
        "Raise max_batched_tokens, or lower max_running.",
    ),
    Fault(
        "chat-template-missing",
        "rejected",
        r"[Tt]he supplied chat template(?: string)? \((?P<path>[^)\n]+)\)\s+"
        r"(?:appears path-like|looks like a file path)|supplied chat template path doesn't exist",
        "there is no chat template {path}",
        "Correct --chat-template in the profile's arguments: a full path.",
    ),
    Fault(
        "kv-dtype-unknown",
        "rejected",
        r"(?:Invalid|Unknown) kv_cache_dtype: (?P<name>\S+?)\.? |"
        r"[Kk]v[_ ]cache[_ ]dtype:? '?(?P<other>[\w.]+)'? is not supported",
        "this vLLM has no KV cache of type {name}{other}",
        "Set kv_cache_dtype = 'auto' in the profile.",
    ),
    Fault(
        "fp8-not-supported",
        "rejected",
        r"type fp8e4nv not supported in this architecture|fp8e4nv data type is not supported",
        "this GPU does not compute in FP8 (an A40 does not: it takes compute capability 8.9)",
        "Set kv_cache_dtype = 'auto', and take a model that is not quantised to FP8.",
    ),
    Fault(
        "quantization-needs-newer-gpu",
        "rejected",
        r"quantization method (?P<name>\S+) is not supported for the current GPU\.\s+Minimum "
        r"capability: (?P<least>\d+)\. Current capability: (?P<has>\d+)",
        "quantization {name} takes a GPU of capability {least}, and this one has {has}",
        "Take the model in another quantization (AWQ and GPTQ run on an A40).",
    ),
    Fault(
        "no-attention-kernel",
        "rejected",
        r"No valid attention backend|backend \S+ is not valid for this configuration",
        "no attention kernel takes these settings on this GPU",
        "Set kv_cache_dtype = 'auto' first; the line names the reason of each kernel.",
    ),
    Fault(
        "heads-not-divisible",
        "rejected",
        r"attention heads \((?P<heads>\d+)\)\s+must be divisible by tensor parallel size\s+"
        r"\((?P<parts>\d+)\)",
        "the model's {heads} attention heads cannot be shared among {parts} GPUs",
        "Set tensor_parallel (or --tensor-parallel-size) to a number that divides them.",
    ),
    Fault(
        "too-few-gpus",
        "rejected",
        r"World size \((?P<asked>\d+)\) is larger than the number of available GPUs "
        r"\((?P<has>\d+)\)",
        "{asked} GPUs were asked for, and there are {has}",
        "Lower the profile's tensor_parallel, or --tensor-parallel-size in its arguments.",
    ),
    Fault(
        "not-quantized-so",
        "rejected",
        r"Cannot find the config file for (?P<name>\w+)",
        "the model is not quantised as {name}",
        "Remove quantization from the profile (vLLM finds it out), or take such a model.",
    ),
    Fault(
        "model-invalid",
        "model",
        r"Invalid repository ID or local directory specified: '(?P<model>[^']+)'",
        "{model} is no model that vLLM can load: config.json is missing or damaged",
        "Correct model in the profile: a folder with config.json, or owner/name on the hub.",
    ),
    Fault(
        "speculation-method",
        "rejected",
        r"validation errors? for SpeculativeConfig\nmethod\n\s+Input should be (?P<known>[^\[\n]+)"
        r"\[type=literal_error, input_value='(?P<name>[^']*)'",
        "this vLLM has no speculation of method {name}",
        "Set a method that the line lists in the profile's speculation, or turn it off.{nearest}",
    ),
    Fault(
        "speculation-key",
        "rejected",
        r"validation errors? for SpeculativeConfig\n(?P<name>[\w.]+)\n\s+"
        r"Unexpected keyword argument",
        "this vLLM's speculation has no setting {name}",
        "Take it out of --speculative-config in the profile's arguments.",
    ),
    Fault(
        "speculation-refused",
        "rejected",
        r"validation errors? for SpeculativeConfig\n(?:[\w.]+\n)?\s+(?:Value error, )?"
        r"(?P<why>[^\[\n]*[^\[\s])",
        "vLLM refused the speculation: {why}",
        "Correct the profile's speculation, or turn it off.",
    ),
    Fault(
        "setting-refused",
        "rejected",
        r"validation errors? for (?P<part>\w+)\n(?P<field>[a-z][\w.]*)\n\s+(?P<why>.+)",
        "vLLM refused {field} in {part}",
        "Correct or remove it in the profile.",
    ),
    Fault(
        "setting-refused",
        "rejected",
        r"validation errors? for (?P<part>\w+)\n\s+(?P<why>.+)",
        "vLLM refused the settings of {part}",
        "Correct or remove the setting that the line names.",
    ),
    Fault(
        "address-in-use",
        "address",
        r"Address already in use",
        "its address is taken by another program",
        "Set listen = 'socket' in the profile, or another port, or end what holds it.",
    ),
    Fault(
        "socket-unusable",
        "address",
        r"AF_UNIX path too long|(?:Cannot|Can't) assign requested address",
        "it cannot listen at the address that it was given",
        "Set A40CONSOLE_HOME to a folder with a shorter path, or listen = 'loopback'.",
    ),
)

_MODEL = (
    Fault(
        "model-gated",
        "model",
        r"awaiting a review from the repo authors",
        "the model's owner has yet to let you in",
        "Wait for it, or take another model.",
    ),
    Fault(
        "model-gated",
        "model",
        r"GatedRepoError|access a gated repo|Cannot access gated repo|is a gated repository"
        r"|Access to model .+ is restricted",
        "the model's owner lets only those in who accepted its terms",
        "Accept them on the model's page, and set HF_TOKEN in the service's environment.",
    ),
    Fault(
        "token-refused",
        "model",
        r"Invalid credentials in Authorization header|Invalid user token|token is expired",
        "the hub does not know the token",
        "Set a valid HF_TOKEN in the service's environment, or none for a public model.",
    ),
    Fault(
        "model-forbidden",
        "model",
        r"403 Forbidden: (?P<why>[^\n]+)|Access to this resource is disabled",
        "the hub refuses the model to this token",
        "Give the token the right to read it (gated models need one of their own).",
    ),
    Fault(
        "hub-rate-limit",
        "model",
        r"429 Too Many Requests",
        "the hub asks to come back later: too many requests",
        "Wait some minutes; with HF_TOKEN set the limit is higher.",
    ),
    Fault(
        "weights-missing",
        "model",
        r"Cannot find any model weights with [`'](?P<model>[^`']+)[`']",
        "there are no weights in {model}",
        "Fetch them again; a GGUF file alone needs kind = 'llamacpp'.",
    ),
    Fault(
        "model-file-missing",
        "model",
        r"does not appear to have a file named (?P<file>\S+?)\.? Checkout",
        "the model lacks its file {file}",
        "Fetch it again, or correct model in the profile.",
    ),
    Fault(
        "model-invalid",
        "model",
        r"Can't load the (?P<what>configuration|tokenizer|model) of '(?P<model>[^']+)'"
        r"|Unrecognized model in (?P<other>\S+?)\. Should have a `model_type`",
        "{model}{other} is no model that vLLM can load",
        "Correct model in the profile: a folder with config.json, or owner/name on the hub.",
    ),
    Fault(
        "tokenizer-import",
        "model",
        r"cannot import name '(?P<name>\w+)' from '(?P<module>(?:transformers|tokenizers|tiktoken"
        r"|sentencepiece)[\w.]*)'",
        "the model's own tokenizer needs {name} of {module}, which the release here does not have",
        "Name a repository with a mended tokenizer by --tokenizer in the profile's arguments.",
    ),
    Fault(
        "tokenizer-import",
        "model",
        r"requires the (?P<name>SentencePiece|protobuf|tiktoken|blobfile|\S* ?Tokenizers) library"
        r"|(?P<other>`?tiktoken`?|`?sentencepiece`?) is (?:required|not installed)",
        "the model's tokenizer needs {name}{other}, which is not installed",
        "Install it in the engine's environment.",
    ),
    Fault(
        "model-json-damaged",
        "model",
        r"json\.decoder\.JSONDecodeError",
        "a JSON file of the model is damaged: its tokenizer's or its config",
        "Fetch the model again.",
    ),
    Fault(
        "tokenizer-failed",
        "model",
        r"Couldn't instantiate the backend tokenizer|Error while initializing BPE"
        r"|Can't load tokenizer for '(?P<model>[^']+)'|Tokenizer class '?(?P<name>\w+)'? (?:does "
        r"not exist|is not currently imported|specified in the tokenizer config was not found)"
        r"|Failed to load the tokenizer"
        r"|expected value at line \d+ column \d+|data did not match any variant of untagged enum",
        "the model's tokenizer cannot be loaded: a file is missing, damaged or of another release",
        "Fetch the model again, or name one that works with --tokenizer in the arguments.",
    ),
    Fault(
        "model-path-missing",
        "model",
        r"Repo id must be in the form [^:]*: '(?P<model>[^']+)'",
        "there is no model folder {model}",
        "Correct model in the profile: a folder on this machine, or owner/name on the hub.",
    ),
    Fault(
        "model-unknown",
        "model",
        r"RepositoryNotFoundError|is not a valid model identifier|RevisionNotFoundError",
        "the hub knows no such model",
        "Correct model in the profile; a private one needs HF_TOKEN in the environment.",
    ),
    Fault(
        "hub-not-reached",
        "model",
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|couldn't connect to 'https?://"
        r"|Max retries exceeded with url|Name or service not known|Temporary failure in name",
        "the model is not on this machine, and the hub was not reached",
        "Connect the machine, unset HF_HUB_OFFLINE, or give the model as a folder.",
    ),
    Fault(
        "gguf-in-vllm",
        "model",
        r"config file at '(?P<model>[^']+\.gguf)' is not a valid JSON file",
        "vLLM does not read the GGUF file {model}",
        "Use kind = 'llamacpp' for it, or take the model as safetensors.",
    ),
    Fault(
        "architecture-unknown",
        "model",
        r"Model architectures? (?P<name>\[[^\]]*\]) (?:are|is) not supported"
        r"|does not recognize this architecture",
        "this vLLM does not know the model's architecture",
        "Take a newer vLLM or another model.",
    ),
    Fault(
        "remote-code",
        "model",
        r"trust_remote_code=True|requires you to execute the",
        "the model brings code of its own, which vLLM does not run unasked",
        "If you trust its author, add --trust-remote-code to the profile's arguments.",
    ),
    Fault(
        "weights-damaged",
        "model",
        r"SafetensorError|HeaderTooLarge|MetadataIncompleteBuffer|invalid load key",
        "a weight file is damaged or incomplete",
        "Delete it, and let it be fetched again.",
    ),
)

FAULTS = (*MEMORY_AND_DISK, *_SETTINGS, *_MODEL, *GPU_AND_LIBRARIES)
"""The first that matches explains the end."""
