"""What the gateway's host may be: a wrong one is named by its key, and steers no terminal."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.errors import ConsoleError, Exit, UsageError
from a40console.operations.gateway_address import gateway_address


def test_an_address_of_this_machine() -> None:
    assert gateway_address("127.0.0.1", 8080) == (socket.AF_INET, ("127.0.0.1", 8080))
    assert gateway_address("0.0.0.0", 0) == (socket.AF_INET, ("0.0.0.0", 0))


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("", "''"),
        ("a\0b", "'a\\x00b'"),
        ("\x1b[31mx", "'\\x1b[31mx'"),
        ("\u202eevil", "'\\u202eevil'"),
        ("a" * 70 + ".com", "a" * 60 + "…"),
        ("a" * 5000, "a" * 60 + "…"),
        ("a..b", "a..b"),
    ],
)
def test_what_is_no_host_is_a_usage_error_of_that_key(host: str, shown: str) -> None:
    with pytest.raises(UsageError) as raised:
        gateway_address(host, 0)
    assert raised.value.exit_code == Exit.USAGE
    assert raised.value.message == f"The gateway cannot listen on {shown}"
    assert raised.value.evidence.startswith("gateway.host: ")
    assert "host in config.toml" in raised.value.remedy


def test_another_machines_address_is_refused_whatever_the_port() -> None:
    with pytest.raises(ConsoleError) as raised:
        gateway_address("192.0.2.1", 0)
    assert raised.value.exit_code == Exit.REFUSED
    assert raised.value.message == "The gateway cannot listen on 192.0.2.1"
    assert raised.value.evidence == "gateway.host: Cannot assign requested address"


@given(st.text(alphabet=st.characters(max_codepoint=0x9F), min_size=1, max_size=8))
def test_no_text_ends_otherwise_or_reaches_the_screen_raw(host: str) -> None:
    if not any(not sign.isprintable() for sign in host):
        host += "\x07"  # printable ones would ask the network for a name
    with pytest.raises(ConsoleError) as raised:
        gateway_address(host, 0)
    assert raised.value.message.isprintable()
