"""The container's share of the machine: CPU, memory, shared memory, disk."""

from __future__ import annotations

from textual.geometry import Size

from a40console.model.figures import Missing, number
from a40console.model.snapshot import Host, Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import shown
from a40console.tui.ink import Line, Role, Span, clean, flow, line
from a40console.tui.panels.labels import LABEL, aged, labelled
from a40console.tui.reading import Reading


def machine(reading: Reading, size: Size) -> list[Line]:
    """The container's CPU and its memory."""
    snapshot = reading.snapshot
    width = size.width
    room = width - LABEL
    return aged(
        reading,
        snapshot.host.age_s,
        [
            labelled("CPU", _cpu(snapshot, room), width),
            labelled("Memory", _memory(snapshot, room), width),
        ],
    )


def vcpus(host: Host) -> str:
    """Used of the container's quota, with the unit: `1.2 of 6.0 vCPU`."""
    used = shown(host.cpu_used_vcpu, fmt.two_digits)
    return f"{used:>3} of {shown(host.cpu_quota_vcpu, quota)} vCPU"


def quota(value: float) -> str:
    """A quota of vCPU: with its tenths below a hundred, since quotas need not be whole."""
    return fmt.tenths(value)


def throttled(host: Host, text: str = "throttled {} ms/s") -> Line:
    """How many milliseconds of each second the quota stopped the container."""
    role = Role.WARN if number(host.throttled_ms_per_s) else Role.TEXT
    return line(Span(text.format(shown(host.throttled_ms_per_s, fmt.count)), role))


def _cpu(snapshot: Snapshot, width: int) -> Line:
    host = snapshot.host
    thread = host.busiest_engine_thread
    hottest = (
        line("")
        if isinstance(thread, Missing)
        else line(Span(f"{clean(thread.name)} {fmt.percent(thread.ratio)}", Role.MUTED))
    )
    origin = line("" if host.quota_origin != "host" else Span("no quota: whole host", Role.MUTED))
    return flow([line(vcpus(host)), throttled(host), hottest, origin], width)


def whole_gib(value: float) -> str:
    """A capacity in GiB, without the unit."""
    return fmt.plain(value / fmt.GIB)


def _memory(snapshot: Snapshot, width: int) -> Line:
    host = snapshot.host
    ram = (
        f"{shown(host.memory_used_bytes, fmt.gibibytes)}"
        f"/{shown(host.memory_limit_bytes, whole_gib)} GiB"
    )
    shm = (
        f"shm {shown(host.shm_used_bytes, fmt.gibibytes)}"
        f"/{shown(host.shm_total_bytes, whole_gib)} GiB"
    )
    return flow(
        [line(ram), line(f"disk {shown(host.disk_free_bytes, fmt.size)} free"), line(shm)], width
    )
