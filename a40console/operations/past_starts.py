"""How long the phases of earlier starts took, by profile: what an ETA is worked out from."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from a40console.files import read_json, write_private

KEPT_STARTS = 5

log = logging.getLogger(__name__)


class PastStarts:
    """The last few starts of each profile, in one small file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def of(self, profile: str) -> Sequence[Mapping[str, float]]:
        """Seconds by phase of each kept start, oldest first; none when nothing is known."""
        return self._read().get(profile, [])

    def add(self, profile: str, durations_s: Mapping[str, float]) -> None:
        """Keep one more start; a full disk costs the note only."""
        kept = self._read()
        starts = [*kept.get(profile, []), dict(durations_s)]
        kept[profile] = starts[-KEPT_STARTS:]
        try:
            write_private(self._file, json.dumps(kept))
        except OSError as error:
            log.warning("the start's durations could not be noted: %s", error)

    def _read(self) -> dict[str, list[dict[str, float]]]:
        try:
            data = read_json(self._file)
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}
