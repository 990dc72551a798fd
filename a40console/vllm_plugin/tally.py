"""The books: what each request and the engine as a whole have done since this process started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .rows import FinishedRows, Progress, request_row  # noqa: TID252

ABORT = "abort"
STOP = "stop"
PREEMPTED = "PREEMPTED"


class Taken(NamedTuple):
    """One engine output, as it was before vLLM worked it in."""

    output: Any
    state: Any
    offered_tokens: int
    """Tokens that the engine counts; vLLM may yet cut some off behind a stop string."""
    prefilling: bool


class Tally:
    """Counts tokens, passes and endings from the outputs that vLLM works in.

    A row counts the tokens that its client is told of in ``usage``; ``discarded_tokens`` are
    those that the engine's own counter holds as well but that were cut off behind a stop string.
    """

    def __init__(self) -> None:
        self.progress: dict[str, Progress] = {}
        """Live requests that have had an output, by internal id."""
        self.finished = FinishedRows()
        self.aborted = 0
        self.generated_tokens = 0
        self.discarded_tokens = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.computed_prompt_tokens = 0
        self.preemptions = 0
        self.took_part = 0
        """Live requests that gave tokens in the step being worked in."""
        self.decoded = False
        """Whether one of that step's tokens came from a request already past its prompt."""
        self.removed = 0
        """Requests that ended here before the scheduler knew, since the last report."""

    def take(self, outputs: Iterable[Any], states: Mapping[str, Any]) -> list[Taken]:
        """Notes outputs before vLLM works them in; those of requests already gone are ignored."""
        return [
            Taken(output, state, len(output.new_token_ids), state.is_prefilling)
            for output in outputs
            if (state := states.get(output.request_id)) is not None
        ]

    def settle(
        self,
        taken: Iterable[Taken],
        states: Mapping[str, Any],
        reasons: list[str],
        now_unix_s: float,
    ) -> None:
        """Counts outputs that vLLM has worked in, and closes the rows of those that ended.

        Args:
            taken: What ``take`` noted.
            states: The live requests after the call.
            reasons: Finish reasons that vLLM recorded in the call, in order, where it records
                any: a stop string found on the last permitted token reads "stop" only there.
            now_unix_s: When the outputs arrived.
        """
        ended: list[tuple[Taken, Progress]] = []
        for item in taken:
            request_id = item.output.request_id
            progress = self.progress.setdefault(request_id, Progress(item.state))
            self._count(item, progress, now_unix_s)
            if states.get(request_id) is not item.state:
                del self.progress[request_id]
                ended.append((item, progress))
            elif item.offered_tokens:
                self.took_part += 1
        recorded = len(reasons) == len(ended)
        for index, (item, progress) in enumerate(ended):
            self.removed += item.output.finish_reason is None
            reason = reasons[index] if recorded else progress.finish_reason or STOP
            self._close(item.state, progress, reason, now_unix_s)

    def _count(self, item: Taken, progress: Progress, now_unix_s: float) -> None:
        output = item.output
        if item.offered_tokens:
            kept = len(output.new_token_ids)
            progress.generated_tokens += kept
            progress.passes += 1
            progress.last_token_unix_s = now_unix_s
            self.generated_tokens += kept
            self.discarded_tokens += item.offered_tokens - kept
            self.decoded = self.decoded or not item.prefilling
        if output.finish_reason is not None:
            progress.finish_reason = str(output.finish_reason)
        prefill = output.prefill_stats
        if item.prefilling and prefill is not None:
            progress.cached_tokens = item.state.num_cached_tokens
            self.prompt_tokens += prefill.num_prompt_tokens
            self.cached_tokens += prefill.num_cached_tokens
            self.computed_prompt_tokens += prefill.num_computed_tokens
        for event in output.events or ():
            if event.type.name == PREEMPTED:
                progress.preemptions += 1
                self.preemptions += 1

    def drop(self, gone: Iterable[Any], now_unix_s: float) -> None:
        """Closes the rows of requests that were aborted on this side."""
        for state in gone:
            self.removed += 1
            progress = self.progress.pop(state.request_id, None)
            self._close(state, progress, ABORT, now_unix_s)

    def sweep(self, states: Mapping[str, Any], now_unix_s: float) -> None:
        """Closes what ended unseen: a request fed piece by piece, when its input ends after it."""
        for request_id, progress in list(self.progress.items()):
            if states.get(request_id) is not progress.state:
                del self.progress[request_id]
                self._close(progress.state, progress, progress.finish_reason or STOP, now_unix_s)

    def _close(self, state: Any, progress: Progress | None, reason: str, now_unix_s: float) -> None:
        self.aborted += reason == ABORT
        self.finished.append(state, progress, reason, now_unix_s)

    def rows(self, states: Mapping[str, Any], phases: Mapping[str, str]) -> list[dict[str, Any]]:
        """The rows of the live requests, oldest first."""
        return [
            request_row(state, self.progress.get(request_id), phases.get(request_id))
            for request_id, state in states.items()
        ]

    def totals(self, live: int) -> dict[str, Any]:
        """Everything counted here since the start, with so many requests live."""
        return {
            "generated_tokens": self.generated_tokens,
            "discarded_tokens": self.discarded_tokens,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "computed_prompt_tokens": self.computed_prompt_tokens,
            "started": self.finished.sequence + live,
            "finished": self.finished.sequence - self.aborted,
            "aborted": self.aborted,
            "preemptions": self.preemptions,
        }
