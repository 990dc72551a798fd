"""The other machine, as an operator may write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.errors import UsageError
from a40console.link.target import Target, parse_target


@pytest.mark.parametrize(
    ("text", "target", "arguments"),
    [
        ("pod", Target("pod"), ("pod",)),
        ("root@203.0.113.7", Target("203.0.113.7", "root"), ("-l", "root", "203.0.113.7")),
        (
            "root@203.0.113.7:40022",
            Target("203.0.113.7", "root", 40022),
            ("-p", "40022", "-l", "root", "203.0.113.7"),
        ),
        ("ssh://me@pod:22/", Target("pod", "me", 22), ("-p", "22", "-l", "me", "pod")),
        ("[2001:db8::1]:2222", Target("2001:db8::1", None, 2222), ("-p", "2222", "2001:db8::1")),
    ],
)
def test_what_is_written_is_understood(
    text: str, target: Target, arguments: tuple[str, ...]
) -> None:
    assert parse_target(text) == target
    assert target.arguments == arguments


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-oProxyCommand=id",
        "root@-oProxyCommand=id",
        "-l@pod",
        "a b",
        "pod:0",
        "pod:99999",
        "@",
        "::1",
    ],
)
def test_what_ssh_could_take_for_an_option_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_target(text)


@given(st.text(max_size=40))
def test_no_text_becomes_an_option(text: str) -> None:
    try:
        target = parse_target(text)
    except UsageError:
        return
    assert parse_target(str(target)) == target
    assert not target.host.startswith("-")
    assert not (target.user or "").startswith("-")
