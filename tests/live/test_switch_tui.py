"""Another model under load, from the console in a real terminal: on the simulated engine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.faults.load import load
from tests.faults.switching import Switching, switching_console
from tests.live.open_consoles import confirm, in_tmux, pick, press

pytestmark = [
    pytest.mark.pty,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]

ANSWER_TOKENS = 300
"""So many that a drain can be watched: about a second at alpha's speed."""


@pytest.fixture
def switching() -> Iterator[Switching]:
    """`alpha` serves and stops slowly; how long `beta` takes to start is known by one start."""
    with switching_console() as made:
        made.sim("alpha", "slow_stop=1.5")
        made.sim("beta", model="kimi-linear-48b", start_s=4, speed=1)
        for name in ("beta", "alpha"):
            made.succeed("engine", "switch", name, "--yes")
        yield made


def verdict(*signs: str) -> Callable[[str], bool]:
    """Whether the line at the top holds all patterns."""
    return lambda screen: all(re.search(sign, screen.split("\n", 1)[0]) for sign in signs)


def test_the_screen_tells_each_step_of_a_switch(switching: Switching) -> None:
    extras = {"vllm_xargs": {"answer_tokens": ANSWER_TOKENS}}
    busy = load(switching.gateway, "coder", clients=4, answer_tokens=ANSWER_TOKENS, extras=extras)
    with busy as clients, in_tmux(switching) as tui:
        tui.wait_for(verdict("SERVING", "alpha", "[1-4] decoding"), 40)
        clients.until(4)
        press(tui, "engine.switch")
        pick(tui, "beta")
        question = tui.wait_for("From alpha to beta.")
        assert re.search(r"≈ \d+ s", question), question
        confirm(tui, "engine.switch")
        tui.wait_for(verdict("DRAINING", "switch to beta", "running requests end, at most 20 s"))
        tui.wait_for(verdict("STOPPING", "switch to beta", "what served is stopped"))
        starting = tui.wait_for(verdict("STARTING", r"≈ \d+ s left", "beta"))
        assert re.search("held at gate [1-4] ", starting), starting
        assert "LIMIT       – known only while an engine serves" in starting
        trying = tui.wait_for(verdict("STARTING", "trying it before clients come"))
        assert "held at gate 4 " in trying, trying
        tui.wait_for(verdict("SERVING", "[1-4] decoding", "0 held", "beta"))
        tui.wait_for("switch to beta: clients waited")
        clients.until(4)
    assert clients.errors == []
    assert switching.serving() == "beta"
    (told,) = switching.events("engine.switched")[-1:]
    assert re.fullmatch(
        r"switch to beta: clients waited [\d.]+ s \(drain .+, stop .+, start .+, canary .+\)",
        told["text"],
    )
