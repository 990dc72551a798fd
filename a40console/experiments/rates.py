"""Rates and latencies of one repeat of an arm, from its samples. Pure.

The rate of so many streams is told over the time in which all of them were busy: ramp-up and the
stragglers' end are another load. One failed request makes it another load too, and then no rate is
told at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from a40console.experiments.client import STOPPED
from a40console.model.figures import Figure, Missing, number, ratio, total
from a40console.model.run_record import NO_USAGE, Sample

ROUNDING_S = 0.001
"""Gaps are rounded as they are recorded, and an answer's add up to a little more than it took."""

NOT_MEASURED = Missing("not measured")


def counted(samples: Iterable[Sample]) -> list[Sample]:
    """Without warm-ups."""
    return [sample for sample in samples if not sample.warm_up]


def answered(samples: Iterable[Sample]) -> list[Sample]:
    """Without warm-ups and what failed: what latencies are of."""
    return [sample for sample in counted(samples) if not sample.error]


def failed(sample: Sample) -> bool:
    """Whether it went wrong; what was under way as the run was stopped did not."""
    return bool(sample.error) and sample.error != STOPPED


def failures(samples: Iterable[Sample]) -> str:
    """How many requests failed, warm-ups among them, and the commonest reason; empty for none."""
    listed = list(samples)
    reasons = Counter(sample.error for sample in listed if failed(sample))
    if not reasons:
        return ""
    told, _ = reasons.most_common(1)[0]
    return f"{reasons.total()} of {len(listed)} requests failed: {told}"


def sustained_tokens_per_s(samples: Sequence[Sample], streams: int) -> Figure:
    """Tokens a second of all streams together, while each of them was busy.

    Args:
        samples: Of one repeat; a sample's stream is its index modulo `streams`.
        streams: How many there were.
    """
    if told := failures(samples):
        return Missing(told)
    if any(sample.error for sample in samples):
        return Missing(STOPPED)
    listed = counted(samples)
    if not listed:
        return NOT_MEASURED
    if told := _untimed(total((each.ttft_s, each.total_s)) for each in listed):
        return Missing(told)
    by_stream = [[each for each in listed if each.index % streams == at] for at in range(streams)]
    if not all(by_stream):
        return Missing("it ended before every stream was measured")
    begin_s = max(min(each.sent_s for each in stream) for stream in by_stream)
    end_s = min(max(_end_s(each) for each in stream) for stream in by_stream)
    if end_s <= begin_s:
        return Missing("the streams were never busy all at once")
    return ratio(total(_tokens_within(each, begin_s, end_s) for each in listed), end_s - begin_s)


def whole_tokens_per_s(samples: Sequence[Sample]) -> Figure:
    """Tokens a second from the first request's start to the last one's end."""
    if any(sample.error for sample in samples):
        return Missing(failures(samples) or STOPPED)
    listed = counted(samples)
    if not listed:
        return NOT_MEASURED
    if told := _untimed(each.total_s for each in listed):
        return Missing(told)
    written = [number(each.generated_tokens) for each in listed]
    known = [count for count in written if count is not None]
    if len(known) < len(written):
        return NO_USAGE
    seconds = max(map(_end_s, listed)) - min(each.sent_s for each in listed)
    return sum(known) / seconds if seconds > 0 else NOT_MEASURED


def ttfts_s(samples: Iterable[Sample]) -> list[float]:
    """Seconds to the first content, from when each request was due."""
    return [value for each in answered(samples) if (value := number(each.ttft_s)) is not None]


def gaps_s(samples: Iterable[Sample]) -> list[float]:
    """Seconds between arrivals; with speculation one gap covers a pass."""
    return [gap for each in answered(samples) for gap in each.gaps_s]


def mean_prompt(samples: Iterable[Sample]) -> tuple[Figure, Figure]:
    """Tokens of a prompt that came out of the prefix cache, and all of its tokens, on average."""
    listed = answered(samples)
    cached = total((each.cached_tokens for each in listed), reason=NOT_MEASURED.reason)
    prompts = total((each.prompt_tokens for each in listed), reason=NOT_MEASURED.reason)
    return ratio(cached, len(listed)), ratio(prompts, len(listed))


def _tokens_within(sample: Sample, begin_s: float, end_s: float) -> Figure:
    """Its tokens that came between two instants, by the share of its arrivals that did."""
    written = number(sample.generated_tokens)
    if written is None:
        return NO_USAGE
    arrivals = list(_arrivals_s(sample))
    within = sum(begin_s < at_s <= end_s + ROUNDING_S for at_s in arrivals)
    return written * within / len(arrivals)


def _untimed(seconds: Iterable[Figure]) -> str:
    """How many answers have no time, and why; empty where each has: an empty one tells no end."""
    listed = list(seconds)
    reasons = [figure.reason for figure in listed if isinstance(figure, Missing)]
    if not reasons:
        return ""
    return f"{len(reasons)} of {len(listed)} answers cannot be timed: {reasons[0]}"


def _end_s(sample: Sample) -> float:
    """Of a sample that can be timed."""
    return sample.due_s + (number(sample.total_s) or 0.0)


def _arrivals_s(sample: Sample) -> Iterator[float]:
    """Of a sample that can be timed."""
    at_s = sample.due_s + (number(sample.ttft_s) or 0.0)
    yield at_s
    for gap_s in sample.gaps_s:
        at_s += gap_s
        yield at_s
