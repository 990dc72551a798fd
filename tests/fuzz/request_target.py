"""Feeds the request parser with whatever a fuzzer finds."""

from __future__ import annotations

from dataclasses import replace

from starlette.datastructures import Headers

from a40console.gateway.anthropic.asked import Asked, read_asked
from a40console.gateway.refusals import Refusal
from a40console.gateway.translation import to_chat
from tests.gateway.asking import FOLDING, KEEPING

DIALECTS = (FOLDING, replace(KEEPING, images=True), replace(FOLDING, route="translated"))


def once(data: bytes) -> None:
    """One body: it is understood or refused, and what is understood can be written."""
    dialect = DIALECTS[len(data) % len(DIALECTS)]
    headers = Headers({"user-agent": "fuzz"})
    for counting in (False, True):
        read: Asked | Refusal
        try:
            read = read_asked(data, headers, "/v1/messages", dialect, counting=counting)
        except Refusal as refusal:
            read = refusal
        if isinstance(read, Asked):
            assert read.body["model"] == "smollm2"
            to_chat(read.body, dialect)
        else:
            assert read.status == 400
            assert read.message
