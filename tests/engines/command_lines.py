"""The command line of every shipped profile, kept as data; run as a program it writes them anew.

python -m tests.engines.command_lines
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from a40console.engines.command import Site, plan
from a40console.model.profile import Profile
from a40console.operations.ladder import placed, rungs
from a40console.profiles.loader import load_profiles

FOLDER = Path(__file__).parents[1] / "data" / "command_lines"
SITE = Site(
    python="/usr/bin/python3",
    embedded_script=Path("/lib/embedded.py"),
    socket_path=Path("/run/engine.sock"),
    port=18100,
    threads=6,
    plugin_environment={"PYTHONPATH": "/plugin", "VLLM_PLUGINS": "a40console"},
    plugin_token="0123456789abcdef",
)


def shipped() -> dict[str, Profile]:
    """The profiles that come with the console."""
    return load_profiles(Path("/nonexistent")).profiles


def command_lines(profile: Profile) -> dict[str, Any]:
    """What each rung of a profile's ladder runs, and what its environment gains."""
    plans = [plan(placed(profile, rung), SITE) for rung in range(rungs(profile))]
    return {
        "argv": [list(each.argv) for each in plans],
        "environment": plans[0].environment,
        "endpoint": plans[0].endpoint.socket_path or plans[0].endpoint.base_url,
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, profile in shipped().items():
        text = json.dumps(command_lines(profile), indent=1, ensure_ascii=False)
        (FOLDER / f"{name}.json").write_text(text + "\n")
