"""Finds the chat template that vLLM will use for a model, where its files are on this disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from a40console.engines.remedies import value_of
from a40console.engines.snapshots import hub_cache, is_repository, repository_folder
from a40console.files import read_json
from a40console.model.profile import Profile

TEMPLATE_FILE = "chat_template.jinja"
TOKENIZER_FILE = "tokenizer_config.json"
LONGEST_BYTES = 8 * 1024 * 1024
"""A longer file is no template, and would hold up who reads it."""


def read_chat_template(profile: Profile, environment: Mapping[str, str]) -> str | None:
    """The template's text; None where there is none, or it is not on this disk.

    Args:
        profile: May name another template or tokenizer in its arguments.
        environment: Where the hub's cache is taken from.
    """
    if (named := value_of(profile.arguments, "--chat-template")) is not None:
        return _text(Path(named).expanduser())
    model = value_of(profile.arguments, "--tokenizer") or profile.model
    folder = _folder(model, environment)
    if folder is None:
        return None
    return _text(folder / TEMPLATE_FILE) or _in_tokenizer(folder / TOKENIZER_FILE)


def _folder(model: str, environment: Mapping[str, str]) -> Path | None:
    """Where the model's small files lie."""
    if not is_repository(model):
        return Path(model).expanduser()
    kept = repository_folder(model, hub_cache(environment))
    try:
        commit = (kept / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return kept / "snapshots" / commit if commit else None


def _text(file: Path) -> str | None:
    try:
        if not file.is_file() or file.stat().st_size > LONGEST_BYTES:
            return None
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def _in_tokenizer(file: Path) -> str | None:
    """What older repositories keep among the tokenizer's settings; of several the tools' own."""
    try:
        if not file.is_file() or file.stat().st_size > LONGEST_BYTES:
            return None
        kept: Any = read_json(file)
        found = kept.get("chat_template") if isinstance(kept, dict) else None
    except (OSError, ValueError):
        return None
    if isinstance(found, list):
        named = {each.get("name"): each.get("template") for each in found if isinstance(each, dict)}
        found = named.get("tool_use") or named.get("default")
    return found if isinstance(found, str) else None
