"""Whether answers keep to the Messages API, each with what was seen. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from a40console.experiments.bench import Reply
from a40console.experiments.checks import Check
from a40console.model.figures import Figure, Missing, number

CONTROLS = ("text", "stream order", "tool call", "parallel calls", "count_tokens")

_NO_ROUTE = frozenset({404, 405, 501})
_ENDS = frozenset({"end_turn", "max_tokens", "stop_sequence"})
_SHOWN_CHARACTERS = 60


def no_messages(reply: Reply) -> bool:
    """Whether the target has no such route at all."""
    return bool(reply.sample.error) and reply.status in _NO_ROUTE


def check_text(reply: Reply) -> Check:
    """A whole answer: a text, a reason why it stopped, and usage."""
    name = CONTROLS[0]
    if reply.sample.error:
        return Check(name, False, reply.sample.error)
    if not reply.text.strip():
        return Check(name, False, f"no text; blocks: {_kinds(reply.blocks)}")
    if reply.stop_reason not in _ENDS:
        return Check(name, False, f"stop_reason is {reply.stop_reason or 'missing'!r}")
    usage = {"input": reply.sample.prompt_tokens, "output": reply.sample.generated_tokens}
    for of, told in usage.items():
        if isinstance(told, Missing):
            return Check(name, False, f"usage tells no {of} tokens: {told.reason}")
    prompt, written = number(reply.sample.prompt_tokens), number(reply.sample.generated_tokens)
    return Check(name, True, f"{prompt:.0f} → {written:.0f} tokens, {_shown(reply.text)}")


def check_order(reply: Reply) -> Check:
    """A stream whose events come in the order that the protocol asks for."""
    name = CONTROLS[1]
    if reply.sample.error:
        return Check(name, False, reply.sample.error)
    events = [event for event in reply.events if event != "ping"]
    fault = _disorder(events)
    if fault:
        return Check(name, False, f"{fault}; seen: {' → '.join(events) or 'no event'}")
    if isinstance(reply.sample.generated_tokens, Missing):
        return Check(name, False, "the stream tells no usage")
    return Check(name, True, " → ".join(events))


def check_tool(reply: Reply, tool: str) -> Check:
    """One call that the request insists on."""
    name = CONTROLS[2]
    if reply.sample.error:
        return Check(name, False, reply.sample.error)
    calls = _calls(reply)
    if not calls:
        return _no_call(name, reply)
    fault = _call_fault(calls[0], tool)
    if fault:
        return _faulty(name, reply, fault)
    if reply.stop_reason != "tool_use":
        told = f"stop_reason is {reply.stop_reason!r} and not 'tool_use', after a call"
        return Check(name, False, told)
    return Check(name, True, _call_text(calls[0]))


def check_calls(reply: Reply, tool: str) -> Check:
    """Two calls in one answer; a model that makes one only cannot be tried."""
    name = CONTROLS[3]
    if reply.sample.error:
        return Check(name, False, reply.sample.error)
    calls = _calls(reply)
    if not calls:
        return _no_call(name, reply)
    for call in calls:
        if fault := _call_fault(call, tool):
            return _faulty(name, reply, fault)
    if len(calls) < 2:
        return Check(name, None, f"the model made one call: {_call_text(calls[0])}")
    if len({call.get("id") for call in calls}) < len(calls):
        return Check(name, False, "two calls have the same id")
    if reply.stop_reason not in {"tool_use", "max_tokens"}:
        return Check(name, False, f"stop_reason is {reply.stop_reason!r} and not 'tool_use'")
    return Check(name, True, ", ".join(map(_call_text, calls)))


def check_count(counted: Reply, prompt_tokens: Figure) -> Check:
    """The count of a prompt against what its answer's usage told of it."""
    name = CONTROLS[4]
    if counted.sample.error:
        return Check(name, False, counted.sample.error)
    told, used = number(counted.sample.prompt_tokens), number(prompt_tokens)
    if told is None:
        return Check(name, False, "the answer has no input_tokens")
    if used is None:
        return Check(name, None, f"it tells {told:.0f}, and usage tells nothing to compare")
    if told != used:
        return Check(name, False, f"it tells {told:.0f}, and the same prompt's usage {used:.0f}")
    return Check(name, True, f"{told:.0f} tokens, as usage told of the same prompt")


def _disorder(events: Sequence[str]) -> str:
    """What is out of order in a stream's events, equal ones in a row taken as one."""
    if events[:1] != ["message_start"]:
        return "it does not begin with message_start"
    if events[-2:] != ["message_delta", "message_stop"]:
        return "it does not end with message_delta and message_stop"
    within = events[1:-2]
    if not within:
        return "there is no content block"
    at = 0
    while at < len(within):
        if within[at] != "content_block_start":
            return f"{within[at]} stands where a content block begins"
        at += 1
        if at < len(within) and within[at] == "content_block_delta":
            at += 1
        if at == len(within) or within[at] != "content_block_stop":
            return "a content block does not stop"
        at += 1
    return ""


def _calls(reply: Reply) -> list[Mapping[str, Any]]:
    return [block for block in reply.blocks if block.get("type") == "tool_use"]


def _no_call(name: str, reply: Reply) -> Check:
    if reply.stop_reason == "tool_use":
        return Check(name, False, "stop_reason is 'tool_use' without a call")
    if reply.stop_reason == "max_tokens":
        return Check(name, None, "no call before the answer's limit of tokens")
    return Check(name, None, f"the model answered in words: {_shown(reply.text)}")


def _faulty(name: str, reply: Reply, fault: str) -> Check:
    """A broken call; one that the limit cut is the limit's fault."""
    if reply.stop_reason == "max_tokens":
        return Check(name, None, f"cut by the answer's limit of tokens: {fault}")
    return Check(name, False, fault)


def _call_fault(call: Mapping[str, Any], tool: str) -> str:
    if call.get("name") != tool:
        return f"it called {call.get('name')!r}, and there is only {tool!r}"
    if not call.get("id"):
        return "the call has no id"
    arguments = str(call.get("arguments", ""))
    try:
        given = json.loads(arguments)
    except ValueError as error:
        return f"its arguments are no JSON ({error}): {_begun(arguments)}"
    if not isinstance(given, dict) or not isinstance(given.get("city"), str):
        return f"its arguments do not fit the schema: {_begun(arguments)}"
    return ""


def _call_text(call: Mapping[str, Any]) -> str:
    return f"{call.get('name')}({_begun(str(call.get('arguments', '')))})"


def _kinds(blocks: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(str(block.get("type")) for block in blocks) or "none"


def _shown(text: str) -> str:
    return repr(_begun(" ".join(text.split())))


def _begun(text: str) -> str:
    """Its beginning, and that it goes on."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
