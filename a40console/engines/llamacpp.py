"""llama.cpp's server, as a binary or embedded: command lines, and what its log says. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from a40console.engines.phases import PhaseRule
from a40console.model.profile import Profile, Speculation

SHORTEST_DRAFT = 1
"""llama.cpp's own default drops drafts below 48 tokens: none would be seen on short answers."""

POLLING_THREADS = 32
"""HTTP threads beyond the slots: each waiting request holds one, and health must still answer."""


def context_tokens(profile: Profile) -> int | None:
    """The whole context, which llama.cpp divides among its slots; None leaves it to the model."""
    if profile.max_model_len is None:
        return None
    return profile.max_model_len * slots(profile)


def slots(profile: Profile) -> int:
    """Sequences decoded at once."""
    return profile.max_running or 1


def server_arguments(
    profile: Profile, *, model: str, address: Sequence[str], threads: int
) -> list[str]:
    """Everything behind `llama-server`: our flags, then the profile's own."""
    source = "--hf-repo" if profile.fetched_by_engine else "--model"
    words = [source, model, "--alias", profile.public_name, *address, "--metrics", "--slots"]
    words += ["--parallel", str(slots(profile))]
    words += ["--threads-http", str(slots(profile) + POLLING_THREADS)]
    if (context := context_tokens(profile)) is not None:
        words += ["--ctx-size", str(context)]
    words += ["--threads", str(profile.threads or threads)]
    if profile.max_batched_tokens is not None:
        words += ["--batch-size", str(profile.max_batched_tokens)]
    if profile.kv_cache_dtype is not None:
        kind = profile.kv_cache_dtype
        words += ["--cache-type-k", kind, "--cache-type-v", kind]
    if profile.prefix_caching is not None:
        words.append("--cache-prompt" if profile.prefix_caching else "--no-cache-prompt")
    return [*words, *_speculation(profile.speculation), *profile.arguments]


def embedded_arguments(
    profile: Profile, *, model: str, address: Sequence[str], threads: int
) -> list[str]:
    """Everything behind the embedded server's script."""
    words = ["--model", model, "--alias", profile.public_name, *address]
    words += ["--slots", str(slots(profile)), "--threads", str(profile.threads or threads)]
    if (context := context_tokens(profile)) is not None:
        words += ["--context-tokens", str(context)]
    if (asked := profile.speculation) is not None and asked.enabled:
        words += ["--draft-tokens", str(asked.tokens)]
        if asked.prompt_lookup_max is not None:
            words += ["--match-tokens", str(asked.prompt_lookup_max)]
    return words


def _speculation(asked: Speculation | None) -> list[str]:
    if asked is None or not asked.ready:
        return []
    if asked.method != "ngram":
        return ["--spec-type", asked.method, "--spec-draft-n-max", str(asked.tokens)]
    words = ["--spec-type", "ngram-mod", "--spec-ngram-mod-n-max", str(asked.tokens)]
    words += ["--spec-ngram-mod-n-min", str(SHORTEST_DRAFT)]
    if asked.prompt_lookup_max is not None:
        words += ["--spec-ngram-mod-n-match", str(asked.prompt_lookup_max)]
    return words


_PREFIX = re.compile(r"^\d+\.\d\d\.\d{3}\.\d{3} [A-Z] (?:\w+ +)?")


def strip_prefix(line: str) -> str:
    """A line without its time, level and tag."""
    return _PREFIX.sub("", line, count=1)


PHASES = (
    PhaseRule(
        "download",
        r"(?i)download\w* .*?(\d+(?:\.\d+)?%).*?(\d+(?:\.\d+)? ?[KMG]i?B/s)",
        "{}, {}",
    ),
    PhaseRule("download", r"(?i)download\w* .*?(\d+(?:\.\d+)?%)", "{}"),
    PhaseRule("load", r"load_model: loading model"),
    PhaseRule("load", r"llama threadpool init", "weights loaded"),
    PhaseRule(
        "load", r"initializing, n_slots = (\d+), n_ctx_slot = (\d+)", "{} slots of {} tokens"
    ),
    PhaseRule("load", r"common_init_?\w*: (?:added|warming up)", "warming up"),
    PhaseRule("ready", r"(?:model loaded|listening on )"),
)
"""Phases by the lines that begin or advance them."""
