"""An edited profile against what runs."""

from __future__ import annotations

from a40console.model.profile_change import ProfileChange, ProfileDiff


def profile_diff() -> ProfileDiff:
    """One setting that takes a restart, and one that does not."""
    return ProfileDiff(
        id="ba9876543210",
        profile="mine",
        origin="/config/profiles/mine.toml",
        running="mine",
        state="serving",
        not_in_force=(),
        changes=(
            ProfileChange(
                key="max_model_len",
                running="262144",
                file="131072",
                effect="restart",
                why="the engine reads it when it starts",
            ),
            ProfileChange(
                key="usd_per_hour",
                running=None,
                file="0.44",
                effect="live",
                why="the cost is worked out with it from now on",
            ),
        ),
    )
