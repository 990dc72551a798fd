"""Which bodies are metrics, and which are rejected with a reason."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.telemetry.aliases import WANTED, read_samples
from a40console.telemetry.exposition import ExpositionError, TruncatedError, parse_exposition
from tests.telemetry.makers import content_type_of, text_of

ALL = [
    "vllm-0.32-ngram-after",
    "vllm-0.33-rust-after",
    "vllm-0.27.1-after",
    "llamacpp-spec-ngram-mod-after",
]


def parse(text: str, content_type: str = "text/plain") -> object:
    return parse_exposition(text, families=WANTED, content_type=content_type)


def test_an_empty_body_exposes_nothing() -> None:
    with pytest.raises(ExpositionError, match="no metrics exposed"):
        parse("")
    with pytest.raises(ExpositionError, match="no metrics exposed"):
        parse("\n\n")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<html><head><title>502 Bad Gateway</title></head></html>\n", "text/html"),
        ("<!DOCTYPE html>\n", "text/plain"),
        ('{"detail": "Not Found"}\n', "application/json"),
    ],
)
def test_a_page_that_is_no_exposition_is_named_as_such(body: str, content_type: str) -> None:
    with pytest.raises(ExpositionError, match="not a metrics endpoint"):
        parse(body, content_type)


def test_an_exposition_of_something_else_is_not_an_engine_with_zeros() -> None:
    text = "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1.7e9\n"
    with pytest.raises(ExpositionError, match="none of the engine's metrics among 1 samples"):
        parse(text)


@pytest.mark.parametrize("name", ALL)
def test_a_body_cut_at_half_is_discarded(name: str) -> None:
    text = text_of(name)
    half = len(text) // 2
    cut = text[: half if text[half - 1] != "\n" else half + 3]
    with pytest.raises(TruncatedError, match="cut"):
        parse(cut, content_type_of(name))


def test_openmetrics_without_its_end_mark_is_cut() -> None:
    text = text_of("vllm-0.33-rust-after").removesuffix("# EOF\n")
    with pytest.raises(TruncatedError, match="end mark"):
        parse(text, "application/openmetrics-text")


def test_a_histogram_cut_between_its_lines_is_cut() -> None:
    text = text_of("vllm-0.32-ngram-after")
    infinite = text.index('inter_token_latency_seconds_bucket{engine="0",le="+Inf"')
    with pytest.raises(TruncatedError, match="within"):
        parse(text[: text.rindex("\n", 0, infinite) + 1])


def test_a_garbled_line_is_a_reason_and_not_a_crash() -> None:
    with pytest.raises(ExpositionError, match="cannot be read"):
        parse('vllm:generation_tokens_total{engine="0"} many\n')


@given(st.text(max_size=300))
def test_no_text_is_more_than_rejected(text: str) -> None:
    with pytest.raises(ExpositionError, match=r"."):
        parse(text)


@given(st.integers(min_value=0, max_value=64578))
def test_no_cut_is_read_as_a_lower_counter(length: int) -> None:
    """Cut anywhere: rejected, or every counter that is there has its true value."""
    text = text_of("vllm-0.32-ngram-after")
    whole = read_samples(parse_exposition(text, families=WANTED), source="vllm.metrics", at_s=0)
    try:
        samples = parse_exposition(text[:length], families=WANTED)
    except ExpositionError:
        return
    cut = read_samples(samples, source="vllm.metrics", at_s=0)
    assert cut.counters.items() <= whole.counters.items()
    assert cut.histograms.items() <= whole.histograms.items()


def test_a_real_exposition_is_parsed_in_a_few_milliseconds() -> None:
    text = text_of("vllm-0.32-ngram-after")
    assert len(text.splitlines()) == 747
    parse(text)
    took_s = []
    for _ in range(5):
        began_s = time.process_time()
        parse(text)
        took_s.append(time.process_time() - began_s)
    assert min(took_s) < 0.015
