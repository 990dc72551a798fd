"""Finds a model's shape on this machine: its folder, the hub's cache, its file, or the profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from a40console.engines.gguf_header import gguf_shape
from a40console.engines.model_config import shape_of
from a40console.engines.snapshots import (
    WEIGHTS,
    hub_cache,
    is_repository,
    read_snapshot,
)
from a40console.engines.weights import place
from a40console.errors import RefusedError
from a40console.files import parse_json
from a40console.model.figures import Missing
from a40console.model.profile import Profile
from a40console.model.shape import ModelShape

CONFIG = "config.json"
INDEX = "*.safetensors.index.json"


def find_shape(
    profile: Profile, models: Path, environment: Mapping[str, str]
) -> ModelShape | Missing:
    """The shape of a profile's model; what lies here goes before what the profile states.

    Args:
        profile: Names the model.
        models: Where model files are fetched to.
        environment: Names the hub's cache.
    """
    found = _here(profile, models, environment)
    stated = profile.shape
    if isinstance(found, Missing):
        return found if stated is None else stated
    if stated is not None and not found.weights_bytes:
        return replace(found, weights_bytes=stated.weights_bytes)
    return found


def longest_context(profile: Profile, environment: Mapping[str, str]) -> int:
    """Tokens that a vLLM's model was made for; 0 where that is not known.

    Args:
        profile: Names the model.
        environment: Names the hub's cache.
    """
    if profile.kind != "vllm":
        return profile.shape.longest_context if profile.shape is not None else 0
    shape = find_shape(profile, Path(), environment)
    return 0 if isinstance(shape, Missing) else shape.longest_context


def folder_shape(folder: Path) -> ModelShape | Missing:
    """The shape by a folder's `config.json` and weight files."""
    try:
        config = parse_json((folder / CONFIG).read_bytes())
    except OSError as error:
        return Missing(f"{folder / CONFIG} cannot be read: {error.strerror}")
    except ValueError as error:
        return Missing(f"{folder / CONFIG} is no JSON: {error}")
    if not isinstance(config, dict):
        return Missing(f"{folder / CONFIG} holds no table")
    shape = shape_of(config, str(folder / CONFIG))
    if isinstance(shape, Missing):
        return shape
    return replace(shape, weights_bytes=_weights_bytes(folder))


def _here(profile: Profile, models: Path, environment: Mapping[str, str]) -> ModelShape | Missing:
    if profile.kind == "llamacpp":
        return _file_shape(profile, models)
    if profile.kind == "sim":
        return Missing("a simulated engine holds no model")
    folder = Path(profile.model).expanduser()
    if folder.is_dir():
        return folder_shape(folder)
    if not is_repository(profile.model):
        return Missing(f"{profile.model} is neither a folder here nor a repository of the hub")
    cached = read_snapshot(profile.model, hub_cache(environment))
    if cached is None or cached.commit is None:
        return Missing(f"{profile.model} is not on this machine, and the profile has no [shape]")
    return folder_shape(cached.folder / "snapshots" / cached.commit)


def _file_shape(profile: Profile, models: Path) -> ModelShape | Missing:
    try:
        file = place(profile.file, models) if profile.file else Path(profile.model).expanduser()
    except RefusedError as error:
        return Missing(error.message)
    if not file.is_file():
        return Missing(f"{file.name} is not on this machine, and the profile has no [shape]")
    return gguf_shape(file)


def _weights_bytes(folder: Path) -> int:
    """By the index of its parts, else by the files; 0 where they are not all here."""
    for index in folder.glob(INDEX):
        try:
            table = json.loads(index.read_bytes())
            names = {folder / str(name) for name in table["weight_map"].values()}
            return sum(part.stat().st_size for part in names)
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return _stated_bytes(index)
    files = [path for path in folder.glob("*") if path.suffix in WEIGHTS]
    kinds = {suffix: [f for f in files if f.suffix == suffix] for suffix in WEIGHTS}
    for suffix in WEIGHTS:
        if kinds[suffix]:
            return sum(path.stat().st_size for path in kinds[suffix])
    return 0


def _stated_bytes(index: Path) -> int:
    """What an index says of all parts, where some are still on the hub."""
    try:
        size = json.loads(index.read_bytes())["metadata"]["total_size"]
        return size if isinstance(size, int) and size > 0 else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0
