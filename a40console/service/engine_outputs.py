"""The outputs of this machine's engine starts: pieces of them, and what their lines mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from a40console.engines.explain import explain_passage
from a40console.engines.logs import read_chunk
from a40console.engines.run_record import OUTPUT_FILE
from a40console.errors import UsageError
from a40console.model.codec import decode
from a40console.model.control import LogChunk
from a40console.model.engine_log import LogMeaning, LogPassage
from a40console.operations import record
from a40console.operations.record import RunRecord
from a40console.paths import Paths

MOST_PASSAGES = 64
LONGEST_PASSAGE_CHARS = 16_384


class EngineOutputs:
    """Reads them where they lie. Its methods block on the disk: call them in a thread."""

    def __init__(self, paths: Paths, newest: Callable[[], RunRecord | None]) -> None:
        self._runs = paths.engine_runs
        self._newest = newest

    def chunk(self, offset: int, limit_bytes: int, start: str, *, newest: bool) -> LogChunk:
        """A piece of a start's output; of the newest one where none is named.

        Raises:
            UsageError: If there is no such start.
        """
        run = self._run(start)
        if run is None:
            return LogChunk(path=None, text="", next_offset=0)
        path = run.folder(self._runs) / OUTPUT_FILE
        return read_chunk(path, offset, limit_bytes=limit_bytes, newest=newest)

    def explain(self, start: str, passages: Sequence[LogPassage]) -> tuple[LogMeaning | None, ...]:
        """What each passage of a start's output means; None where that is not known.

        Raises:
            UsageError: If there is no such start, or too much is asked at once.
        """
        if len(passages) > MOST_PASSAGES:
            raise UsageError(f"At most {MOST_PASSAGES} passages are explained at once")
        run = self._run(start)
        if run is None:
            return (None,) * len(passages)
        served = record.has_served(run.folder(self._runs))
        return tuple(
            explain_passage(
                passage.text[-LONGEST_PASSAGE_CHARS:],
                vllm_lines=run.profile.speaks_vllm,
                starting=passage.before_ready or not served,
            )
            for passage in passages
        )

    def _run(self, start: str) -> RunRecord | None:
        if not start:
            return self._newest() or record.latest(self._runs)
        for run in record.kept(self._runs):
            if run.id == start:
                return run
        raise UsageError(
            f"No output of a start {start} is kept",
            remedy="See which there are: a40console engine history",
        )


def asked_passages(body: bytes) -> tuple[str, list[LogPassage]]:
    """A start's id and the passages of a question about them.

    Raises:
        UsageError: If it has another form.
    """
    try:
        data = json.loads(body)
        start = data.get("start", "")
        passages = [decode(LogPassage, item) for item in data["passages"]]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(
            "A question about the output is JSON with start and passages", evidence=str(error)
        ) from error
    if not isinstance(start, str):
        raise UsageError("A start's id is a text")
    return start, passages
