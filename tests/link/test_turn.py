"""Who has the turn to change a link, and who goes on without it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from a40console.link import holder, place
from a40console.link.connection import Connection
from a40console.link.holder import Holder
from a40console.link.place import LinkPlace, LinkRecord
from a40console.link.ssh import Ssh
from a40console.link.target import parse_target
from a40console.paths import locate

RECORD = LinkRecord(
    target="pod", state="up", since="2026-01-01T00:00:00Z", gateway_there="127.0.0.1:8080"
)


@pytest.fixture
def link() -> Iterator[LinkPlace]:
    home = Path(tempfile.mkdtemp(prefix="a40-t-", dir="/tmp"))
    made = LinkPlace(locate({"A40CONSOLE_HOME": str(home)}), parse_target("pod"))
    made.make()
    made.write(RECORD)
    yield made
    made.forget()
    shutil.rmtree(home)


def test_a_holder_goes_on_while_a_console_has_the_turn(
    link: LinkPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "TURN_TIMEOUT_S", 0.05)
    monkeypatch.setattr(holder, "gateway_of", lambda control: "127.0.0.1:9090")
    ssh = Ssh(parse_target("pod"), link.master, link.log, ("ssh",))
    held = Holder(link, Connection(ssh, link, ("a40console",)), RECORD)
    with link.being_made():
        held._follow()
    assert link.record() == RECORD
