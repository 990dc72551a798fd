"""What an engine's command line asks, in the words in which engines say what is in force. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ON, OFF = "on", "off"
_SAME = {
    "speculative_config": "speculation",
    "enable_prefix_caching": "prefix_caching",
    "ctx_size": "max_model_len",
    "c": "max_model_len",
    "parallel": "max_num_seqs",
    "max_running": "max_num_seqs",
    "t": "threads",
    "ngl": "gpu_layers",
    "n_gpu_layers": "gpu_layers",
    "fa": "flash_attn",
}
"""Other words for one setting."""

_WITHOUT_EFFECT = frozenset(
    {
        *("host", "port", "uds", "api_key", "served_model_name", "alias", "model", "m", "hf_repo"),
        *("enable_prompt_tokens_details", "enable_request_id_headers", "metrics", "slots"),
        *("disable_access_log_for_endpoints", "worker_extension_cls", "disable_log_stats"),
        *("download_dir", "revision", "log_file", "no_webui"),
    }
)
"""Where it listens, what it is called and what it tells; the model is known by its digest."""


def asked_settings(argv: Sequence[str]) -> dict[str, str]:
    """Every flag that could change what is measured; the program and the model are left out."""
    settings: dict[str, str] = {}
    words = [part for word in argv for part in _split(word)]
    flag = ""
    for word in words:
        if _is_flag(word):
            flag = word.lstrip("-").replace("-", "_")
            name = flag.removeprefix("no_")
            settings[canonical(name)] = ON if name == flag else OFF
        elif flag:
            settings[canonical(flag)] = word
            flag = ""
    return {name: value for name, value in settings.items() if name not in _WITHOUT_EFFECT}


def in_force(effective: Mapping[str, str]) -> dict[str, str]:
    """What an engine says of itself, under the same names and in the same words."""
    return {canonical(name): _word(value) for name, value in effective.items()}


def canonical(name: str) -> str:
    """The one name of a setting."""
    plain = name.replace("-", "_")
    return _SAME.get(plain, plain)


def _word(value: str) -> str:
    return {"true": ON, "yes": ON, "false": OFF, "no": OFF}.get(value.strip().casefold(), value)


def _split(word: str) -> tuple[str, ...]:
    """`--flag=value` in two."""
    if _is_flag(word) and "=" in word:
        flag, value = word.split("=", 1)
        return flag, value
    return (word,)


def _is_flag(word: str) -> bool:
    """Whether a word names a setting rather than being one's value: `-1` is a value."""
    return word.startswith("-") and not word.lstrip("-")[:1].isdigit() and word.strip("-") != ""
