"""A profile's ladder of placements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a40console.model.profile import Placement, Profile
from a40console.operations.ladder import placed, rung_in_words, rungs
from a40console.profiles.loader import parse_profile

TALL = Profile(
    name="tall",
    kind="vllm",
    model="m",
    max_model_len=262_144,
    arguments=("--a",),
    placements=(
        Placement(max_model_len=131_072),
        Placement(gpu_memory_utilization=0.85, arguments=("--b", "1")),
    ),
)


def test_a_rung_changes_what_it_names_and_nothing_else() -> None:
    assert rungs(TALL) == 3
    assert placed(TALL, 0) == TALL
    assert placed(TALL, 1) == replace(TALL, max_model_len=131_072)
    second = replace(TALL, gpu_memory_utilization=0.85, arguments=("--b", "1"))
    assert placed(TALL, 2) == second
    assert placed(TALL, 9) == TALL


def test_a_rung_is_told_in_words() -> None:
    assert rung_in_words(TALL, 0) == "as written; 2 placements to fall back on"
    assert rung_in_words(TALL, 1) == "placement 1 of 2: max_model_len 131072"
    assert rung_in_words(TALL, 2).endswith("gpu_memory_utilization 0.85, arguments --b 1")
    assert rung_in_words(replace(TALL, placements=()), 0) == ""


TOML = """
kind = "vllm"
model = "m"
[[placements]]
max_model_len = 4096
[[placements]]
{line}
"""


def test_placements_are_read_from_a_profile() -> None:
    profile = parse_profile(TOML.format(line="arguments = ['--x']"), "p")
    assert profile.placements == (
        Placement(max_model_len=4096),
        Placement(arguments=("--x",)),
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("max_model_len = 0", "max_model_len must be more than 0"),
        ("gpu_memory_utilization = 2.0", "gpu_memory_utilization must be in 0 to 1"),
        ("max_model_length = 1", "max_model_length"),
        ("", "placements.2 changes nothing"),
    ],
)
def test_a_placement_that_makes_no_sense_is_refused(line: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_profile(TOML.format(line=line), "p")
