"""What a switch would cost."""

from __future__ import annotations

from a40console.model.figures import Estimated
from a40console.model.switch_cost import SwitchCost, WideClient


def switch_cost(profile: str = "kimi-linear-48b") -> SwitchCost:
    """Two sessions to read again, one of which believes in a larger window."""
    return SwitchCost(
        profile=profile,
        before="qwen3-coder-30b",
        running=2,
        drain_s=30.0,
        sessions=2,
        reread_tokens=80_000,
        prefill_tokens_per_s=Estimated(4_000.0),
        prefill_prompts=3,
        reread_s=Estimated(20.0),
        window_tokens=65_536,
        too_wide=(WideClient(session="7f3a", client="claude-code", believes_tokens=250_000),),
        start_s=Estimated(42.0),
        starts=3,
        simulated=False,
        simulated_before=False,
    )
