"""A lost prefix in words: what parted, and what the operator can do about it. Pure."""

from __future__ import annotations

from a40console.gateway.prefix import Parting
from a40console.model.session import Block, BlockKind

_REMEDIES: dict[BlockKind, str] = {
    "tool": "Keep the tools of a session as they are: connect MCP servers before it begins, and "
    "set ENABLE_TOOL_SEARCH=0 for the client.",
    "system": "Keep the system prompt as it is: set CLAUDE_CODE_ATTRIBUTION_HEADER=0 for the "
    "client, and take dates, counters and ids out of it.",
    "system turn": "The client rewrites its reminders: set CLAUDE_CODE_TOTAL_TOKENS_REMINDER=off "
    "for it.",
    "user text": "Let the client append to its history, and not rewrite what was said.",
    "assistant text": "Let the client send answers back as they came.",
    "thinking": "The client drops its thinking: each time it does, all that follows is read "
    "again. Switch thinking off, or keep all of it.",
    "tool_use": "Let the client send tool calls back as they came.",
    "tool_result": "Pruning tool results at every turn loses the prefix every time: compact in "
    "blocks instead.",
    "image": "Let the client keep the images of its history, or leave them out from the start.",
    "other": "Let the client append to its history, and not rewrite what was said.",
}
EVICTED_REMEDY = (
    "Fewer sessions at once, or a larger KV cache; where it comes at every turn, the engine's chat "
    "template renders earlier turns anew."
)
EVICTED = "the same prompt went on, but the engine had it no more"
COMPACTED = "the client summed its history up"
RESTARTED = "the engine was started anew"


def cause_of(parting: Parting) -> str:
    """`tool_result of message 12 changed`."""
    before, after = parting.before, parting.after
    match parting.change:
        case "cut":
            return f"the prompt ends before {_place(before)}"
        case "removed":
            return f"{_place(before)} was dropped"
        case "inserted" if after is not None:
            return f"{_place(after)} was put in"
        case _ if after is None or after.kind != before.kind:
            return f"{_place(before)} was replaced"
    if before.kind == "tool_result" and after.characters < before.characters:
        return f"{_place(before)} was pruned"
    if before.characters == after.characters:
        return f"{_place(before)} changed, at the same length: a date, a counter or an id in it"
    return f"{_place(before)} changed"


def remedy_of(parting: Parting) -> str:
    """What may help, by the kind of what parted."""
    inserted = parting.change == "inserted" and parting.after is not None
    kind = parting.after.kind if inserted and parting.after is not None else parting.before.kind
    return _REMEDIES[kind]


def _place(block: Block) -> str:
    return block.kind if block.message is None else f"{block.kind} of message {block.message + 1}"
