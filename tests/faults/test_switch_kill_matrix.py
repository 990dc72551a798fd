"""Each process that takes part in a switch, killed in each of its phases, under clients.

Each victim in one phase, and those whose phases end differently in more; with
A40CONSOLE_KILL_MATRIX=FILE every victim in every phase, and what became of each is written there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.kills import (
    PHASES,
    SETTINGS,
    Asking,
    Cell,
    KillConsole,
    kill,
    losses,
    victim,
)
from tests.faults.load import load

pytestmark = [pytest.mark.slow, pytest.mark.pty]

ENGINE_VICTIMS = ("server", "core")
SERVICE_VICTIMS = ("keeper", "worker", "supervisor", "command", "console")
VICTIMS = ENGINE_VICTIMS + SERVICE_VICTIMS

LONG_TOKENS = 900
"""Of an answer that lasts two seconds, so that there is something to drain."""

LONG = {"vllm_xargs": {"answer_tokens": LONG_TOKENS}}
ENDS = ("engine.switched", "engine.rolled_back")

PUT_BACK = {
    ("server", "start"), ("server", "canary"), ("core", "start"), ("core", "canary"),
    ("worker", "drain"), ("worker", "stop"),
}  # fmt: skip
"""Where what served before serves again: the new engine is killed before clients reach it, or the
service before the new engine has begun."""

CUT_SHORT = {"cut short, said so"}
LOST = {
    "server": CUT_SHORT,
    "core": CUT_SHORT,
    "worker": {"ReadError", "RemoteProtocolError", "ConnectError", "the stream has no end"},
}
"""How clients lose what had begun in the engine, or was in the gateway: of that alone the
connection is cut without words."""

SAVED = {(who, phase) for who in ("server", "core") for phase in ("stop", "start", "canary")}
"""Where every request was held at the gate, or had ended."""

EXITS = {
    ("server", "start"): 4, ("server", "canary"): 4, ("core", "start"): 4, ("core", "canary"): 4,
    ("worker", ""): 3, ("worker", "gate"): 0, ("command", ""): -9, ("console", ""): 0,
}  # fmt: skip
"""Of whoever asked: the engine failed, the service is gone, it was killed itself."""

HEAD = "victim      phase   then             serves after   answered   requests lost"


TABLE = os.environ.get("A40CONSOLE_KILL_MATRIX")
DAILY = [
    ("server", "drain"), ("server", "start"),
    ("core", "canary"),
    ("keeper", "stop"),
    ("worker", "stop"), ("worker", "start"),
    ("supervisor", "drain"),
    ("command", "start"),
    ("console", "start"),
]  # fmt: skip
CELLS = [(who, phase) for who in VICTIMS for phase in PHASES] if TABLE else DAILY


@pytest.fixture(scope="module")
def who(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def shared(who: str) -> Iterator[KillConsole]:
    """A service for each victim: crashes that it has seen weigh on its restarts."""
    home = Path(tempfile.mkdtemp(prefix="a40k-", dir="/tmp"))
    made = KillConsole(home)
    try:
        made.configure(SETTINGS)
        if who == "core":
            made.stand_in("alpha", ready_s=0.1, rate=60, stop_s=0.8)
            made.stand_in("beta", ready_s=1.5, rate=60)
        else:
            start_s = 0.2 if who in ("server", "worker", "supervisor") else 1.0
            made.engine("alpha", "slow_stop=0.8", start_s=start_s, speed=4)
            made.engine("beta", "slow_stop=0.8", start_s=1.0, speed=1)
        yield made
    finally:
        made.close()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def console(shared: KillConsole, who: str) -> KillConsole:
    """The service with an engine that serves."""
    if who == "worker" and shared.service is not None:
        shared.run("stop", "--engine")  # one that ends again and again comes back ever later
        shared.service.wait(20)
    if shared.service is None or shared.service.poll() is not None:
        shared.serve("--profile", "alpha")
        shared.__dict__.pop("door", None)
        shared.succeed("wait", "ready", "--timeout", "30")
    engine = shared.now()["engine"]
    fresh = who in ("server", "core", "worker")
    if engine["state"] != "serving" or (fresh and engine["profile"] != "alpha"):
        shared.run("engine", "stop", "--yes")
        shared.succeed("engine", "start", "alpha")
    shared.told = len(shared.paths.events.read_text().splitlines())
    return shared


def note(cell: Cell) -> None:
    """A line of the table, which is begun where there is none."""
    if TABLE:
        with Path(TABLE).open("a", encoding="utf-8") as table:
            if not table.tell():
                table.write(f"{HEAD}\n")
            table.write(f"{cell.line()}\n")


@pytest.mark.parametrize(("who", "phase"), CELLS, indirect=["who"], scope="module")
def test_whoever_is_killed(console: KillConsole, who: str, phase: str) -> None:
    was = console.now()["engine"]["profile"]
    wanted = "beta" if was == "alpha" else "alpha"
    tokens = 90 if who == "core" else LONG_TOKENS if phase == "drain" else 400
    with load(console.door, "coder", clients=4, answer_tokens=tokens, extras=LONG) as clients:
        clients.until(4)
        asking = Asking(console, wanted, by_console=who == "console")
        before = console.in_phase(phase)
        killed_s = time.monotonic()
        kill(killed := victim(who, before, asking.pid))
        clients.answer_tokens, clients.extras = 20, {}
        after = console.settled(before["engine"]["pid"] if who == "core" else killed)
        back_s = time.monotonic() - killed_s
        clients.until(4, timeout_s=30)
    code, said = asking.ended()
    lost, engine = losses(clients), after["engine"]
    answered = len(clients.outcomes) - len(clients.errors)
    put_back = (who, phase) in PUT_BACK
    serves = f"{'old' if engine['profile'] == was else 'new'} {engine['state']}"
    note(Cell(who, phase, serves, back_s, answered, lost))
    told = [event["data"] for event in console.events() if event["kind"] in ENDS]

    # One engine serves, and the process table agrees.
    assert serves == ("old serving" if put_back else "new serving"), said
    console.assert_true(after, keeper_killed=who == "keeper")

    # Clients have their answer, or were told; who was killed is the only one to lose any.
    assert set(lost) <= LOST.get(who, set()), clients.errors
    if (who, phase) in SAVED:
        assert lost == {}, clients.errors

    # Whoever asked was told, and who did what is written down.
    assert code == EXITS.get((who, phase), EXITS.get((who, ""), 0)), said
    assert len(told) == 1, console.events()
    assert ", pid " in told[0]["who"]
    assert told[0]["before"] == was
    assert told[0]["after"] == (was if put_back else wanted)
    assert told[0]["result"]

    # A later switch works; where all went well, the next case is one.
    if who == "supervisor":
        console.succeed("stop", "--engine")
        assert console.living() == {}
    elif phase == "gate" or who in ("server", "core", "worker"):
        console.succeed("engine", "switch", "alpha", "--yes", "--drain", "0")
        console.assert_true(console.now())
