"""What a test has beside its sessions: a day of them, and what the service knows around."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from a40console.service.sessions import Around
from tests.gateway.session_clients import HEAD, Answer, Ask, Gateway, talk, who

A40 = Decimal("0.44")


def around(**changes: Any) -> Around:
    plain = Around(slots=(), window_tokens=32768, usd_per_hour=A40, told={}, run_id="run-1")
    return replace(plain, **changes)


def busy_day(gateway: Gateway) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), prompt=3000, cached=0, calls=(("Bash", "t1"),))
    gateway.turn(Ask(who(agent="Explore a1b2c3d"), HEAD + talk(0)), prompt=3000, cached=None)
    gateway.turn(
        Ask(who(), HEAD + talk(1), tool_answers=(Answer("t1"),), removed={"billing header": 1}),
        prompt=4000,
        cached=0,
        calls=(("Edit", "t2"),),
    )
    gateway.turn(Ask(who("other"), HEAD), outcome="aborted", prompt=None, generated=None)
