"""A model's shape: what of its configuration decides how much memory it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Figures of a model, as its `config.json` or GGUF header states them; 0 is none of it."""

    layers: int
    attention_layers: int
    """Layers whose cache grows with the context; the others keep a window or a state."""

    kv_heads: int = 0
    head_dim: int = 0
    """Of a key; a value has as many elements unless `value_head_dim` says otherwise."""

    value_head_dim: int = 0
    latent_dim: int = 0
    """Latent attention (MLA) keeps this many elements a token in the place of keys and values:
    `kv_lora_rank` + `qk_rope_head_dim`."""

    sliding_layers: int = 0
    sliding_window: int = 0
    recurrent_layers: int = 0
    recurrent_elements: int = 0
    """Of one layer's state of one sequence."""

    recurrent_element_bytes: int = 4
    convolution_channels: int = 0
    convolution_taps: int = 0
    """Inputs that a recurrent layer's convolution keeps: its kernel less one."""

    hidden_size: int = 0
    vocabulary: int = 0
    attention_heads: int = 0
    intermediate_size: int = 0
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    expert_intermediate_size: int = 0
    dense_layers: int = 0
    """Of a model with experts: the layers without."""

    tied_embeddings: bool = False
    element_bytes: int = 2
    """Of what is not quantised."""

    weight_bits: float = 0.0
    """Bits a quantised weight, its scales included; 0 where nothing is quantised."""

    weights_bytes: int = 0
    """Counted from the files; 0 leaves it to be worked out from the figures above."""

    parameters: int = 0
    """0 leaves them to be worked out too."""

    longest_context: int = 0
    """What it was trained for, in tokens; 0 where that is not said."""

    origin: str = "the profile's [shape]"
    """Where the figures were read."""

    def within(self, tokens: int) -> int:
        """A context no longer than the model was made for."""
        return min(tokens, self.longest_context or tokens)
