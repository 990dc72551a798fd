"""A GGUF file's header to a shape: a dense model, and one with latent and recurrent layers."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a40console.engines.gguf_header import gguf_shape
from a40console.model.figures import Missing
from a40console.model.shape import ModelShape

U32, TEXT, LIST = 4, 8, 9


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def packed(value: Any) -> bytes:
    match value:
        case str():
            return struct.pack("<I", TEXT) + text(value)
        case list():
            kind, each = (TEXT, text) if isinstance(value[0], str) else (U32, word)
            head = struct.pack("<IIQ", LIST, kind, len(value))
            return head + b"".join(each(item) for item in value)
        case _:
            return struct.pack("<I", U32) + word(value)


def word(value: int) -> bytes:
    return struct.pack("<I", value)


def header(keys: dict[str, Any]) -> bytes:
    body = b"".join(text(key) + packed(value) for key, value in keys.items())
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, len(keys)) + body


DENSE = {
    "general.architecture": "llama",
    "llama.block_count": 30,
    "llama.embedding_length": 576,
    "llama.attention.head_count": 9,
    "llama.attention.head_count_kv": 3,
    "llama.context_length": 8192,
    "tokenizer.ggml.tokens": ["a"] * 5000,
}
HYBRID = {
    "general.architecture": "kimi-linear",
    "kimi-linear.block_count": 27,
    "kimi-linear.embedding_length": 2304,
    "kimi-linear.attention.head_count": 32,
    "kimi-linear.attention.head_count_kv": [0, 0, 0, 1] * 6 + [0, 0, 1],
    "kimi-linear.attention.kv_lora_rank": 512,
    "kimi-linear.rope.dimension_count": 64,
    "kimi-linear.kda.head_dim": 128,
    "kimi-linear.ssm.conv_kernel": 4,
}


def shape(folder: Path, keys: dict[str, Any]) -> ModelShape | Missing:
    file = folder / "model.gguf"
    file.write_bytes(header(keys))
    return gguf_shape(file)


def test_a_dense_model(tmp_path: Path) -> None:
    found = shape(tmp_path, DENSE)
    assert isinstance(found, ModelShape)
    assert (found.layers, found.attention_layers, found.kv_heads, found.head_dim) == (30, 30, 3, 64)
    assert (found.vocabulary, found.longest_context) == (5000, 8192)
    assert found.weights_bytes == (tmp_path / "model.gguf").stat().st_size


def test_latent_attention_with_recurrent_layers(tmp_path: Path) -> None:
    found = shape(tmp_path, HYBRID)
    assert isinstance(found, ModelShape)
    assert (found.attention_layers, found.recurrent_layers, found.latent_dim) == (7, 20, 576)
    assert (found.recurrent_elements, found.convolution_channels) == (524_288, 12_288)


def test_recurrent_layers_of_another_kind_are_not_known(tmp_path: Path) -> None:
    other = {key: value for key, value in HYBRID.items() if "kda" not in key}
    assert shape(tmp_path, other) == Missing(
        "what the recurrent layers of kimi-linear keep is not known here"
    )


@pytest.mark.parametrize("name", ["model", "a[1] model*", "what?"])
def test_all_parts_of_a_divided_model_count(tmp_path: Path, name: str) -> None:
    first = tmp_path / f"{name}-00001-of-00002.gguf"
    first.write_bytes(header(DENSE))
    (tmp_path / f"{name}-00002-of-00002.gguf").write_bytes(b"x" * 1000)
    found = gguf_shape(first)
    assert isinstance(found, ModelShape)
    assert found.weights_bytes == first.stat().st_size + 1000


NESTED = struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + text("a") + struct.pack("<I", LIST)
NESTED += struct.pack("<IQ", LIST, 1) * 5000
"""A list in a list in a list…"""


@pytest.mark.parametrize("content", [NESTED, b"", b"GGUF", b"GGUF" + b"\xff" * 64, b"no model" * 9])
def test_a_file_that_is_no_model(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    assert isinstance(gguf_shape(file), Missing)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 4000), st.binary(min_size=1, max_size=8))
def test_a_damaged_header_raises_nothing(tmp_path: Path, place: int, noise: bytes) -> None:
    whole = bytearray(header(HYBRID))
    place %= len(whole)
    whole[place : place + len(noise)] = noise
    file = tmp_path / "model.gguf"
    file.write_bytes(bytes(whole))
    assert isinstance(gguf_shape(file), ModelShape | Missing)
