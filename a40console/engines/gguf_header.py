"""Reads what a GGUF file says of its model, from its header: tensors are left alone."""

from __future__ import annotations

import struct
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO

from a40console.model.figures import Missing
from a40console.model.shape import ModelShape

MAGIC = b"GGUF"
MOST_KEYS = 100_000
MOST_ITEMS = 10_000_000
_STRING, _ARRAY = 8, 9
_PLAIN = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_DAMAGED = (KeyError, ValueError, TypeError, struct.error, ZeroDivisionError, OverflowError)
KEPT_ITEMS = 4096
"""Of an array; a vocabulary is longer and only its length is wanted."""


def gguf_shape(file: Path) -> ModelShape | Missing:
    """The shape by a GGUF file's header, its weights by the file's own size and its parts'."""
    try:
        with file.open("rb") as stream:
            header = _header(stream)
        return _shape(header, _parts_bytes(file), file.name)
    except OSError as error:
        return Missing(f"{file.name} cannot be read: {error.strerror}")
    except (*_DAMAGED, RecursionError) as error:
        return Missing(f"{file.name} is no GGUF file that is understood: {error}")


def _header(stream: BinaryIO) -> dict[str, Any]:
    magic, _, _, keys = struct.unpack("<4sIQQ", stream.read(24))
    if magic != MAGIC or keys > MOST_KEYS:
        raise ValueError("it does not begin as one")
    return {_string(stream): _value(stream, _number(stream, "I")) for _ in range(keys)}


def _value(stream: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(stream)
    if kind != _ARRAY:
        return _number(stream, _PLAIN[kind])
    inner, length = _number(stream, "I"), _number(stream, "Q")
    if length > MOST_ITEMS:
        raise ValueError(f"an array has {length} items")
    if inner in _PLAIN and length > KEPT_ITEMS:
        stream.seek(length * struct.calcsize(_PLAIN[inner]), 1)
        return length
    items = [_value(stream, inner) for _ in range(length)]
    return items if length <= KEPT_ITEMS else length


def _string(stream: BinaryIO) -> str:
    length = _number(stream, "Q")
    if length > MOST_ITEMS:
        raise ValueError(f"a text has {length} bytes")
    return stream.read(length).decode(errors="replace")


def _number(stream: BinaryIO, code: str) -> Any:
    return struct.unpack(f"<{code}", stream.read(struct.calcsize(code)))[0]


def _shape(header: dict[str, Any], size_bytes: int, origin: str) -> ModelShape | Missing:
    kind = header["general.architecture"]

    def of(name: str) -> Any:
        return header.get(f"{kind}.{name}", 0)

    layers, heads = of("block_count"), of("attention.head_count")
    cached = of("attention.head_count_kv")
    if not layers or not (heads or cached):
        return Missing(f"{origin} does not say how many layers or heads its model has")
    each = cached if isinstance(cached, list) else [cached or heads] * layers
    attending = [count for count in each if count]
    latent = of("attention.kv_lora_rank") and of("attention.kv_lora_rank") + of(
        "rope.dimension_count"
    )
    recurrent = layers - len(attending)
    if recurrent and not of("kda.head_dim"):
        return Missing(f"what the recurrent layers of {kind} keep is not known here")
    all_heads = max(heads) if isinstance(heads, list) else heads
    width = of("kda.head_dim") or 0
    tokens = header.get("tokenizer.ggml.tokens", 0)
    return ModelShape(
        layers=layers,
        attention_layers=len(attending),
        kv_heads=0 if latent else max(attending),
        head_dim=0 if latent else of("attention.key_length") or of("embedding_length") // all_heads,
        value_head_dim=0 if latent else of("attention.value_length"),
        latent_dim=latent,
        recurrent_layers=recurrent,
        recurrent_elements=all_heads * width * width if recurrent else 0,
        convolution_channels=3 * all_heads * width if recurrent else 0,
        convolution_taps=max(0, of("ssm.conv_kernel") - 1) if recurrent else 0,
        hidden_size=of("embedding_length"),
        vocabulary=of("vocab_size") or (len(tokens) if isinstance(tokens, list) else tokens),
        attention_heads=all_heads,
        weights_bytes=size_bytes,
        longest_context=of("context_length"),
        origin=origin,
    )


def _parts_bytes(file: Path) -> int:
    """The file, or all parts of one that is divided: `name-00001-of-00005.gguf`."""
    stem, _, count = file.stem.rpartition("-of-")
    if count.isdecimal() and stem[-6:-5] == "-" and stem[-5:].isdecimal():
        parts = list(file.parent.glob(f"{escape(stem[:-5])}*-of-{count}.gguf"))
        return sum(part.stat().st_size for part in parts)
    return file.stat().st_size
