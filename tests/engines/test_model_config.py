"""A configuration to a shape: every family of the profiles, and whatever else a file may hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines.model_config import quantised_bits, shape_of
from a40console.engines.model_size import weights_bytes
from a40console.model.figures import Estimated, Missing, number
from a40console.model.shape import ModelShape
from tests.engines.model_configs import config, shape


def test_heads_and_their_width() -> None:
    found = shape("qwen3-coder-30b")
    assert (found.layers, found.attention_layers, found.kv_heads, found.head_dim) == (
        48,
        48,
        4,
        128,
    )
    assert (found.experts, found.experts_per_token, found.expert_intermediate_size) == (128, 8, 768)
    assert (found.longest_context, found.weight_bits, found.sliding_layers) == (262144, 4.5, 0)


def test_latent_attention_with_recurrent_layers() -> None:
    found = shape("kimi-linear-48b")
    assert (found.attention_layers, found.recurrent_layers, found.latent_dim) == (7, 20, 576)
    assert (found.recurrent_elements, found.convolution_channels) == (524_288, 12_288)
    assert (found.convolution_taps, found.dense_layers, found.shared_experts) == (3, 1, 1)


def test_gated_delta_networks() -> None:
    found = shape("qwen3-coder-next-80b")
    assert (found.attention_layers, found.recurrent_layers) == (12, 36)
    assert (found.recurrent_elements, found.convolution_channels) == (524_288, 8_192)
    assert found.shared_experts == 1


def test_windows() -> None:
    found = shape("sliding-dense")
    assert (found.attention_layers, found.sliding_layers, found.sliding_window) == (2, 10, 1024)


def test_the_text_part_of_a_model_that_sees() -> None:
    whole = {"model_type": "seeing", "vision_config": {}, "text_config": config("smollm2-135m")}
    found = shape_of(whole)
    assert isinstance(found, ModelShape)
    assert (found.layers, found.kv_heads) == (30, 3)


@pytest.mark.parametrize(
    ("quantization", "bits"),
    [
        (None, 0.0),
        ({"quant_method": "fp8"}, 8.0),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, 4.15625),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, 4.125),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8.0),
    ],
)
def test_bits_a_weight(quantization: dict[str, Any] | None, bits: float) -> None:
    assert quantised_bits(quantization) == bits


@pytest.mark.parametrize(
    ("name", "counted_bytes", "tolerance"),
    [
        ("smollm2-135m", 269_060_552, 0.001),
        ("qwen3-coder-30b", 16.9 * 2**30, 0.01),
        ("kimi-linear-48b", 28.4 * 2**30, 0.08),  # it keeps its attention in full
    ],
)
def test_weights_worked_out_are_near_those_counted(
    name: str, counted_bytes: float, tolerance: float
) -> None:
    found = weights_bytes(shape(name))
    assert isinstance(found, Estimated)
    assert found.value == pytest.approx(counted_bytes, rel=tolerance)


def test_what_the_engine_is_to_make_of_the_weights() -> None:
    dense = shape("sliding-dense")
    whole, halved = number(weights_bytes(dense)), number(weights_bytes(dense, "fp8"))
    assert whole is not None
    assert halved is not None
    assert halved < 0.75 * whole


def test_a_kind_of_layer_that_is_not_known_is_missing_with_its_name() -> None:
    odd = config("sliding-dense") | {"layer_types": ["full_attention", "rwkv"]}
    assert shape_of(odd) == Missing("its layers of the kind 'rwkv' are not known here")
    foreign = config("smollm2-135m") | {"hybrid_override_pattern": "M-M*-"}
    assert isinstance(shape_of(foreign), Missing)


def test_what_it_does_not_say_is_named() -> None:
    bare = {"num_hidden_layers": 4}
    assert shape_of(bare, "a file") == Missing(
        "a file does not say how the model is built: num_attention_heads is missing"
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
KEYS = sorted({key for name in ("kimi-linear-48b", "sliding-dense") for key in config(name)})


@given(
    st.sampled_from(["kimi-linear-48b", "qwen3-coder-next-80b", "sliding-dense"]),
    st.dictionaries(st.sampled_from([*KEYS, "text_config"]), VALUES, max_size=4),
)
def test_no_configuration_raises(name: str, changed: dict[str, Any]) -> None:
    assert isinstance(shape_of(config(name) | changed), ModelShape | Missing)
