"""The simulated engine's command line: our own interpreter, with vLLM's words behind it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.engines import vllm
from a40console.model.profile import Profile

MODULE = "a40console.sim"


def command_line(profile: Profile, *, python: str, address: Sequence[str]) -> list[str]:
    """What the keeper starts.

    `-P`: it is started in its run folder, and nothing there may stand in for a module.
    """
    words = vllm.arguments(profile, model=profile.model, address=address)
    return [python, "-P", "-m", MODULE, *words]
