"""An output processor with the structures of vLLM's that the plugin reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from types import SimpleNamespace
from typing import Any


class EventType(IntEnum):
    QUEUED = 1
    SCHEDULED = 2
    PREEMPTED = 3


@dataclass
class RequestStateStats:
    arrival_time: float = 0.0
    queued_ts: float = 0.0
    scheduled_ts: float = 0.0
    first_token_ts: float = 0.0
    first_token_latency: float = 0.0


class RequestState:
    def __init__(self, request_id: str, prompt_len: int, max_tokens_param: int | None) -> None:
        self.request_id = request_id
        self.external_req_id = request_id.rsplit("-", 1)[0]
        self.prompt_len = prompt_len
        self.max_tokens_param = max_tokens_param
        self.is_prefilling = True
        self.num_cached_tokens = 0
        self.stats: RequestStateStats | None = RequestStateStats(arrival_time=100.0)
        self.resumable = False


@dataclass
class EngineCoreOutput:
    request_id: str
    new_token_ids: list[int]
    finish_reason: str | None = None
    events: list[Any] | None = None
    prefill_stats: Any = None
    stop_after: int | None = None
    """Tokens after which the fake finds a stop string."""


@dataclass
class IterationStats:
    finished_requests: list[Any] = field(default_factory=list)


class OutputProcessor:
    def __init__(self) -> None:
        self.request_states: dict[str, Any] = {}
        self.children: dict[str, list[str]] = {}

    def add(self, request_id: str, prompt_len: int = 10, max_tokens: int | None = 100) -> None:
        self.request_states[request_id] = RequestState(request_id, prompt_len, max_tokens)

    def process_outputs(
        self,
        engine_core_outputs: list[EngineCoreOutput],
        engine_core_timestamp: float | None = None,
        iteration_stats: IterationStats | None = None,
    ) -> str:
        for output in engine_core_outputs:
            state = self.request_states.get(output.request_id)
            if state is None:
                continue
            if state.is_prefilling and output.prefill_stats is not None:
                state.num_cached_tokens = output.prefill_stats.num_cached_tokens
            if state.is_prefilling and state.stats is not None:
                state.stats.queued_ts, state.stats.scheduled_ts = 1.0, 3.0
                state.stats.first_token_ts, state.stats.first_token_latency = 7.0, 6.5
            state.is_prefilling = False
            reason = output.finish_reason
            if output.stop_after is not None:
                reason = "stop"
                del output.new_token_ids[output.stop_after :]
            if reason is not None and not state.resumable:
                del self.request_states[output.request_id]
                if iteration_stats is not None:
                    iteration_stats.finished_requests.append(SimpleNamespace(finish_reason=reason))
        return "worked in"

    def abort_requests(self, request_ids: list[str], internal: bool) -> list[str]:
        aborted = []
        for request_id in request_ids:
            if self.request_states.pop(request_id, None) is not None:
                aborted.append(request_id)
            elif request_id in self.children:
                aborted += self.abort_requests(self.children.pop(request_id), internal=True)
        return aborted


def output(
    request_id: str,
    tokens: int,
    *,
    prompt: tuple[int, int] | None = None,
    finish_reason: str | None = None,
    preempted: bool = False,
    stop_after: int | None = None,
) -> EngineCoreOutput:
    """One engine output; ``prompt`` is (prompt tokens, cached tokens) on a first one."""
    prefill = None
    if prompt is not None:
        total, cached = prompt
        prefill = SimpleNamespace(
            num_prompt_tokens=total,
            num_cached_tokens=cached,
            num_computed_tokens=total - cached,
        )
    events = [SimpleNamespace(type=EventType.PREEMPTED)] if preempted else None
    return EngineCoreOutput(
        request_id, list(range(tokens)), finish_reason, events, prefill, stop_after
    )


def report(running: int, waiting: int, speculation: Any = None, deferred: int = 0) -> Any:
    """A SchedulerStats."""
    return SimpleNamespace(
        num_running_reqs=running,
        num_waiting_reqs=waiting - deferred,
        num_skipped_waiting_reqs=deferred,
        kv_cache_usage=0.25,
        spec_decoding_stats=speculation,
    )
