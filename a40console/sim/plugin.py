"""The console's plugin as vLLM would run it: every request as a row, totals of the same instant."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request as HttpRequest

from a40console.sim.controls import Controls
from a40console.sim.core import Core
from a40console.sim.requests import Request

FORMAT_VERSION = 1
PREFIX = "/a40console/v1/"
PATH = PREFIX + "state"
LARGEST_BODY_BYTES = 4096
TOKEN_FILE_VARIABLE = "A40CONSOLE_PLUGIN_TOKEN_FILE"  # noqa: S105 - the name of a variable


def state(
    core: Core,
    controls: Controls,
    *,
    boot: str,
    since: int,
    now_s: float,
    to_unix_s: Callable[[float], float],
) -> dict[str, Any]:
    """The plugin's answer.

    Args:
        core: The engine.
        controls: What can be changed of it.
        boot: Names this life of it.
        since: Sequence number of the last finished request that the asker knows.
        now_s: The engine's time.
        to_unix_s: From the engine's time to the wall clock's.
    """
    finished = [
        _ended(number, request, to_unix_s) for number, request in core.ended if number > since
    ]
    newest = core.ended[-1][0] if core.ended else 0
    return {
        "version": FORMAT_VERSION,
        "boot": boot,
        "at_monotonic_s": now_s,
        "at_unix_s": to_unix_s(now_s),
        "sequence": newest,
        "running": [_row(request, to_unix_s) for request in core.live()],
        "finished": finished,
        "lost": max(0, newest - max(since, 0) - len(finished)),
        "totals": _totals(core),
        "scheduler": {
            "running": len(core.running),
            "waiting": len(core.waiting) + len(core.arriving),
            "kv_cache_usage_ratio": core.pool.held / core.pool.size,
            "at_unix_s": to_unix_s(now_s),
        },
        "paused": core.paused,
        "disabled": None,
        "errors": 0,
        **controls.told(),
    }


async def body_of(request: HttpRequest) -> dict[str, Any]:
    """The JSON object of a control's body; nothing at all is an empty one.

    Raises:
        ValueError: If it is none, or too large.
    """
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > LARGEST_BODY_BYTES:
            raise ValueError(f"the body is larger than {LARGEST_BODY_BYTES} bytes")
    try:
        body = json.loads(bytes(read) or b"{}")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise ValueError("the body must be a JSON object")
    return body


def _row(request: Request, to_unix_s: Callable[[float], float]) -> dict[str, Any]:
    arrived_s, first_s = request.arrived_s, request.first_token_s
    scheduled_s, last_s = request.scheduled_s, request.last_token_s
    known = first_s is not None  # vLLM tells the rest with the first token only
    return {
        "id": request.order.request_id,
        "external_id": request.order.external_id,
        "prompt_tokens": len(request.order.prompt),
        "cached_tokens": request.cached if known else None,
        "max_tokens": request.order.max_tokens,
        "generated_tokens": request.generated,
        "passes": request.passes,
        "phase": request.phase,
        "arrival_unix_s": to_unix_s(arrived_s),
        "queued_s": scheduled_s - arrived_s if known and scheduled_s is not None else None,
        "prefill_s": first_s - scheduled_s
        if first_s is not None and scheduled_s is not None
        else None,
        "first_token_s": first_s - arrived_s if first_s is not None else None,
        "last_token_unix_s": to_unix_s(last_s) if last_s is not None else None,
        "preemptions": request.preemptions,
    }


def _ended(number: int, request: Request, to_unix_s: Callable[[float], float]) -> dict[str, Any]:
    row = _row(request, to_unix_s)
    row["phase"] = "decode" if request.passes else None
    row["sequence"] = number
    row["finish_reason"] = request.finish_reason
    row["ended_unix_s"] = to_unix_s(request.ended_s or 0.0)
    return row


def _totals(core: Core) -> dict[str, Any]:
    counted, speculating = core.statistics, core.options.depth > 0
    drafts = {
        "drafts": counted.drafts,
        "draft_tokens": counted.draft_tokens,
        "accepted_tokens": counted.accepted_tokens,
        "accepted_per_position": list(counted.accepted_per_position),
        "drafted_per_position": list(counted.drafted_per_position),
    }
    return {
        "generated_tokens": counted.generated_tokens,
        "discarded_tokens": 0,
        "prompt_tokens": counted.prompt_tokens,
        "cached_tokens": counted.cached_tokens,
        "computed_prompt_tokens": counted.computed_prompt_tokens,
        "started": counted.started,
        "finished": counted.finished,
        "aborted": counted.aborted,
        "preemptions": counted.preemptions,
        "steps": counted.passes,
        "prefill_only_steps": counted.prefill_only_passes,
        **{name: value if speculating else None for name, value in drafts.items()},
    }
