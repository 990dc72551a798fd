"""Requests that the console itself sends an engine, known by their ids from those of clients."""

from __future__ import annotations

import re
import secrets

_OWN = re.compile(r"console-(canary|probe|api|run)-[0-9a-f]{8}")
"""Within the engine's id: vLLM makes `chatcmpl-console-…` of it."""

RUN_SESSION = "a40console-run-"
"""Begins the session's name of an experiment that goes through the gateway; its id follows."""


def own_request_id(what: str) -> str:
    """A fresh id for a request of the canary, the probe, a run, or the look at the engine's API."""
    return f"console-{what}-{secrets.token_hex(4)}"


def own_request(external_id: str | None) -> str | None:
    """What of the console sent it; None where nothing of it did, or the engine keeps no id."""
    found = _OWN.search(external_id or "")
    return found.group(1) if found else None
