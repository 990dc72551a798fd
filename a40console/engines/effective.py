"""What a profile asked, beside what the engine says that it runs. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from a40console.engines import llamacpp, vllm
from a40console.engines.logs import strip_escapes
from a40console.model.figures import Missing
from a40console.model.profile import Profile
from a40console.model.snapshot import Difference

Setting = str | int | float | bool

EVIDENCE_CHARS = 240

_CONFIG = re.compile(r"Initializing a V1 LLM engine \(v[^)]*\) with config: ")
_NON_DEFAULT = re.compile(r"non-default args: (?P<args>\{.*\})")
_SCHEDULED = re.compile(r"max_num_scheduled_tokens is set to (?P<tokens>\d+) based on")
_CHUNKED = re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(?P<tokens>\d+)")
_NOT_ASYNC = re.compile(r"(?i)async(?:hronous)? scheduling .*\bdisabled\b")
_GRAPHS = re.compile(r"(?:setting cudagraph_mode=|Overriding cudagraph_mode to )(?P<mode>[A-Z_]+)")
_NO_GRAPHS = re.compile(r"'cudagraph_mode': <CUDAGraphMode\.NONE")
_NO_PREFIX_CACHE = re.compile(r"Disabling prefix caching|Prefix caching is not supported")
_FITTED = re.compile(r"Auto-fit max_model_len: reduced from \d+ to (?P<tokens>\d+)")
_SLOTS = re.compile(r"initializing, n_slots = (?P<slots>\d+), n_ctx_slot = (?P<context>\d+)")
_THREADS = re.compile(r"threadpool init, n_threads = (?P<threads>\d+)")
_SPECULATION = re.compile(r"speculative_config=SpeculativeConfig\(method='(?P<method>[^']*)'")
_DEPTH = re.compile(r"speculative_config=SpeculativeConfig\([^)]*num_spec_tokens=(?P<depth>\d+)")
_CONFIG_KEYS = {
    "max_model_len": "max_seq_len",
    "enforce_eager": "enforce_eager",
    "kv_cache_dtype": "kv_cache_dtype",
    "quantization": "quantization",
    "enable_prefix_caching": "enable_prefix_caching",
}
_CACHE_KEYS = {
    "kv_cache_dtype": "cache_dtype",
    "enable_prefix_caching": "enable_prefix_caching",
    "gpu_memory_utilization": "gpu_memory_utilization",
}
_SWITCHES = frozenset({"enable_prefix_caching", "async_scheduling", "enforce_eager"})
_NAMES = frozenset({"kv_cache_dtype", "quantization", "tool_call_parser", "reasoning_parser"})
_COUNTS = frozenset(
    {"max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization"}
)
_ECHOED = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "gpu_memory_utilization",
    "tool_call_parser",
    "reasoning_parser",
)


@dataclass(frozen=True, slots=True)
class _Said:
    value: Setting
    evidence: str
    changed: bool = False
    """The engine says that it changed this by itself: told even where nothing was asked."""


def differences(profile: Profile, lines: Sequence[str]) -> tuple[Difference, ...] | Missing:
    """Every setting that runs otherwise than asked, or was changed though nothing was asked.

    Args:
        profile: What was asked.
        lines: The output of this start.
    """
    clean = [strip_escapes(line).rstrip() for line in lines]
    if profile.speaks_vllm:
        asked, said = _vllm_asked(profile), _vllm_said(clean)
    else:
        asked, said = _llamacpp_asked(profile), _llamacpp_said(clean)
    if not said:
        return Missing("the engine's start is not in its log")
    return tuple(
        Difference(
            setting=setting,
            asked=asked.get(setting),
            effective=answer.value,
            evidence=answer.evidence,
        )
        for setting, answer in said.items()
        if (asked.get(setting) is not None or answer.changed)
        and not _same(setting, asked.get(setting), answer.value)
    )


def with_cache_config(
    known: tuple[Difference, ...] | Missing, profile: Profile, settings: Mapping[str, Setting]
) -> tuple[Difference, ...] | Missing:
    """The differences with what vLLM's `cache_config_info` metric says of the cache now.

    The metric overrules the log: it is the engine's last word.

    Args:
        known: What the log of this start showed.
        profile: What was asked.
        settings: The metric's labels; empty where it could not be read.
    """
    said = {name: settings[label] for name, label in _CACHE_KEYS.items() if label in settings}
    if not profile.speaks_vllm or not said:
        return known
    asked = _vllm_asked(profile)
    kept = () if isinstance(known, Missing) else known
    agreed = {
        entry.setting
        for entry in kept
        if isinstance(entry.effective, Missing)
        or _same(entry.setting, entry.effective, said.get(entry.setting, entry.effective))
    }
    fresh = tuple(
        Difference(
            setting=name,
            asked=asked[name],
            effective=value,
            evidence=f"cache_config_info: {_CACHE_KEYS[name]}={value}",
        )
        for name, value in said.items()
        if name not in agreed and asked[name] is not None and not _same(name, asked[name], value)
    )
    return (*(entry for entry in kept if entry.setting in agreed), *fresh)


def _same(setting: str, asked: Setting | None, effective: Setting) -> bool:
    if setting == "kv_cache_dtype" and asked == "fp8":
        return str(effective).startswith("fp8")
    if isinstance(asked, str) and isinstance(effective, str):
        return asked.casefold() == effective.casefold()
    return asked == effective


def _vllm_asked(profile: Profile) -> dict[str, Setting | None]:
    speculation = profile.speculation
    on = speculation is not None and speculation.ready
    own = _own_words(profile.arguments)
    fields: dict[str, Setting | None] = {
        "max_model_len": profile.max_model_len,
        "max_num_seqs": profile.max_running,
        "max_num_batched_tokens": vllm.batched_tokens(profile),
        "kv_cache_dtype": profile.kv_cache_dtype,
        "gpu_memory_utilization": profile.gpu_memory_utilization,
        "quantization": profile.quantization,
        "enable_prefix_caching": profile.prefix_caching,
        "async_scheduling": profile.async_scheduling,
        "enforce_eager": profile.enforce_eager,
        "tool_call_parser": profile.tool_call_parser,
        "reasoning_parser": profile.reasoning_parser,
        "speculation": speculation.method if speculation is not None and on else "off",
        "num_speculative_tokens": speculation.tokens if speculation is not None and on else None,
    }
    return {name: own.get(name) if field is None else field for name, field in fields.items()}


def _own_words(arguments: Sequence[str]) -> dict[str, Setting]:
    """What a profile's own arguments ask; amounts in words, such as `auto`, ask nothing."""
    asked: dict[str, Setting] = {}
    words = [part for argument in arguments for part in argument.split("=", 1)]
    for flag, after in pairwise([*words, ""]):
        name = flag.removeprefix("--").replace("-", "_") if flag.startswith("--") else ""
        if (switch := name.removeprefix("no_")) in _SWITCHES:
            asked[switch] = switch == name
        elif name in _NAMES:
            asked[name] = after
        elif name in _COUNTS and isinstance(count := _value(after), int | float) and count > 0:
            asked[name] = count
    return asked


