"""The experiments there are, by name."""

from __future__ import annotations

from collections.abc import Mapping

from a40console.experiments.bench import Design
from a40console.experiments.canary_run import Canary
from a40console.experiments.compaction import Compaction
from a40console.experiments.lossless import Lossless
from a40console.experiments.protocol import Protocol
from a40console.experiments.regimes import Regimes
from a40console.experiments.sweep import Sweep


def designs() -> Mapping[str, Design]:
    """A fresh design of each experiment, by name, in the order in which they are offered.

    A design remembers the run that it is in: take a new one for every run.
    """
    every: tuple[Design, ...] = (
        Compaction(),
        Sweep(),
        Regimes(),
        Lossless(),
        Protocol(),
        Canary(),
    )
    return {design.offer.name: design for design in every}
