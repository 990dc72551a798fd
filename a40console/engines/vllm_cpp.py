"""The command line of vllm.cpp's server: some of vLLM's flags, and an end at any other. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.engines import vllm
from a40console.model.profile import Profile

_WITHOUT_DASHES = """
block-size device disable-jump-forward disable-log-requests disable-metrics
disable-radix-attention disable-sliding-window download-dir enable-auto-tool-choice
enable-force-include-usage enable-jump-forward enable-log-outputs enable-log-requests
enable-metrics enable-prefix-caching enable-radix-attention enable-server-dev-mode
enable-sliding-window enable-thinking enable-tokenizer-info-endpoint generation-config
gpu-memory-utilization help host jump-forward kv-cache-dtype kv-cache-memory kv-transfer-config
language-model-only limit-mm-per-prompt max-log-len max-model-len max-num-batched-tokens
max-num-seqs mmproj model no-enable-prefix-caching no-enable-thinking no-language-model-only
num-blocks offload-config port reasoning-parser revision schedule-policy scheduling-policy
served-model-name speculative-config tokenizer-config tool-call-parser trust-remote-code version
"""

FLAGS = frozenset(f"--{word}" for word in _WITHOUT_DASHES.split())
"""What its server takes, but for those of speech and video."""


def arguments(profile: Profile, *, model: str, address: Sequence[str]) -> list[str]:
    """Everything behind the program: the model, our flags, then the profile's own."""
    named = ["--model", model, "--served-model-name", profile.public_name]
    return [*named, *address, *vllm.shared_arguments(profile), *profile.arguments]
