"""What opens the gateway, and where the token lies."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from a40console.errors import RefusedError
from a40console.gateway.auth import allow_this_machine, load_or_make_token, require_token


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_token_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "gateway.token"
    token = load_or_make_token(path)
    assert token.startswith("a40-")
    assert len(token) > 40
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert load_or_make_token(path) == token


def test_a_token_that_others_could_read_is_closed_again(tmp_path: Path) -> None:
    path = tmp_path / "gateway.token"
    token = load_or_make_token(path)
    path.chmod(0o644)
    assert load_or_make_token(path) == token
    assert mode(path) == 0o600


def test_an_empty_file_gets_a_new_token(tmp_path: Path) -> None:
    path = tmp_path / "gateway.token"
    path.write_text("\n")
    assert load_or_make_token(path).startswith("a40-")


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gateway.token"
    path.mkdir()
    with pytest.raises(RefusedError, match=r"gateway\.token"):
        load_or_make_token(path)


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ({"authorization": "Bearer a40-right"}, True),
        ({"authorization": "bearer a40-right"}, True),
        ({"x-api-key": "a40-right"}, True),
        ({"authorization": "Bearer other", "x-api-key": "a40-right"}, True),
        ({}, False),
        ({"authorization": "Bearer "}, False),
        ({"authorization": "Bearer a40-wrong"}, False),
        ({"authorization": "Basic a40-right"}, False),
        ({"authorization": "a40-right"}, False),
        ({"x-api-key": ""}, False),
        ({"x-api-key": "a40-r\xefght"}, False),
    ],
)
def test_the_token_opens_either_way(headers: dict[str, str], passes: bool) -> None:
    assert require_token("a40-right")(Headers(headers)) is passes


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ({"host": "127.0.0.1:8080"}, True),
        ({"host": "localhost:8080"}, True),
        ({"host": "[::1]:8080"}, True),
        ({"host": "127.0.0.1:8080", "origin": "http://localhost:3000"}, True),
        ({"host": "127.0.0.1:8080", "origin": "https://example.com"}, False),
        ({"host": "127.0.0.1:8080", "origin": "null"}, False),
        ({"host": "rebound.example.com:8080"}, False),
        ({"host": "[::1"}, False),
        ({"host": "127.0.0.1:8080", "origin": "http://[oops"}, False),
    ],
)
def test_without_a_token_web_pages_are_kept_out(headers: dict[str, str], passes: bool) -> None:
    assert allow_this_machine(Headers(headers)) is passes
