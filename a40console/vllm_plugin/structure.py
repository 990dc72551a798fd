"""Whether this vLLM has the private structures that the watch reads."""

from __future__ import annotations

import inspect
import sys
from typing import Any

_STATE = (
    "request_id",
    "external_req_id",
    "prompt_len",
    "max_tokens_param",
    "is_prefilling",
    "num_cached_tokens",
    "stats",
)
_STATS = ("arrival_time", "queued_ts", "scheduled_ts", "first_token_ts", "first_token_latency")
_OUTPUT = ("request_id", "new_token_ids", "finish_reason", "events", "prefill_stats")
_PARAMETERS = {"process_outputs": "engine_core_outputs", "abort_requests": "request_ids"}


def missing_parts(processor: Any) -> list[str]:
    """Names what the watch needs and this OutputProcessor, or the types it works with, lack."""
    missing = [
        f"OutputProcessor.{name}({parameter})"
        for name, parameter in _PARAMETERS.items()
        if parameter not in _parameters(getattr(processor, name, None))
    ]
    if not isinstance(getattr(processor, "request_states", None), dict):
        missing.append("OutputProcessor.request_states")
    module = _home(type(processor))
    for type_name, names in (
        ("RequestState", _STATE),
        ("RequestStateStats", _STATS),
        ("EngineCoreOutput", _OUTPUT),
    ):
        present = _attributes(getattr(module, type_name, None))
        missing += [f"{type_name}.{name}" for name in names if name not in present]
    return missing


def _home(kind: type) -> Any:
    """The module of vLLM's class, where a plugin may have put a subclass of it to work."""
    own = (base for base in kind.__mro__ if base.__name__ == "OutputProcessor")
    return sys.modules[next(own, kind).__module__]


def _parameters(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters) if callable(function) else set()


def _attributes(kind: Any) -> set[str]:
    """The instance attributes of a class: its fields, and the names its constructor assigns."""
    fields = {*getattr(kind, "__struct_fields__", ()), *getattr(kind, "__dataclass_fields__", ())}
    code = getattr(getattr(kind, "__init__", None), "__code__", None)
    return fields | set(code.co_names if code is not None else ())
