"""From the text of a metrics endpoint to samples by name, or the reason why it is none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

ENGINES = ("vllm:", "llamacpp:", "a40console:")
"""What the names of engines' metrics begin with."""

Samples = Mapping[str, list[Sample]]
"""Samples by metric name, suffixes included."""

_PLAIN = re.compile(r"([^\s#]+) ([0-9.eE+-]+|NaN|[+-]?Inf)")
"""A sample without timestamp, exemplar or blank in its labels, as nearly all are."""

_KEPT_SERIES = 4096


class ExpositionError(ValueError):
    """A body that must not be read as metrics; the text is the reason."""


class TruncatedError(ExpositionError):
    """A body that was cut: the last good reading still counts for a while."""


def parse_exposition(
    text: str, *, families: tuple[str, ...], content_type: str = "text/plain"
) -> Samples:
    """The samples of the wanted families.

    Lines of other families, comments and `_created` series are dropped before parsing, which costs
    a third of the time; vLLM's Rust front end answers OpenMetrics, whose samples read the same.

    Args:
        text: The body.
        families: Beginnings of the wanted sample names.
        content_type: As the server declared it.

    Raises:
        ExpositionError: For an empty, HTML or JSON body, one that was cut, or one without any
            wanted family.
    """
    _reject_foreign(text, content_type)
    _reject_truncated(text, content_type)
    lines = [
        line for line in text.splitlines() if line.startswith(families) and not _is_created(line)
    ]
    if not any(line.startswith(ENGINES) for line in lines):
        exposed = sum(1 for line in text.splitlines() if line and not line.startswith("#"))
        raise ExpositionError(f"none of the engine's metrics among {exposed} samples")
    samples: dict[str, list[Sample]] = {}
    try:
        for sample in _read(lines):
            samples.setdefault(sample.name, []).append(sample)
    except (ValueError, IndexError, KeyError) as error:
        raise ExpositionError(f"the metrics text cannot be read: {error}") from error
    _reject_open_histograms(samples)
    return samples


def _read(lines: list[str]) -> Iterator[Sample]:
    """The samples of lines; what is no number raises a ValueError."""
    for line in lines:
        if plain := _PLAIN.fullmatch(line):
            name, labels = _series(plain[1])
            yield Sample(name, labels, float(plain[2]))
        else:
            yield from _parse(line)


@lru_cache(maxsize=_KEPT_SERIES)
def _series(text: str) -> tuple[str, dict[str, str]]:
    """Name and labels: each scrape brings the same ones again, and the parser is slow."""
    (sample,) = _parse(f"{text} 0")
    return sample.name, sample.labels


def _parse(line: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(f"{line}\n"):
        yield from family.samples


def _reject_foreign(text: str, content_type: str) -> None:
    start = text.lstrip()[:1]
    if not start:
        raise ExpositionError("no metrics exposed: the body is empty")
    if start == "<" or "html" in content_type:
        raise ExpositionError("not a metrics endpoint: it answers with a web page")
    if start in "{[" or "json" in content_type:
        raise ExpositionError("not a metrics endpoint: it answers with JSON")


def _reject_truncated(text: str, content_type: str) -> None:
    if not text.endswith("\n"):
        raise TruncatedError("the metrics text is cut: its last line is not complete")
    if "openmetrics" in content_type and not text.rstrip().endswith("# EOF"):
        raise TruncatedError("the metrics text is cut: it lacks its end mark")


def _is_created(line: str) -> bool:
    name, _, _ = line.partition("{")
    return name.partition(" ")[0].endswith("_created")


def _reject_open_histograms(samples: Samples) -> None:
    """A cut at the end of a line shows in a histogram without its infinite bucket or its count."""
    for name, buckets in samples.items():
        if not name.endswith("_bucket"):
            continue
        closed = sum(1 for bucket in buckets if bucket.labels.get("le") == "+Inf")
        counts = len(samples.get(f"{name.removesuffix('_bucket')}_count", ()))
        if not closed or closed != counts:
            raise TruncatedError(f"the metrics text is cut within {name}")
