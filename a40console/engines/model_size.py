"""What a model's weights take, worked out from its shape where no file can be counted. Pure."""

from __future__ import annotations

from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.shape import ModelShape

BYTE_BITS = 8


def weights_bytes(shape: ModelShape, quantization: str | None = None) -> Figure:
    """Of the whole model: counted, else ≈ from its figures and the quantisation.

    Embeddings stay as they are; everything else is taken as quantised, which leaves out a few per
    cent where a checkpoint keeps its attention in full.

    Args:
        shape: The model's.
        quantization: What the profile asks the engine to make of weights that are not quantised.
    """
    if shape.weights_bytes:
        return shape.weights_bytes
    kept = embedding_parameters(shape)
    matrices = max(0, shape.parameters - kept) or matrix_parameters(shape)
    if not kept or not matrices:
        return Missing("neither files nor figures say how large its weights are")
    bits = shape.weight_bits or _asked_bits(quantization) or BYTE_BITS * shape.element_bytes
    return Estimated(kept * shape.element_bytes + matrices * bits / BYTE_BITS)


def embedding_parameters(shape: ModelShape) -> int:
    """Of the tables of words at both ends."""
    return shape.vocabulary * shape.hidden_size * (1 if shape.tied_embeddings else 2)


def matrix_parameters(shape: ModelShape) -> int:
    """Of attention and feed-forward matrices, all layers."""
    sparse = shape.layers - shape.dense_layers if shape.experts else 0
    experts = shape.experts + shape.shared_experts
    feed = 3 * shape.hidden_size * shape.expert_intermediate_size * experts * sparse
    feed += 3 * shape.hidden_size * shape.intermediate_size * (shape.layers - sparse)
    return feed + _attention(shape) * shape.layers


def _attention(shape: ModelShape) -> int:
    """Of one layer: queries and output over all heads, keys and values over theirs.

    A layer with a latent or a state is taken as four square matrices, which is ≈ right for both.
    """
    if shape.latent_dim or not shape.head_dim:
        return 4 * shape.hidden_size * shape.hidden_size
    width = shape.head_dim * (shape.attention_heads + shape.kv_heads)
    return 2 * shape.hidden_size * width


def _asked_bits(quantization: str | None) -> float:
    if quantization is None:
        return 0.0
    return {"fp8": 8.0, "bitsandbytes": 4.5, "experts_int8": 8.0}.get(quantization, 0.0)
