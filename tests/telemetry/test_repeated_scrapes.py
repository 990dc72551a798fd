"""Every scrape of the same series reads as the library's parser reads it, the later ones too."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from a40console.telemetry.exposition import ExpositionError, parse_exposition
from tests.telemetry.makers import content_type_of, text_of

RECORDED = sorted(
    path.stem for path in (Path(__file__).parents[1] / "data/metrics").glob("*-after.txt")
)
ODD_LINES = [
    'vllm:a{reason="not now",x="1"} 5',
    'vllm:a{x="#1 # 2"} 6.5',
    'vllm:a{x="\\"quoted\\" \\\\ and\\nmore"} 7',
    'vllm:a{x="}"}  8',
    "vllm:a\t9",
    "vllm:a 10 1395066363000",
    'vllm:a{x="1"} 11 1395066363000',
    "vllm:a{} 1.5e-3",
    'vllm:a{x="1",} +Inf',
    "vllm:a -Inf",
    "vllm:a NaN",
    "vllm:a nan",
]
NO_NUMBERS = ["1_000", "--1", "1.2.3", "e", "twelve", "0x10"]


def by_library(text: str) -> list[Sample]:
    lines = [
        line
        for line in text.splitlines()
        if line.startswith(("vllm:", "llamacpp:")) and "_created" not in line
    ]
    return [
        sample
        for family in text_string_to_metric_families("\n".join([*lines, ""]))
        for sample in family.samples
    ]


def by_us(text: str, content_type: str = "text/plain") -> list[Sample]:
    samples = parse_exposition(text, families=("vllm:", "llamacpp:"), content_type=content_type)
    return [sample for listed in samples.values() for sample in listed]


def comparable(samples: list[Sample]) -> list[tuple[str, list[tuple[str, str]], str]]:
    return sorted(
        (sample.name, sorted(sample.labels.items()), str(float(sample.value))) for sample in samples
    )


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_expositions_read_alike_every_time(name: str) -> None:
    text, kind = text_of(name), content_type_of(name)
    expected = comparable(by_library(text))
    assert expected
    for _ in range(2):
        assert comparable(by_us(text, kind)) == expected


@pytest.mark.parametrize("line", ODD_LINES)
def test_unusual_lines_read_alike_every_time(line: str) -> None:
    text = f"{line}\n"
    for _ in range(2):
        assert comparable(by_us(text)) == comparable(by_library(text))


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number_is_rejected_for_a_series_that_is_known(value: str) -> None:
    by_us('vllm:a{x="1"} 1\n')
    with pytest.raises(ExpositionError, match="cannot be read"):
        by_us(f'vllm:a{{x="1"}} {value}\n')


@given(st.floats(), st.text(alphabet='ab"\\# {},=é', max_size=8))
def test_any_value_and_label_survive(value: float, label: str) -> None:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"')
    text = f'vllm:a{{x="{escaped}"}} {value!r}\n'
    (sample,) = by_us(text)
    assert sample.labels == {"x": label}
    assert sample.value == value or (math.isnan(value) and math.isnan(sample.value))
