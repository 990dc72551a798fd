"""The turns of a conversation as chat messages; what stands before a turn never changes it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

from a40console.gateway.anthropic.foreign import IMAGE_LEFT_OUT

ChatMessage: TypeAlias = dict[str, Any]


def chat_messages(body: dict[str, Any], *, images: bool) -> list[ChatMessage]:
    """System and turns of a Messages body, each as the chat messages that it becomes."""
    messages: list[ChatMessage] = []
    system = _text(body.get("system"))
    if system:
        messages.append({"role": "system", "content": system})
    for turn in _objects(body.get("messages")):
        match turn.get("role"):
            case "assistant":
                messages.append(_assistant(turn.get("content"), images=images))
            case "system":
                messages += _system(turn.get("content"))
            case _:
                messages += _user(turn.get("content"), images=images)
    return messages


def _system(content: object) -> list[ChatMessage]:
    text = _text(content)
    return [{"role": "system", "content": text}] if text else []


def _assistant(content: object, *, images: bool) -> ChatMessage:
    """Text, thoughts and calls side by side; the template decides what becomes of old thoughts."""
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    blocks = _objects(content)
    message: ChatMessage = {"role": "assistant"}
    parts = _parts((block for block in blocks if block.get("type") != "tool_use"), images=images)
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    thoughts = [block.get("thinking") for block in blocks if block.get("type") == "thinking"]
    reasoning = "".join(thought for thought in thoughts if isinstance(thought, str))
    message["content"] = _content(parts) if parts else (None if calls else "")
    if reasoning:
        # vLLM reads `reasoning`, older ones and llama.cpp `reasoning_content`.
        message |= {"reasoning": reasoning, "reasoning_content": reasoning}
    if calls:
        message["tool_calls"] = calls
    return message


def _user(content: object, *, images: bool) -> list[ChatMessage]:
    """Tools' results first, one message each with its id, then what else the turn says."""
    if isinstance(content, str):
        return [{"role": "user", "content": content}]
    messages: list[ChatMessage] = []
    shown: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    for block in _objects(content):
        if block.get("type") != "tool_result":
            said += _parts((block,), images=images)
            continue
        parts = _parts(_result_blocks(block.get("content")), images=images)
        texts = [part["text"] for part in parts if part["type"] == "text"]
        answer = {"role": "tool", "tool_call_id": _name(block.get("tool_use_id"))}
        messages.append({**answer, "content": "\n".join(texts)})
        shown += [part for part in parts if part["type"] != "text"]
    if said or shown or not messages:
        messages.append({"role": "user", "content": _content([*shown, *said])})
    return messages


def _result_blocks(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return _objects(content)


def _call(block: dict[str, Any]) -> dict[str, Any]:
    function = {
        "name": _name(block.get("name")),
        "arguments": json.dumps(block.get("input") or {}, ensure_ascii=False),
    }
    return {"id": _name(block.get("id")), "type": "function", "function": function}


def _parts(blocks: Iterable[dict[str, Any]], *, images: bool) -> list[dict[str, Any]]:
    """What blocks show: texts and images; thoughts and what only the API itself reads do not."""
    parts: list[dict[str, Any]] = []
    for block in blocks:
        text = block.get("text")
        if block.get("type") == "image":
            parts.append(_image(block.get("source"), images=images))
        elif isinstance(text, str) and text:
            parts.append({"type": "text", "text": text})
    return parts


def _image(source: object, *, images: bool) -> dict[str, Any]:
    if not images or not isinstance(source, dict):
        return {"type": "text", "text": IMAGE_LEFT_OUT}
    url = source.get("url")
    if source.get("type") != "url":
        url = f"data:{source.get('media_type', 'image/jpeg')};base64,{source.get('data', '')}"
    return {"type": "image_url", "image_url": {"url": url}}


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """One text as a string, as every template takes it; several parts as they are."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return parts


def _text(content: object) -> str:
    """A system prompt's text; its blocks stand side by side, as vLLM joins them."""
    if isinstance(content, str):
        return content
    texts = (block.get("text") for block in _objects(content))
    return "".join(text for text in texts if isinstance(text, str))


def _name(value: object) -> str:
    return value if isinstance(value, str) else ""


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
