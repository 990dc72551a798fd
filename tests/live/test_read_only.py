"""A console or a service that only looks: whatever acts is refused, with who forbade it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.live.console import Console, console

SETTINGS = "[gateway]\nport = 0\n[service]\ninterval_s = 0.3\n"
ACTS = [
    ("engine", "stop"),
    ("engine", "pause"),
    ("engine", "start", "sim"),
    ("note", "hello"),
    ("models", "delete", "x"),
    ("stop",),
    ("serve",),
    ("ask", "--", "--help"),
    ("note", "--", "--cost"),
    ("engine", "stop", "--cost"),
]


@pytest.fixture(scope="module")
def served() -> Iterator[Console]:
    with console() as made:
        made.configure(SETTINGS)
        made.serve("--no-engine")
        yield made


@pytest.mark.parametrize("words", ACTS, ids=" ".join)
def test_a_console_that_only_looks_refuses_what_acts(
    served: Console, words: tuple[str, ...]
) -> None:
    refused = served.run("--read-only", *words)
    assert refused.returncode == 5
    assert "read-only" in refused.stderr
    assert "forbidden by: this console was started with --read-only" in refused.stderr


def test_it_still_looks(served: Console) -> None:
    snapshot = json.loads(served.succeed("--read-only", "status", "--json"))
    assert snapshot["engine"]["state"] == "absent"
    served.succeed("--read-only", "engine", "history")


def test_settings_forbid_it_too_and_are_named(served: Console) -> None:
    served.configure(SETTINGS + "[console]\nread_only = true\n")
    try:
        refused = served.run("engine", "pause")
    finally:
        served.configure(SETTINGS)
    assert refused.returncode == 5
    assert f"[console] read_only in {served.paths.config_file}" in refused.stderr


def test_nothing_is_started_to_look_at() -> None:
    with console() as made:
        refused = made.run("--read-only", "--plain")
        assert not made.paths.service_lock.exists()
        assert refused.returncode == 3


def test_a_service_that_is_read_only_refuses_everybody() -> None:
    with console() as made:
        made.configure(SETTINGS + "read_only = true\n")
        made.serve("--no-engine")
        refused = made.run("engine", "pause")
        assert refused.returncode == 5
        who = f"[service] read_only in {made.paths.config_file}"
        assert who in refused.stderr
        assert made.status()["service"]["forbidden"].startswith(who)
        events = made.paths.events.read_text()
        assert "admission.pause: read-only" in events
        doctor = made.run("doctor")
        assert doctor.returncode in (0, 6)


def test_in_sentences_it_says_so_before_anything_is_asked(served: Console) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "a40console", "--read-only", "--plain"],
        env=served.environment,
        input="stop service\npause admission\nquit\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.count("Not now: read-only, forbidden by: this console was started with") == 2
    assert "Type yes" not in done.stdout
