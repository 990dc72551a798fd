"""What the service's processes load: memory that is there as long as the service is."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

RESIDENT_MB = 70.0
"""A worker after its imports; measured 62. The budget of the whole service is 90."""


def loaded(module: str, then: str = "") -> tuple[set[str], float]:
    """Modules and resident MB of a fresh interpreter that has imported one of the service's."""
    program = f"""
import a40console.service.{module}, json, sys
{then}
resident = int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
print(json.dumps([[name for name, found in sys.modules.items() if found], resident]))
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, check=True)
    names, resident_mb = json.loads(done.stdout)
    return set(names), resident_mb


def test_the_supervisor_imports_next_to_nothing() -> None:
    names, _ = loaded("supervisor")
    assert not names & {"asyncio", "logging", "pydantic", "socket", "subprocess", "typing"}
    ours = {name for name in names if name.startswith("a40console")}
    assert ours == {"a40console", "a40console.service", "a40console.service.supervisor"}


@pytest.fixture(scope="module")
def worker() -> tuple[set[str], float]:
    return loaded("worker")


@pytest.mark.parametrize(
    "unwanted",
    ["textual", "rich", "trio", "watchfiles", "huggingface_hub", "a40console.sim"],
)
def test_the_worker_does_without(worker: tuple[set[str], float], unwanted: str) -> None:
    assert unwanted not in worker[0]


def test_the_worker_is_small_when_it_begins(worker: tuple[set[str], float]) -> None:
    assert worker[1] < RESIDENT_MB


def test_the_way_to_the_engine_has_no_certificates_and_others_have() -> None:
    then = """
import aiohttp.connector, ssl
assert aiohttp.connector._SSL_CONTEXT_VERIFIED is None
assert ssl.create_default_context().check_hostname
import httpx
httpx.AsyncHTTPTransport()
"""
    names, _ = loaded("worker", then)
    assert "httpx" in names


def test_a_command_that_asks_the_service_imports_no_other_command_line() -> None:
    program = """
import sys; from a40console import cli
sys.argv = ["a40console", "status"]; cli.main()
print(*[name for name in ("httpx", "httpx._main", "trio") if sys.modules.get(name)])
"""
    run = [sys.executable, "-P", "-c", program]
    environment = {**os.environ, "A40CONSOLE_HOME": "/nonexistent"}
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
    assert "No service answers" in done.stderr
    assert done.stdout == "httpx\n"


def test_whoever_only_asks_a_service_may_import_what_he_likes() -> None:
    program = "import a40console.service.client, sys; print([*sys.modules.values()].count(None))"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, check=True)
    assert done.stdout == b"0\n"
