"""`env`: forms, addresses, and the wait for a first request."""

from __future__ import annotations

import json
import time

import pytest

from a40console.errors import Exit
from tests.commands.console_process import Run, Service
from tests.commands.service_stub import TOKEN


def test_fish_and_settings_hold_the_same_values(console: Run, service: Service) -> None:
    service(state="serving")
    fish = console("env", "--as", "fish").stdout.splitlines()
    assert "set -gx ANTHROPIC_MODEL 'it\\'s-tiny'" in fish
    read = json.loads(console("env", "--as", "settings").stdout)["env"]
    assert read["ANTHROPIC_MODEL"] == "it's-tiny"
    assert read["ANTHROPIC_AUTH_TOKEN"] == TOKEN
    assert "OPENAI_API_KEY" not in read  # Claude Code's file


def test_the_addresses_are_listed_with_why_one_is_closed(console: Run, service: Service) -> None:
    service(state="serving")
    lines = console("env", "--addresses").stdout.splitlines()
    assert lines[0].startswith("loopback  http://127.0.0.1:")
    assert lines[1].startswith("proxy     https://pod-8080.proxy.example   from the internet")
    assert lines[2].strip() == "the gateway listens on loopback alone"
    assert TOKEN not in "".join(lines)
    found = json.loads(console("env", "--addresses", "--json").stdout)["addresses"]
    assert [way["kind"] for way in found] == ["loopback", "proxy"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("proxy", "the gateway listens on loopback alone"),
        ("tcp", "The gateway has no tcp address"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(
    kind: str, said: str, console: Run, service: Service
) -> None:
    service(state="serving")
    run = console("env", "--address", kind)
    assert run.returncode == Exit.REFUSED
    assert said in run.stderr
    assert run.stdout == ""


def test_the_first_request_is_told_beside_the_lines(console: Run, service: Service) -> None:
    service(state="serving", arrives=True)
    run = console("env", "--wait", "--timeout", "20")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("export ANTHROPIC_BASE_URL=")
    assert "Seen: " not in run.stdout  # it is evaluated
    assert "session 5f2a" in run.stderr
    assert TOKEN not in run.stderr


@pytest.mark.parametrize("interval_s", [0.1, 30.0])
def test_a_wait_ends_in_time_however_seldom_the_service_speaks(
    interval_s: float, console: Run, service: Service
) -> None:
    service(state="serving", interval_s=interval_s)
    began_s = time.monotonic()
    run = console("env", "--wait", "--timeout", "1")
    assert run.returncode == Exit.TIMED_OUT
    assert "No request came" in run.stderr
    assert time.monotonic() - began_s < 15


def test_a_service_that_ends_ends_the_wait(console: Run, service: Service) -> None:
    service(state="serving", stream_count=2)
    run = console("env", "--wait", "--timeout", "20")
    assert run.returncode == Exit.NO_SERVICE
    assert "Traceback" not in run.stderr


def test_a_timeout_without_a_wait_is_a_mistake(console: Run) -> None:
    assert console("env", "--timeout", "1").returncode == Exit.USAGE
