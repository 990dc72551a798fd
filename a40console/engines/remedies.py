"""What in a profile mends a fault for certain: one key, its value before and after. Pure.

Where the right value would be a guess there is no fix: the remedy then says what to look at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from a40console.engines.memory_asked import own_amounts
from a40console.engines.vllm_flags import GONE, SERVE_FLAGS
from a40console.model.profile import Profile

Setting = str | int | float | bool | tuple[str, ...]
Groups = Mapping[str, str]
"""What a fault's pattern found in the engine's words."""

LEAST_CONTEXT = 1024
"""A context that is shorter serves nobody: no fix sets one."""

NCCL_P2P = "NCCL_P2P_DISABLE"
_SAME_ANSWERS = "it then serves without speculation: the same answers, slower"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFix:
    """One change of a profile that mends a fault."""

    key: str
    """Dotted, as in the file: `max_model_len`, `environment.NCCL_P2P_DISABLE`."""

    before: Setting | None
    """None where the profile does not set it."""

    after: Setting | None
    """None takes the key out."""

    why: str
    """Why this value, and what it changes besides."""


def fix_for(code: str, found: Groups, profile: Profile) -> ProfileFix | None:
    """The fix of a fault, or None where there is none that is certain.

    Args:
        code: The fault's.
        found: What its pattern found in the engine's words.
        profile: What was started.
    """
    make = _FIXES.get(code)
    fix = make(found, profile) if make is not None else None
    return None if fix is None or fix.before == fix.after else fix


def _to_fit_the_cache(found: Groups, profile: Profile) -> ProfileFix | None:
    why = "vLLM estimates that one request of that length fills the KV cache"
    return _shorter(found, profile, why)


def _to_fit_the_model(found: Groups, profile: Profile) -> ProfileFix | None:
    return _shorter(found, profile, "the model was made for no more")


def _shorter(found: Groups, profile: Profile, why: str) -> ProfileFix | None:
    most = _count(found.get("most"))
    if most is None or most < LEAST_CONTEXT:
        return None
    own = with_value(profile.arguments, "--max-model-len", str(most))
    if own is not None:
        return _arguments(profile, own, why)
    if profile.max_model_len is not None and profile.max_model_len <= most:
        return None  # it was not the profile's value that was too long
    return ProfileFix(key="max_model_len", before=profile.max_model_len, after=most, why=why)


def _without_unknown_flags(found: Groups, profile: Profile) -> ProfileFix | None:
    """Certain only where each of them changes nothing any more, or is merely spelt otherwise."""
    words, reasons = list(profile.arguments), []
    refused = found.get("flags", found.get("flag", "")).split()
    for flag, values in _with_their_values(refused):
        spelt = flag.lower().replace("_", "-")
        place = _place(words, [flag, *values])
        if place is None:
            return None  # it is not the profile that gives it
        if flag in GONE:
            words[place : place + 1 + len(values)] = []
            reasons.append(f"{flag} changes nothing any more: {GONE[flag]}")
        elif spelt in SERVE_FLAGS and profile.speaks_vllm:
            words[place] = spelt
            reasons.append(f"vLLM spells it {spelt}")
        else:
            return None
    return _arguments(profile, tuple(words), "; ".join(reasons)) if reasons else None


def _with_their_values(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """`--a 1 --b` as argparse lists what it does not know: each flag with what stands behind it."""
    flags: list[tuple[str, list[str]]] = []
    for word in words:
        if word.startswith("-") or not flags:
            flags.append((word, []))
        else:
            flags[-1][1].append(word)
    return flags


def _place(words: Sequence[str], part: Sequence[str]) -> int | None:
    size = len(part)
    places = range(len(words) - size + 1)
    return next((n for n in places if list(words[n : n + size]) == list(part)), None)


def _renamed_flag(found: Groups, profile: Profile) -> ProfileFix | None:
    """Where the engine names the one successor of a flag that it no longer takes."""
    said = re.search(r"has been removed\. use (--[\w-]+)\s*$", found.get("why", ""))
    flag = found.get("flag", "")
    if said is None or flag not in profile.arguments:
        return None
    words = tuple(said[1] if word == flag else word for word in profile.arguments)
    return _arguments(profile, words, f"the engine names {said[1]} in its place")


def _known_parser(found: Groups, profile: Profile) -> ProfileFix | None:
    """Where a parser of the list is the same but for dashes, underscores and capitals."""
    key = "tool_call_parser" if found.get("what") == "tool call" else "reasoning_parser"
    asked, listed = found.get("name", ""), re.findall(r"[\w.-]+", found.get("known", ""))
    same = [name for name in listed if _bare(name) == _bare(asked)]
    if len(same) != 1 or getattr(profile, key) != asked:
        return None
    return ProfileFix(key=key, before=asked, after=same[0], why=f"vLLM spells it {same[0]}")


def _bare(name: str) -> str:
    return re.sub(r"[-_.]", "", name).casefold()


def _no_speculation(found: Groups, profile: Profile) -> ProfileFix | None:
    for flag in ("--speculative-config", "-sc"):
        own = without_flag(profile.arguments, flag)
        if own is not None:
            return _arguments(profile, own, _SAME_ANSWERS)
    asked = profile.speculation
    if asked is None or asked.locked is not None:
        return None
    if asked.start is None:
        return ProfileFix(
            key="speculation.enabled", before=asked.enabled, after=False, why=_SAME_ANSWERS
        )
    if asked.enabled:
        return None  # two keys ask for it
    return ProfileFix(key="speculation.start", before=asked.start, after=None, why=_SAME_ANSWERS)


def _no_async_scheduling(found: Groups, profile: Profile) -> ProfileFix | None:
    own = tuple(word for word in profile.arguments if word != "--async-scheduling")
    return _arguments(profile, own, "vLLM keeps it off with this kind of speculation anyway")


def _on_a_socket(found: Groups, profile: Profile) -> ProfileFix | None:
    if profile.listen != "loopback":
        return None
    why = "no port is needed then: the gateway reaches the engine on a socket of its own"
    return ProfileFix(key="listen", before="loopback", after="socket", why=why)


def _default_cache_type(found: Groups, profile: Profile) -> ProfileFix | None:
    if profile.kv_cache_dtype is None:
        return None
    why = "this engine has no such type; its default may take more memory a token"
    return ProfileFix(key="kv_cache_dtype", before=profile.kv_cache_dtype, after="auto", why=why)


def _as_it_is_quantised(found: Groups, profile: Profile) -> ProfileFix | None:
    why = "vLLM finds out by itself how a model is quantised"
    return ProfileFix(key="quantization", before=profile.quantization, after=None, why=why)


def _room_for_all(found: Groups, profile: Profile) -> ProfileFix | None:
    rows = _count(found.get("rows"))
    if rows is None or profile.max_batched_tokens != _count(found.get("batch")):
        return None
    why = "each of the requests has one token in a pass then"
    return ProfileFix(
        key="max_batched_tokens", before=profile.max_batched_tokens, after=rows, why=why
    )


def _flash_attention(found: Groups, profile: Profile) -> ProfileFix | None:
    if profile.executable is None:
        return None  # the embedded server takes no arguments
    words = (*profile.arguments, "--flash-attn", "on")
    return _arguments(profile, words, "llama.cpp takes a quantised V cache with it only")


def _no_peer_to_peer(found: Groups, profile: Profile) -> ProfileFix | None:
    if NCCL_P2P in profile.environment or not several_gpus(profile):
        return None
    why = "the GPUs then talk through the machine's memory: slower, and it starts"
    return ProfileFix(key=f"environment.{NCCL_P2P}", before=None, after="1", why=why)


def several_gpus(profile: Profile) -> bool:
    """Whether it shares a model among GPUs, by its own arguments or else by its settings."""
    own = own_amounts(profile.arguments)
    tensor = own.get("tensor_parallel") or profile.tensor_parallel or 1
    return max(tensor, own.get("pipeline_parallel", 1)) > 1


def value_of(arguments: Sequence[str], flag: str) -> str | None:
    """What stands behind a flag; the last one counts, as for argparse."""
    found = None
    for index, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") == flag:
            found = value if equals else next(iter(arguments[index + 1 : index + 2]), None)
    return found


def with_value(arguments: Sequence[str], flag: str, value: str) -> tuple[str, ...] | None:
    """The arguments with another value behind a flag; None where they do not hold it."""
    words, held = list(arguments), False
    for index, word in enumerate(words):
        name, equals, _ = word.partition("=")
        if name.replace("_", "-") != flag:
            continue
        held = True
        if equals:
            words[index] = f"{name}={value}"
        elif index + 1 < len(words):
            words[index + 1] = value
    return tuple(words) if held else None


def without_flag(arguments: Sequence[str], flag: str) -> tuple[str, ...] | None:
    """The arguments without a flag and what stands behind it; None where they do not hold it."""
    for index, word in enumerate(arguments):
        name, equals, _ = word.partition("=")
        if name.replace("_", "-") == flag:
            after = index + (1 if equals else 2)
            return (*arguments[:index], *arguments[after:])
    return None


def _arguments(profile: Profile, words: tuple[str, ...], why: str) -> ProfileFix:
    return ProfileFix(key="arguments", before=profile.arguments, after=words, why=why)


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,12}", text) else None


_FIXES: dict[str, Callable[[Groups, Profile], ProfileFix | None]] = {
    "kv-cache-too-small": _to_fit_the_cache,
    "context-beyond-model": _to_fit_the_model,
    "unknown-flag": _without_unknown_flags,
    "bad-value": _renamed_flag,
    "unknown-parser": _known_parser,
    "speculation-json": _no_speculation,
    "speculation-method": _no_speculation,
    "speculation-key": _no_speculation,
    "speculation-refused": _no_speculation,
    "async-speculation": _no_async_scheduling,
    "address-in-use": _on_a_socket,
    "kv-dtype-unknown": _default_cache_type,
    "not-quantized-so": _as_it_is_quantised,
    "batch-below-running": _room_for_all,
    "kv-dtype-needs-flash-attention": _flash_attention,
    "nccl-stuck": _no_peer_to_peer,
}
"""By the fault's code."""
