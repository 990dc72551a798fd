"""What client and server counted around each arm, as tables of a report. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from a40console.model.figures import Figure, Missing, combine, measured, number, total
from a40console.model.run_record import ArmEnd, Sample
from a40console.model.run_result import Cell, Column, Table

NOT_COUNTED = Missing("not counted")

_COUNTED = (
    ("requests", "requests"),
    ("prompt_tokens", "prompt tokens"),
    ("cached_tokens", "cached tokens"),
    ("generated_tokens", "generated tokens"),
)


def count_tables(
    arm_ends: Sequence[ArmEnd], samples: Sequence[Sample], *, differing: bool = False
) -> tuple[Table, ...]:
    """The counts of both sides, and what the client and the machine did; none without arms.

    Args:
        arm_ends: What was counted around the arms.
        samples: The requests, where they are at hand.
        differing: Without the counts of which both sides tell the same.
    """
    if not arm_ends:
        return ()
    return (_both_sides(arm_ends, differing=differing), _conditions(arm_ends, samples))


def _both_sides(arm_ends: Sequence[ArmEnd], *, differing: bool) -> Table:
    alike = 0
    rows: list[tuple[Cell, ...]] = []
    for arm, ends in _by_arm(arm_ends).items():
        for key, name in _COUNTED:
            client = total(end.client.get(key, NOT_COUNTED) for end in ends)
            server = total(end.server.get(key, NOT_COUNTED) for end in ends)
            if number(client) is None and number(server) is None:
                continue
            if differing and client == server:
                alike += 1
                continue
            rows.append((arm, name, client, server, _apart(client, server)))
    return Table(
        title="Counted by the client and by the server",
        columns=(
            Column(title="arm"),
            Column(title="what"),
            Column(title="client", digits=0),
            Column(title="server", digits=0),
            Column(title="apart", unit="%", digits=2),
        ),
        rows=tuple(rows),
        note=_note(alike),
    )


def _note(alike: int) -> str:
    told = "All repeats of an arm, with all that was sent in it."
    if not alike:
        return told
    counts = "1 count is" if alike == 1 else f"{alike} counts are"
    return f"{told} {counts} the same on both sides and left out."


def _apart(client: Figure, server: Figure) -> Figure:
    """By how much the server's count differs from the client's, in per cent."""
    return combine(
        lambda ours, theirs: (theirs - ours) / ours * 100.0 if ours else None,
        client,
        server,
        reason="the client counted none",
    )


def _conditions(arm_ends: Sequence[ArmEnd], samples: Sequence[Sample]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for arm, ends in _by_arm(arm_ends).items():
        sent = [sample for sample in samples if sample.arm == arm]
        untold = Missing("its single requests are not at hand")
        rows.append(
            (
                arm,
                len(ends),
                sum(end.wall_s for end in ends),
                total(end.usd for end in ends),
                sum(bool(sample.error) for sample in sent) if sent else untold,
                sum(sample.warm_up for sample in sent) if sent else untold,
                _worst(ends, "loop_lag_p99_s", 1000.0),
                _worst(ends, "cpu_cores", 1.0),
                total(end.machine.get("vcpu_throttled_s", NOT_COUNTED) for end in ends),
                total(end.machine.get("gpu_throttled_s", NOT_COUNTED) for end in ends),
            )
        )
    return Table(
        title="Under which conditions",
        columns=(
            Column(title="arm"),
            Column(title="repeats", digits=0),
            Column(title="wall", unit="s"),
            Column(title="cost", unit="$", digits=4),
            Column(title="errors", digits=0),
            Column(title="warm-up", unit="requests", digits=0),
            Column(title="client's lag p99", unit="ms"),
            Column(title="client's CPU", unit="cores", digits=2),
            Column(title="vCPU throttled", unit="s"),
            Column(title="GPU throttled", unit="s"),
        ),
        rows=tuple(rows),
        note="Lag and CPU are those of the worst repeat. Errors are in no latency.",
    )


def _worst(ends: Iterable[ArmEnd], key: str, factor: float) -> Figure:
    told = [
        value for end in ends if (value := number(end.client.get(key, NOT_COUNTED))) is not None
    ]
    return measured(max(told) * factor if told else None, NOT_COUNTED.reason)


def _by_arm(arm_ends: Sequence[ArmEnd]) -> dict[str, list[ArmEnd]]:
    """The repeats of each arm; arms in the order in which they first ended."""
    found: dict[str, list[ArmEnd]] = {}
    for end in arm_ends:
        found.setdefault(end.arm, []).append(end)
    return found
