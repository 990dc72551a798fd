"""What a console says of the machine at the other end, and of a link that is none."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from a40console.errors import NoServiceError
from a40console.link.far import Far
from a40console.link.place import LinkPlace, LinkRecord, State
from a40console.link.target import parse_target
from a40console.paths import locate
from a40console.service.connecting import client_environment


@pytest.fixture
def place(tmp_path: Path) -> Iterator[LinkPlace]:
    made = LinkPlace(locate({"A40CONSOLE_HOME": str(tmp_path)}), parse_target("root@pod:2222"))
    made.make()
    yield made
    made.forget()


def record(state: State = "up", *, gateway_port: int = 8081, reason: str = "") -> LinkRecord:
    return LinkRecord(
        target="root@pod:2222",
        state=state,
        since="2026-11-29T14:00:00Z",
        reason=reason,
        gateway_port=gateway_port,
    )


def test_a_client_of_this_machine_comes_through_the_link(place: LinkPlace) -> None:
    place.write(record())
    there = client_environment(
        url="http://127.0.0.1:8080",
        listens_on="127.0.0.1",
        token="t",
        served_name="m",
        window_tokens=32_768,
        environment={"RUNPOD_POD_ID": "abc"},
    )
    here = Far(place).environment(there)
    assert here.variables["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8081"
    assert here.variables["OPENAI_BASE_URL"] == "http://127.0.0.1:8081/v1"
    ways = [(way.kind, way.url) for way in here.addresses]
    assert ways == [
        ("link", "http://127.0.0.1:8081"),
        ("proxy", "https://abc-8080.proxy.runpod.net"),
    ]


def test_a_gateway_that_is_not_forwarded_is_no_address(place: LinkPlace) -> None:
    place.write(record(gateway_port=0))
    with pytest.raises(NoServiceError, match="is not forwarded"):
        Far(place).address("http://127.0.0.1:8080")


@pytest.mark.parametrize(
    ("state", "message", "remedy"),
    [
        ("up", "No service answers on root@pod:2222", "endpoint --start"),
        ("down", "The link to root@pod:2222 is down", "tried again by itself"),
        ("refused", "The link to root@pod:2222 needs your login", "a40console --ssh"),
        ("connecting", "The link to root@pod:2222 is being made", "a40console --ssh"),
    ],
)
def test_trouble_names_the_link_or_what_is_behind_it(
    place: LinkPlace, state: State, message: str, remedy: str
) -> None:
    place.write(record(state, reason="Broken pipe"))
    with place.held():
        trouble = Far(place).trouble("seen")
    assert trouble.message == message
    assert remedy in trouble.remedy
    assert ("Broken pipe" in trouble.evidence) is (state != "up")


def test_without_a_holder_there_is_no_link_whatever_the_record_says(place: LinkPlace) -> None:
    place.write(record())
    assert Far(place).trouble("seen").message == "There is no link to root@pod:2222"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"target": 1}', "\0", '{"state": "odd"}'])
def test_a_broken_record_is_none(place: LinkPlace, text: str) -> None:
    place.record_file.write_text(text)
    assert place.record() is None


def test_its_sockets_fit_where_temporary_folders_are_long(tmp_path: Path) -> None:
    """OpenSSH appends 17 characters while it binds; macOS takes 103 of a socket's path."""
    paths = locate({"A40CONSOLE_HOME": str(tmp_path)})
    made = LinkPlace(paths, parse_target(f"{'u' * 60}@{'h' * 250}:65535"))
    folder = Path("/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T") / made.folder.name
    assert len(str(folder / made.master.name)) + 17 <= 103
    assert len(str(folder / made.control.name)) <= 103
    assert made.folder.parent == Path(tempfile.gettempdir())
