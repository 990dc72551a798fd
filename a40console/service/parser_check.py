"""Compares a start's parsers with the chat template of its model, once a start."""

from __future__ import annotations

import os
from collections.abc import Mapping

from a40console.advisor.evidence import UnfitParser
from a40console.operations.profile_fix import unfit_parsers
from a40console.operations.record import RunRecord
from a40console.service.aside import Aside
from a40console.service.fixing import in_words


class ParserCheck:
    """Remembers what was found of the newest start: its files are read aside while it loads.

    Args:
        environment: Where the hub's cache is taken from.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment
        self.reading: Aside[tuple[UnfitParser, ...]] = Aside(())

    def look(self, run: RunRecord | None) -> tuple[UnfitParser, ...]:
        """The parsers of a start that do not read what its model writes."""
        return () if run is None else self.reading.look(run.id, None, lambda: self._read(run))

    def _read(self, run: RunRecord) -> tuple[UnfitParser, ...]:
        return tuple(
            UnfitParser(
                cause=fault.cause,
                evidence=fault.evidence,
                remedy=fault.remedy,
                fix=in_words(fault.fix),
            )
            for fault in unfit_parsers(run, self._environment)
        )
