"""Lines that look like trouble and explain no end: their meaning, whether to act. Data only."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class KnownLine:
    """A passage of the output and its meaning; `{name}` takes a group."""

    pattern: str
    meaning: str
    advice: str
    harmless: bool = False

    regex: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", re.compile(self.pattern, re.MULTILINE))


_ABOVE = "The cause stands further up: E goes to the first error."
_NOTHING = "Nothing to do."

VLLM = (
    KnownLine(
        r"Engine core initialization failed|WorkerProc initialization failed"
        r"|EngineCore failed to start",
        "a consequence: a process below failed, and the start with it",
        _ABOVE,
    ),
    KnownLine(
        r"EngineDeadError|AsyncLLM output_handler failed|engine core exited unexpectedly"
        r"|EngineCore encountered an issue",
        "the engine core died: every running request failed with it",
        _ABOVE,
    ),
    KnownLine(
        r"Worker proc (?P<name>\S+) died unexpectedly \(exit code: -(?P<signal>\d+)",
        "the worker {name} was ended by signal {signal}; the engine ends with it",
        "Signal 9 without anybody's doing is the kernel's, for want of memory.",
    ),
    KnownLine(
        r"No available shared memory broadcast block found in (?P<seconds>\d+) s",
        "the workers have not answered for {seconds} s: they compile, or hang",
        "While it starts, wait; while it serves with no token coming, restart it.",
    ),
    KnownLine(
        r"Waiting for \d+ (?:local, \d+ remote )?core engine proc",
        "the server waits for its engine core, which is still starting",
        "Normal for minutes; if nothing else is written meanwhile, restart it.",
        harmless=True,
    ),
    KnownLine(
        r"Found ulimit of (?P<files>\d+) and failed to automatically increase",
        "at most {files} files and connections may be open at once",
        "Raise it before the service starts: ulimit -n 65535.",
        harmless=True,
    ),
    KnownLine(
        r"Async scheduling not supported with ngram-based",
        "with this kind of speculation the scheduler waits for each pass",
        "On a GPU the method ngram_gpu keeps asynchronous scheduling.",
        harmless=True,
    ),
    KnownLine(
        r"min_p and logit_bias parameters won't work with speculative decoding",
        "requests that set min_p or logit_bias are refused with 400",
        "Turn speculation off for such clients.",
        harmless=True,
    ),
    KnownLine(
        r"max_num_scheduled_tokens is set to (?P<tokens>\d+) based on the speculative",
        "speculation limits a pass to {tokens} tokens",
        "Raise max_batched_tokens of the profile's speculation for faster prefill.",
        harmless=True,
    ),
    KnownLine(
        r"Enforce eager set, disabling torch\.compile",
        "no compiled code and no graphs, as the profile asks: a quick start, slower tokens",
        "Remove enforce_eager from the profile for speed.",
        harmless=True,
    ),
    KnownLine(
        r"Speculative decoding on CPU without Intel OpenMP|lib(?:tcmalloc|iomp) is not found",
        "the CPU build runs slower without this library",
        "Install it, and name it in LD_PRELOAD under the profile's [environment].",
        harmless=True,
    ),
    KnownLine(
        r"Triton is (?:not installed|installed, but doesn't)|Model Runner V2 requires Triton",
        "the CPU build has no use for Triton",
        _NOTHING,
        harmless=True,
    ),
    KnownLine(
        r"(?:Future|Deprecation|PendingDeprecation)Warning|Setuptools is replacing distutils",
        "a library tells its developers of a change to come",
        _NOTHING,
        harmless=True,
    ),
    KnownLine(
        r"Inductor compilation was disabled|Reset SSM cache type|NUMA binding: Using MEMBIND",
        "a choice that follows from the profile and this machine",
        _NOTHING,
        harmless=True,
    ),
    KnownLine(
        r"Development endpoints are enabled",
        "whoever reaches the engine's address may pause it and empty its caches",
        "Unset VLLM_SERVER_DEV_MODE; the console does not need it.",
    ),
    KnownLine(
        r"Found endpoint plugin\(s\) .* but VLLM_PLUGINS is not set",
        "the engine was started without the console: its plugin stays off",
        "Start it from a profile for exact slots and live speculation.",
        harmless=True,
    ),
    KnownLine(
        r"Compiling model again due to a load failure",
        "the compiled code of an earlier start could not be loaded: it compiles anew",
        "It costs the start a minute; delete the cache that the line names if it stays.",
        harmless=True,
    ),
    KnownLine(
        r"leaked (?:semaphore|shared_memory) objects|nanobind: leaked",
        "a process ended without tidying up; the system does it",
        _NOTHING,
        harmless=True,
    ),
    KnownLine(
        r"validation errors? for |RequestValidationError",
        "a client's request was malformed and was refused",
        "The field is in the lines below; the engine goes on.",
        harmless=True,
    ),
    KnownLine(
        r"is longer than the (?:model's context length|maximum model length)"
        r"|maximum context length is \d+ tokens",
        "a request was longer than the context and was refused",
        "Compact the session, or raise max_model_len in the profile.",
        harmless=True,
    ),
    KnownLine(
        r"\[shutdown\] API server: shutdown triggered",
        "the server was told to stop, and stops",
        _NOTHING,
        harmless=True,
    ),
)

LLAMACPP = (
    KnownLine(
        r"no API key is set and CORS allows all origins",
        "the engine itself asks for no key; only the gateway reaches it on its socket",
        _NOTHING,
        harmless=True,
    ),
    KnownLine(
        r"n_ctx_seq \((?P<asked>\d+)\) > n_ctx_train \((?P<trained>\d+)\)",
        "{asked} tokens a request are more than the {trained} that the model was made for",
        "Lower max_model_len: beyond that its answers decay.",
    ),
    KnownLine(
        r"failed to fit params to free device memory",
        "what is asked for is more than the memory that is free",
        "Lower max_model_len or max_running if an allocation fails below.",
    ),
    KnownLine(
        r"cancel task, id_task = \d+",
        "a client left, and its request was ended",
        _NOTHING,
        harmless=True,
    ),
    KnownLine(
        r"LLAMA_SERVER_SLOTS_DEBUG",
        "the slots show the text of requests to whoever asks",
        "Unset LLAMA_SERVER_SLOTS_DEBUG.",
    ),
    KnownLine(
        r"exiting due to",
        "a consequence: the start has failed",
        _ABOVE,
    ),
)
