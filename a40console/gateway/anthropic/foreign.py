"""Blocks that no engine of ours takes, as text: what they say is kept, the request never refused.

The text depends on the block alone, so that it is the same in each turn that repeats it.
"""

from __future__ import annotations

import json
from typing import Any

IMAGE_LEFT_OUT = "[An image was here; this model takes text only.]"
_DATA_LIMIT = 2000


def as_text(block: dict[str, Any]) -> str:
    """What a block says, in plain text; a note of what was there where it cannot be said."""
    kind = text_of(block.get("type")) or "block"
    match kind:
        case "image":
            return IMAGE_LEFT_OUT
        case "document":
            return _document(block)
        case "search_result":
            return _joined(_titled("Search result", block), contents(block.get("content")))
        case "server_tool_use" | "mcp_tool_use" | "tool_use":
            return (
                f"[Tool {text_of(block.get('name'))} was called with {_plain(block.get('input'))}]"
            )
        case "tool_reference":
            name = text_of(block.get("tool_name")) or text_of(block.get("name"))
            return f"[Tool {name} is available now.]"
        case "container_upload":
            return f"[A file was uploaded: {text_of(block.get('file_id'))}]"
        case "thinking" | "compaction":
            return text_of(block.get("thinking")) or contents(block.get("content"))
    return _joined(f"[{kind}]", text_of(block.get("text")) or contents(block.get("content")))


def contents(content: object) -> str:
    """The text of a block's content, whatever stands in it."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return contents([content])
    if not isinstance(content, list):
        return ""
    parts = [_content(part) for part in content]
    return "\n".join(part for part in parts if part)


def text_of(value: object) -> str:
    """A text, and nothing for anything else."""
    return value if isinstance(value, str) else ""


def _content(part: object) -> str:
    if not isinstance(part, dict):
        return text_of(part)
    match part.get("type"):
        case "text":
            return text_of(part.get("text"))
        case "web_search_result":
            return _titled("Search result", part)
        case kind if isinstance(kind, str) and kind.endswith("_error"):
            return f"[{kind}: {text_of(part.get('error_code'))}]"
    return as_text(part)


def _document(block: dict[str, Any]) -> str:
    """A document's text; one in a binary format is only named."""
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    head = _titled("Document", block)
    match source.get("type"):
        case "text":
            return _joined(head, text_of(source.get("data")), text_of(block.get("context")))
        case "content":
            return _joined(head, contents(source.get("content")), text_of(block.get("context")))
    form = text_of(source.get("media_type")) or text_of(source.get("type")) or "unknown format"
    where = text_of(source.get("url")) or text_of(source.get("file_id"))
    return f"{head}\n[Its content ({form}) {where} cannot be read by this model.]".replace(
        "  ", " "
    )


def _titled(what: str, block: dict[str, Any]) -> str:
    named = [
        text_of(block.get(key)) for key in ("title", "source", "url") if text_of(block.get(key))
    ]
    return f"[{what}{': ' if named else ''}{', '.join(named)}]"


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:_DATA_LIMIT]


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part)
