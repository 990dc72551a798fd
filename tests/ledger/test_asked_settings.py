"""Command lines as settings: the words of both sides are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from a40console.engines import effective, vllm
from a40console.ledger.asked_settings import asked_settings, canonical, in_force
from a40console.profiles.loader import load_profiles


@pytest.mark.parametrize(
    ("argv", "settings"),
    [
        ("vllm serve model --max-model-len 4096", {"max_model_len": "4096"}),
        ("vllm serve model --max-model-len=4096", {"max_model_len": "4096"}),
        (
            "x --enable-prefix-caching --enforce-eager",
            {"prefix_caching": "on", "enforce_eager": "on"},
        ),
        ("x --no-enable-prefix-caching", {"prefix_caching": "off"}),
        ("x --async-scheduling --seed -1", {"async_scheduling": "on", "seed": "-1"}),
        (
            "llama-server -c 8192 -ngl 99 -t 8",
            {"max_model_len": "8192", "gpu_layers": "99", "threads": "8"},
        ),
        ("x --uds /run/a.sock --served-model-name coder --port=8001", {}),
        ("x --api-key •••• --host 0.0.0.0", {}),
        ("", {}),
    ],
)
def test_flags_are_read_as_settings(argv: str, settings: dict[str, str]) -> None:
    assert asked_settings(argv.split()) == settings


def test_the_later_of_two_flags_is_the_one_that_counts() -> None:
    assert asked_settings(["x", "--seed", "1", "--seed", "2"]) == {"seed": "2"}


def test_what_an_engine_says_has_the_same_words() -> None:
    told = in_force({"enable_prefix_caching": "True", "async-scheduling": "false", "threads": "8"})
    assert told == {"prefix_caching": "on", "async_scheduling": "off", "threads": "8"}


def test_every_setting_of_a_shipped_profile_is_known_under_one_name(tmp_path: Path) -> None:
    profiles = [each for each in load_profiles(tmp_path).profiles.values() if each.kind == "vllm"]
    assert profiles
    for profile in profiles:
        asked = asked_settings(vllm.shared_arguments(profile))
        wanted = {
            canonical(name)
            for name, value in effective._vllm_asked(profile).items()
            if value is not None and value != "off" and name != "num_speculative_tokens"
        }
        flags = set(asked) - {"tensor_parallel_size", "enable_auto_tool_choice"}
        assert flags <= wanted | {"max_num_seqs", "quantization"}
        assert wanted - {"async_scheduling", "speculation"} <= asked.keys()