def _vllm_said(lines: Sequence[str]) -> dict[str, _Said]:
    """Later answers replace earlier ones: an engine changes its mind while it starts."""
    said: dict[str, _Said] = {}
    for line in lines:
        if (match := _NON_DEFAULT.search(line)) is not None:
            said |= _from_arguments(match["args"])
        if (match := _CONFIG.search(line)) is not None:
            said |= _from_config(line[match.end() :], said)
        said |= _from_notice(line)
    return said


def _from_arguments(text: str) -> dict[str, _Said]:
    """The arguments as vLLM took them: the profile's own may overrule ours."""
    try:
        arguments = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return {}
    return {
        name: _Said(arguments[name], f"non-default args: {name}={arguments[name]!r}")
        for name in _ECHOED
        if isinstance(arguments.get(name), (str, int, float, bool))
    }


def _from_config(config: str, before: Mapping[str, _Said]) -> dict[str, _Said]:
    said, words = {}, set(config.split(", "))
    for setting, key in _CONFIG_KEYS.items():
        if (match := re.search(rf"(?:^|, ){key}=([^,]+)", config)) is not None:
            said[setting] = _Said(_value(match[1]), f"engine config: {key}={match[1]}")
    speculation = _SPECULATION.search(config)
    method = speculation["method"] if speculation else "off"
    evidence = speculation[0] if speculation else "speculative_config=None"
    said["speculation"] = _Said(method, f"engine config: {evidence}")
    if (depth := _DEPTH.search(config)) is not None:
        said["num_speculative_tokens"] = _Said(int(depth["depth"]), f"engine config: {depth[0]})")
    if "device_config=cpu" in words and "async_scheduling" not in before:
        said["async_scheduling"] = _Said(False, "engine config: device_config=cpu, always without")
    if _NO_GRAPHS.search(config) and not {"device_config=cpu", "enforce_eager=True"} & words:
        said["cudagraph_mode"] = _Said("NONE", "engine config: cudagraph_mode=NONE", changed=True)
    return said


def _from_notice(line: str) -> dict[str, _Said]:
    """Lines in which vLLM says that it runs otherwise."""
    evidence = _cut(vllm.split_prefix(line)[1])
    if _NOT_ASYNC.search(line):
        return {"async_scheduling": _Said(False, evidence, changed=True)}
    if (match := _SCHEDULED.search(line)) is not None:
        tokens = int(match["tokens"])
        return {"max_num_batched_tokens": _Said(tokens, evidence, changed=True)}
    if (match := _CHUNKED.search(line)) is not None:
        return {"max_num_batched_tokens": _Said(int(match["tokens"]), evidence)}
    if (match := _GRAPHS.search(line)) is not None:
        return {"cudagraph_mode": _Said(match["mode"], evidence, changed=True)}
    if _NO_PREFIX_CACHE.search(line):
        return {"enable_prefix_caching": _Said(False, evidence, changed=True)}
    if (match := _FITTED.search(line)) is not None:
        return {"max_model_len": _Said(int(match["tokens"]), evidence, changed=True)}
    return {}


def _llamacpp_asked(profile: Profile) -> dict[str, Setting | None]:
    return {
        "max_model_len": profile.max_model_len,
        "max_running": llamacpp.slots(profile),
        "threads": profile.threads,
    }


def _llamacpp_said(lines: Sequence[str]) -> dict[str, _Said]:
    said = {}
    for line in lines:
        evidence = _cut(llamacpp.strip_prefix(line))
        if (match := _SLOTS.search(line)) is not None:
            said["max_model_len"] = _Said(int(match["context"]), evidence)
            said["max_running"] = _Said(int(match["slots"]), evidence)
        if (match := _THREADS.search(line)) is not None:
            said["threads"] = _Said(int(match["threads"]), evidence)
    return said


def _value(text: str) -> Setting:
    """A setting as vLLM prints it: Python's words for numbers, truth and nothing."""
    words = text.strip().strip("'\"")
    try:
        value = ast.literal_eval(words)
    except (ValueError, SyntaxError):
        return words
    return value if isinstance(value, (str, int, float, bool)) else words


def _cut(text: str) -> str:
    return text if len(text) <= EVIDENCE_CHARS else text[: EVIDENCE_CHARS - 1] + "…"
