"""A simulated engine: requests with known lives, told as vLLM and our plugin tell them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx

from a40console.model.engine import Endpoint, EngineKind
from a40console.model.event import Severity
from a40console.telemetry.sampler import EngineSampler
from tests.telemetry.makers import Clock, Handler, json_answer, metrics_answer, routes


@dataclass
class Request:
    """A request whose whole life is known beforehand; times in seconds since the engine began."""

    id: str
    arrives_s: float
    prefill_s: float
    rate: float
    tokens: int
    external_id: str | None = None
    pass_tokens: int = 1
    max_tokens: int | None = None
    prompt_tokens: int = 100

    @property
    def first_s(self) -> float:
        return self.arrives_s + self.prefill_s

    @property
    def ends_s(self) -> float:
        passes = -(-(self.tokens - 1) // self.pass_tokens)
        return self.first_s + passes * self.pass_tokens / self.rate

    def emitted(self, at_s: float) -> int:
        """The first token ends the prefill; each later pass gives `pass_tokens`."""
        if at_s < self.first_s:
            return 0
        if at_s >= self.ends_s:
            return self.tokens
        passes = int((at_s - self.first_s) * self.rate / self.pass_tokens + 1e-9)
        return min(self.tokens, 1 + passes * self.pass_tokens)

    def passes(self, at_s: float) -> int:
        emitted = self.emitted(at_s)
        return 0 if not emitted else 1 + -(-(emitted - 1) // self.pass_tokens)

    def lives(self, at_s: float) -> bool:
        return self.arrives_s <= at_s < self.ends_s


@dataclass
class SimulatedEngine:
    """Answers as an engine whose requests are known."""

    clock: Clock
    requests: list[Request]
    born_s: float = 0.0
    boot: str = "boot-1"
    unix_apart_s: float = 1_700_000_000.0
    overrides: dict[str, httpx.Response | Handler] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    def now_s(self) -> float:
        return self.clock() - self.born_s

    def generated(self, at_s: float) -> int:
        return sum(request.emitted(at_s) for request in self.requests)

    def transport(self) -> httpx.MockTransport:
        def answer(request: httpx.Request) -> httpx.Response:
            self.seen.append(request.url.path)
            entry = self.overrides.get(request.url.path)
            if isinstance(entry, httpx.Response):
                return httpx.Response(
                    entry.status_code, headers=entry.headers, content=entry.content
                )
            return entry(request) if entry is not None else self._answer(request)

        return httpx.MockTransport(answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        at_s = self.now_s()
        match request.url.path:
            case "/metrics":
                return metrics_answer(self.vllm_metrics(at_s))
            case "/a40console/v1/state":
                if request.headers.get("authorization") != "Bearer secret":
                    return httpx.Response(401)
                return json_answer(self.state(at_s, int(request.url.params["since"])))
            case "/health":
                return httpx.Response(200)
            case "/version":
                return json_answer({"version": "0.33.0"})
            case "/v1/models":
                return json_answer({"data": [{"id": "tiny", "max_model_len": 4096}]})
        return httpx.Response(404)

    def vllm_metrics(self, at_s: float) -> str:
        lives = [request for request in self.requests if request.lives(at_s)]
        passes = sum(request.passes(at_s) for request in self.requests)
        first = sum(request.first_s <= at_s for request in self.requests)
        figures = {
            "generation_tokens_total": self.generated(at_s),
            "prompt_tokens_total": 100 * first,
            "prompt_tokens_cached_total": 0,
            "iteration_tokens_total_count": passes,
            "num_requests_running": len(lives),
            "num_requests_waiting": 0,
            "kv_cache_usage_perc": 0.1,
        }
        lines = [f'vllm:{name}{{engine="0"}} {value}' for name, value in figures.items()]
        for name, count in (
            ("inter_token_latency_seconds", passes - first),
            ("time_to_first_token_seconds", first),
        ):
            lines += [
                f'vllm:{name}_bucket{{engine="0",le="+Inf"}} {count}',
                f'vllm:{name}_count{{engine="0"}} {count}',
                f'vllm:{name}_sum{{engine="0"}} {0.01 * count}',
            ]
        return "\n".join([*lines, ""])

    def state(self, at_s: float, since: int) -> dict[str, Any]:
        ended = sorted(
            (request for request in self.requests if request.ends_s <= at_s),
            key=lambda request: request.ends_s,
        )
        lives = [request for request in self.requests if request.lives(at_s)]
        passes = sum(request.passes(at_s) for request in self.requests)
        return {
            "version": 1,
            "boot": self.boot,
            "at_monotonic_s": self.clock(),
            "at_unix_s": self.clock() + self.unix_apart_s,
            "sequence": len(ended),
            "running": [self._row(request, at_s) for request in lives],
            "finished": [
                self._row(request, at_s)
                | {
                    "sequence": number,
                    "finish_reason": "stop",
                    "ended_unix_s": self.born_s + request.ends_s + self.unix_apart_s,
                }
                for number, request in enumerate(ended, start=1)
                if number > since
            ],
            "lost": 0,
            "totals": {
                "generated_tokens": self.generated(at_s),
                "prompt_tokens": 100 * sum(r.first_s <= at_s for r in self.requests),
                "cached_tokens": 0,
                "computed_prompt_tokens": 100 * sum(r.first_s <= at_s for r in self.requests),
                "started": sum(r.arrives_s <= at_s for r in self.requests),
                "finished": len(ended),
                "aborted": 0,
                "steps": passes,
                "prefill_only_steps": 0,
                "preemptions": 0,
                "drafts": None,
                "draft_tokens": None,
                "accepted_tokens": None,
                "accepted_per_position": None,
                "drafted_per_position": None,
            },
            "scheduler": {"running": len(lives), "waiting": 0, "kv_cache_usage_ratio": 0.1},
            "paused": False,
            "disabled": None,
        }

    def _row(self, request: Request, at_s: float) -> dict[str, Any]:
        emitted = request.emitted(at_s)
        born_unix_s = self.born_s + self.unix_apart_s
        return {
            "id": request.id,
            "external_id": request.external_id,
            "prompt_tokens": request.prompt_tokens,
            "cached_tokens": 0 if emitted else None,
            "max_tokens": request.max_tokens,
            "generated_tokens": emitted,
            "passes": request.passes(at_s),
            "phase": "decode" if emitted else "prefill",
            "arrival_unix_s": born_unix_s + request.arrives_s,
            "queued_s": 0.02 if emitted else None,
            "prefill_s": request.prefill_s - 0.02 if emitted else None,
            "first_token_s": request.prefill_s if emitted else None,
            "last_token_unix_s": born_unix_s + min(at_s, request.ends_s) if emitted else None,
            "preemptions": 0,
        }


class Events(list[tuple[str, str, Severity, dict[str, str]]]):
    """Takes events."""

    def __call__(self, kind: str, text: str, severity: Severity, data: dict[str, str]) -> None:
        self.append((kind, text, severity, data))

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, *_ in self]


def sampler_of(
    engine: SimulatedEngine,
    *,
    kind: EngineKind = "vllm",
    plugin: bool = False,
    events: Events | None = None,
    **others: Any,
) -> EngineSampler:
    return EngineSampler(
        kind=kind,
        endpoint=Endpoint("http://engine", plugin_token="secret" if plugin else None),
        on_event=events if events is not None else Events(),
        clock=engine.clock,
        transport=engine.transport(),
        **others,
    )


async def poll(sampler: EngineSampler) -> None:
    """One round of all sources, at the instant of the clock."""
    for poller in sampler._feed.pollers:
        await poller.poll()


__all__ = ["Events", "Request", "SimulatedEngine", "poll", "routes", "sampler_of"]
