"""The Messages API on an engine that has only chat completions: the question there, answers back.

Pure: bodies, chunks and events are dictionaries, and nothing here waits for anything.
"""

from a40console.gateway.translation.answer import ChatToMessages
from a40console.gateway.translation.native import to_native
from a40console.gateway.translation.request import to_chat

__all__ = ["ChatToMessages", "to_chat", "to_native"]
