"""A model's `config.json` to its shape. Pure, and total: what it does not say is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a40console.model.figures import Missing
from a40console.model.shape import ModelShape

_SLIDING = frozenset({"sliding_attention", "chunked_attention", "local_attention"})
_FULL = frozenset({"full_attention", "attention", "global_attention"})
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
SCALE_BITS = 16
"""Of the scale that a group of quantised weights shares."""

FOREIGN_LAYERS = ("hybrid_override_pattern", "ssm_cfg", "mamba_d_state", "state_size")
"""Keys of models whose recurrent layers are laid out in ways that are not worked out here."""

Config = Mapping[str, Any]


def shape_of(config: Config, origin: str = "config.json") -> ModelShape | Missing:
    """The shape that a configuration describes; the text model's of one that also sees."""
    text = config.get("text_config")
    try:
        return _shape({**config, **text} if isinstance(text, dict) else config, origin)
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        return Missing(f"{origin} does not say how the model is built: {_in_words(error)}")


def _shape(config: Config, origin: str) -> ModelShape | Missing:
    if foreign := [key for key in FOREIGN_LAYERS if key in config]:
        return Missing(f"its layers ({foreign[0]}) are of a kind whose memory is not known here")
    layers = _count(config, "num_hidden_layers", "n_layer")
    kinds = _layer_kinds(config, layers)
    if isinstance(kinds, Missing):
        return kinds
    full, sliding, recurrent = kinds
    if full + sliding == 0:
        return Missing("no layer of it attends, so its context takes no memory")
    heads = _count(config, "num_attention_heads", "n_head")
    hidden = _count(config, "hidden_size", "n_embd")
    latent = _latent(config)
    return ModelShape(
        layers=layers,
        attention_layers=full or sliding,
        kv_heads=0 if latent else _optional(config, "num_key_value_heads") or heads,
        head_dim=0 if latent else _optional(config, "head_dim") or hidden // heads,
        value_head_dim=0 if latent else _optional(config, "v_head_dim"),
        latent_dim=latent,
        sliding_layers=sliding if full else 0,
        sliding_window=_optional(config, "sliding_window", "attention_chunk_size") if full else 0,
        recurrent_layers=recurrent,
        **(_recurrence(config) if recurrent else {}),
        hidden_size=hidden,
        vocabulary=_optional(config, "vocab_size"),
        attention_heads=heads,
        intermediate_size=_optional(config, "intermediate_size", "n_inner"),
        **_experts(config, layers),
        tied_embeddings=config.get("tie_word_embeddings", False) is True,
        element_bytes=_BYTES.get(str(config.get("dtype") or config.get("torch_dtype")), 2),
        weight_bits=quantised_bits(config.get("quantization_config")),
        longest_context=_optional(config, "max_position_embeddings", "n_positions"),
        origin=origin,
    )


def quantised_bits(quantization: object) -> float:
    """Bits a weight by a `quantization_config`, with the scale of its group; 0 without one."""
    if not isinstance(quantization, Mapping):
        return 0.0
    groups = quantization.get("config_groups")
    if isinstance(groups, Mapping) and groups:
        weights = next(iter(groups.values())).get("weights") or {}
        bits, group = weights.get("num_bits"), weights.get("group_size")
        even = weights.get("symmetric", True)
    else:
        bits = quantization.get("bits", quantization.get("w_bit"))
        group = quantization.get("group_size", quantization.get("q_group_size"))
        even = not quantization.get("zero_point", quantization.get("sym") is False)
    if bits is None:
        return 8.0 if "fp8" in str(quantization.get("quant_method")) else 0.0
    if not group or group < 0:
        return float(bits)
    return float(bits + (SCALE_BITS + (0 if even else bits)) / group)


def _layer_kinds(config: Config, layers: int) -> tuple[int, int, int] | Missing:
    """Layers that attend to everything, to a window, and that keep a state."""
    linear = config.get("linear_attn_config")
    if isinstance(linear, Mapping):
        full = len(linear["full_attn_layers"])
        return full, 0, layers - full
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        full = sum(kind in _FULL for kind in kinds)
        sliding = sum(kind in _SLIDING for kind in kinds)
        recurrent = sum(kind == "linear_attention" for kind in kinds)
        if full + sliding + recurrent != len(kinds):
            other = next(k for k in kinds if k not in _FULL | _SLIDING | {"linear_attention"})
            return Missing(f"its layers of the kind {other!r} are not known here")
        return full, sliding, recurrent
    if every := _optional(config, "full_attention_interval"):
        return layers // every, 0, layers - layers // every
    if every := _optional(config, "sliding_window_pattern"):
        return layers // every, layers - layers // every, 0
    windowed = _optional(config, "sliding_window") and config.get("use_sliding_window", True)
    return (0, layers, 0) if windowed else (layers, 0, 0)


def _latent(config: Config) -> int:
    rank = _optional(config, "kv_lora_rank")
    return rank + _optional(config, "qk_rope_head_dim") if rank else 0


def _recurrence(config: Config) -> dict[str, int]:
    """The state of one layer: of Kimi's delta attention, or of a gated delta network."""
    linear = config.get("linear_attn_config")
    if isinstance(linear, Mapping):
        heads, width = linear["num_heads"], linear["head_dim"]
        return {
            "recurrent_elements": heads * width * width,
            "convolution_channels": 3 * heads * width,
            "convolution_taps": linear["short_conv_kernel_size"] - 1,
        }
    keys, values = config["linear_num_key_heads"], config["linear_num_value_heads"]
    key, value = config["linear_key_head_dim"], config["linear_value_head_dim"]
    return {
        "recurrent_elements": values * key * value,
        "recurrent_element_bytes": _BYTES.get(str(config.get("mamba_ssm_dtype")), 2),
        "convolution_channels": 2 * keys * key + values * value,
        "convolution_taps": config["linear_conv_kernel_dim"] - 1,
    }


def _experts(config: Config, layers: int) -> dict[str, int]:
    experts = _optional(config, "num_experts", "n_routed_experts", "num_local_experts")
    if not experts:
        return {}
    width = _optional(config, "moe_intermediate_size") or _count(config, "intermediate_size")
    shared = _optional(config, "n_shared_experts", "num_shared_experts")
    if not shared:
        shared = -(-_optional(config, "shared_expert_intermediate_size") // width)
    return {
        "experts": experts,
        "experts_per_token": _optional(config, "num_experts_per_tok", "num_experts_per_token"),
        "shared_experts": shared,
        "expert_intermediate_size": width,
        "dense_layers": min(layers, _optional(config, "first_k_dense_replace")),
    }


def _count(config: Config, *names: str) -> int:
    found = _optional(config, *names)
    if found <= 0:
        raise KeyError(names[0])
    return found


def _optional(config: Config, *names: str) -> int:
    """The first of the keys that holds a number; 0 where none does."""
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return 0


def _in_words(error: Exception) -> str:
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
