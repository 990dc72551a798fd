"""The guarded hooks on vLLM's output processor, and the answer made from what they saw."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from typing import Any, TypeVar

from .phase import DECODE, PREFILL, Report, told_phases  # noqa: TID252
from .speculation import SpeculationTotals  # noqa: TID252
from .structure import missing_parts  # noqa: TID252
from .tally import Tally  # noqa: TID252

ANSWER_VERSION = 1
ERRORS_ALLOWED = 3

_logger = logging.getLogger("vllm.plugins.a40console")
_Result = TypeVar("_Result")


class Watch:
    """Watches one engine's requests without the engine noticing.

    Nothing raised here reaches vLLM: it is counted, and at the third time the hooks come off and
    the answer says so. One watch serves one API server process; its methods run on that
    process's event loop and never wait, so an answer is of one moment.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.disabled: str | None = "the plugin is not attached to an engine"
        """Why nothing is watched, if so."""
        self._clock = clock
        self._monotonic = monotonic
        self._boot = secrets.token_hex(8)
        self._tally = Tally()
        self._speculation: SpeculationTotals | None = None
        self._in_order = False
        self._processor: Any = None
        self._originals: dict[str, Callable[..., Any]] = {}
        self._hooks: dict[str, Callable[..., Any]] = {}
        self._aborting = False
        self._errors = 0
        self._reports: dict[int, Report] = {}
        self._phases: dict[str, str] = {}
        self._removed_before = 0
        self._steps: int | None = None
        self._prefill_only_steps: int | None = None

    @property
    def steps(self) -> int | None:
        """Engine steps since the start; None where vLLM does not report them."""
        return self._steps

    def attach(self, processor: Any, *, api_servers: int) -> None:
        """Hooks vLLM's OutputProcessor, unless it lacks a part or sees only some requests."""
        if api_servers > 1:
            self.disabled = f"{api_servers} API server processes share the engine: each sees a part"
            return
        missing = missing_parts(processor)
        if missing:
            self.disabled = f"this vLLM lacks {', '.join(missing)}"
            return
        self._processor = processor
        self._hook("process_outputs", self._process_outputs)
        self._hook("abort_requests", self._abort_requests)
        self.disabled = None

    def reports_come(self, *, in_order: bool, draft_tokens: int) -> None:
        """Says that steps are reported from now on.

        Args:
            in_order: Whether the scheduler admits requests strictly by age.
            draft_tokens: Speculation's depth; 0 where the engine was started without.
        """
        self._in_order = in_order
        # vLLM makes its loggers anew when it scales: what was counted stays.
        if self._steps is None:
            self._steps = self._prefill_only_steps = 0
            self._speculation = SpeculationTotals(draft_tokens) if draft_tokens else None

    def record(self, scheduler_stats: Any, iteration_stats: Any, engine_index: int) -> None:
        """Takes in what vLLM reports at the end of each engine step."""
        self._guarded(self._record, scheduler_stats, iteration_stats, engine_index)

    def answer(self, since: int, paused: bool | None) -> dict[str, Any]:
        """The whole state, with the requests that ended after a sequence number.

        Raises:
            Exception: Whatever vLLM's structures raised; it is counted like any other error.
        """
        watched = self._watched(paused) if self.disabled is None else None
        finished, lost = self._tally.finished.since(since)
        rows, totals = watched or ([], dict.fromkeys(self._totals(0)))
        report = Report.joined(self._reports.values())
        return {
            "version": ANSWER_VERSION,
            "boot": self._boot,
            "at_monotonic_s": self._monotonic(),
            "at_unix_s": self._clock(),
            "sequence": self._tally.finished.sequence,
            "running": rows,
            "finished": finished,
            "lost": lost,
            "totals": totals,
            "scheduler": report.told() if report is not None and watched else None,
            "paused": paused,
            "disabled": self.disabled,
            "errors": self._errors,
        }

    def _watched(self, paused: bool | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        try:
            states = self._processor.request_states
            self._tally.sweep(states, self._clock())
            phases = self._phases | {
                request_id: DECODE
                for request_id in self._tally.progress
                if not states[request_id].is_prefilling
            }
            # An idle engine takes the only request at once; one that is in a step cannot say
            # whether it is paused, and one that is paused can.
            report = Report.joined(self._reports.values())
            alone = len(states) == 1 and (report is None or report.idle)
            if alone and paused is not True:
                phases = dict.fromkeys(states, PREFILL) | phases
            return self._tally.rows(states, phases), self._totals(len(states))
        except Exception as error:
            self._failed(error)
            raise

    def _totals(self, live: int) -> dict[str, Any]:
        return {
            **self._tally.totals(live),
            "steps": self._steps,
            "prefill_only_steps": self._prefill_only_steps,
            **SpeculationTotals.told(self._speculation),
        }

    def _hook(self, name: str, hook: Callable[..., Any]) -> None:
        self._originals[name] = getattr(self._processor, name)
        self._hooks[name] = hook
        setattr(self._processor, name, hook)

    def _unhook(self) -> None:
        for name, hook in self._hooks.items():
            # Someone else may have wrapped the method since: theirs stays, ours passes through.
            if getattr(self._processor, name, None) == hook:
                setattr(self._processor, name, self._originals[name])

    def _process_outputs(self, *args: Any, **kwargs: Any) -> Any:
        settle = self._guarded(self._take, args, kwargs)
        result = self._originals["process_outputs"](*args, **kwargs)
        if settle is not None:
            self._guarded(settle)
        return result

    def _take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], None]:
        outputs = args[0] if args else kwargs["engine_core_outputs"]
        stats = args[2] if len(args) > 2 else kwargs.get("iteration_stats")
        states = self._processor.request_states
        now_unix_s = self._clock()
        taken = self._tally.take(outputs, states)
        recorded = stats.finished_requests if stats is not None else []
        already = len(recorded)

        def settle() -> None:
            reasons = [str(request.finish_reason) for request in recorded[already:]]
            self._tally.settle(taken, states, reasons, now_unix_s)

        return settle

    def _abort_requests(self, *args: Any, **kwargs: Any) -> Any:
        original = self._originals["abort_requests"]
        # vLLM aborts the children of a request by calling itself: the outer call sees them all.
        before = None if self._aborting else self._guarded(self._live_states)
        if before is None:
            return original(*args, **kwargs)
        self._aborting = True
        try:
            return original(*args, **kwargs)
        finally:
            self._aborting = False
            self._guarded(self._drop, before)

    def _live_states(self) -> dict[str, Any]:
        return dict(self._processor.request_states)

    def _drop(self, before: dict[str, Any]) -> None:
        states = self._processor.request_states
        gone = [state for request_id, state in before.items() if request_id not in states]
        self._tally.drop(gone, self._clock())

    def _record(self, scheduler_stats: Any, iteration_stats: Any, engine_index: int) -> None:
        tally = self._tally
        if iteration_stats is not None and self._steps is not None:
            self._steps += 1
            if not tally.decoded and self._prefill_only_steps is not None:
                self._prefill_only_steps += 1
        took_part, removed = tally.took_part, tally.removed
        tally.took_part, tally.decoded, tally.removed = 0, False, 0
        if scheduler_stats is None:
            return
        deferred = scheduler_stats.num_skipped_waiting_reqs
        self._reports[engine_index] = Report(
            running=scheduler_stats.num_running_reqs,
            waiting=scheduler_stats.num_waiting_reqs + deferred,
            deferred=deferred,
            kv_cache_usage_ratio=scheduler_stats.kv_cache_usage,
            at_unix_s=self._clock(),
        )
        if self._speculation is not None and scheduler_stats.spec_decoding_stats is not None:
            self._speculation.add(scheduler_stats.spec_decoding_stats)
        self._tell_phases(took_part, removed)
        self._removed_before = removed

    def _tell_phases(self, took_part: int, removed: int) -> None:
        report = Report.joined(self._reports.values())
        states = self._processor.request_states
        decoding = len(self._tally.progress)
        self._phases = {}
        if report is not None and len(states) > decoding:
            self._phases = told_phases(
                report,
                [request_id for request_id in states if request_id not in self._tally.progress],
                decoding=decoding,
                took_part=took_part,
                # An abort reaches the scheduler after the step that is running by then.
                removed=removed + self._removed_before,
                in_order=self._in_order and report.deferred == 0,
            )

    def _guarded(self, step: Callable[..., _Result], *args: Any) -> _Result | None:
        if self.disabled is not None:
            return None
        try:
            return step(*args)
        except Exception as error:  # noqa: BLE001 - an error of ours must not stop the engine
            self._failed(error)
            return None

    def _failed(self, error: Exception) -> None:
        self._errors += 1
        _logger.warning("a40console: error %d in the request watch: %r", self._errors, error)
        if self._errors >= ERRORS_ALLOWED and self.disabled is None:
            self.disabled = f"{self._errors} errors in the request watch, the last: {error!r}"
            self._unhook()
