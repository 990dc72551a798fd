"""What is said of requests without a token, against schedulers whose truth is known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a40console.vllm_plugin.phase import Report, told_phases


def report(running: int, waiting: int) -> Report:
    return Report(running, waiting, 0, 0.5, 1.0)


@given(
    decoding=st.integers(0, 4),
    preempted=st.integers(0, 4),
    prefilling=st.integers(0, 4),
    queued=st.integers(0, 4),
    travelling=st.integers(0, 3),
    forgotten_running=st.integers(0, 2),
    forgotten_waiting=st.integers(0, 2),
    in_order=st.booleans(),
)
def test_nothing_untrue_is_ever_told(
    decoding: int,
    preempted: int,
    prefilling: int,
    queued: int,
    travelling: int,
    forgotten_running: int,
    forgotten_waiting: int,
    in_order: bool,
) -> None:
    truth = (
        {f"p{number}": "prefill" for number in range(prefilling)}
        | {f"q{number}": "queued" for number in range(queued)}
        | {f"t{number}": "on its way" for number in range(travelling)}
    )
    told = told_phases(
        report(
            decoding + prefilling + forgotten_running,
            preempted + queued + forgotten_waiting,
        ),
        list(truth),
        decoding=decoding + preempted,
        took_part=decoding,
        removed=forgotten_running + forgotten_waiting,
        in_order=in_order,
    )
    assert told.items() <= truth.items()


def test_when_all_is_accounted_for_all_is_told() -> None:
    told = told_phases(
        report(3, 2), ["a", "b", "c"], decoding=2, took_part=2, removed=0, in_order=True
    )
    assert told == {"a": "prefill", "b": "queued", "c": "queued"}


def test_with_a_preempted_sequence_those_behind_are_still_queued() -> None:
    told = told_phases(report(2, 4), ["a", "b"], decoding=4, took_part=2, removed=0, in_order=True)
    assert told == {"a": "queued", "b": "queued"}


def test_priorities_leave_only_what_holds_for_all() -> None:
    assert not told_phases(
        report(2, 1), ["a", "b"], decoding=1, took_part=1, removed=0, in_order=False
    )
    told = told_phases(report(3, 0), ["a", "b"], decoding=1, took_part=1, removed=0, in_order=False)
    assert told == {"a": "prefill", "b": "prefill"}


def test_engines_reports_are_joined() -> None:
    joined = Report.joined([Report(1, 2, 1, 0.2, 5.0), Report(3, 0, 0, 0.7, 4.0)])
    assert joined == Report(4, 2, 1, 0.7, 5.0)
    assert Report.joined([]) is None
