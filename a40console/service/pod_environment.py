"""What a rented pod tells of itself: to its first process, and not to those of an SSH session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_FIRST = Path("/proc/1/environ")
_NAMES = ("RUNPOD_POD_ID", "RUNPOD_PUBLIC_IP", "RUNPOD_TCP_PORT_")
"""Addresses alone: the rest holds keys."""


def with_pod(environment: Mapping[str, str], first: Path = _FIRST) -> dict[str, str]:
    """An environment with the pod's addresses, also where the service was started over SSH."""
    try:
        entries = first.read_bytes().decode(errors="replace").split("\0")
    except OSError:
        entries = []
    pairs = (entry.partition("=") for entry in entries)
    pod = {name: value for name, _, value in pairs if name.startswith(_NAMES) and value}
    return {**pod, **environment}
