"""`attach`: an engine that is not ours, without a service."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from a40console.commands.attach import _address
from a40console.errors import Exit, UsageError
from tests.commands.console_process import Run

WITH_A_FOREIGN_ENGINE = """
import sys, types
from tests.commands.service_stub import at_state
from a40console.model.engine import EngineState

async def snapshots(url, *, api_key, interval_s):
    print(url, api_key, file=sys.stderr)
    for _ in range(3):
        yield at_state(EngineState({state!r}))

stand_in = types.ModuleType("a40console.service.attach")
stand_in.snapshots = snapshots
sys.modules["a40console.service.attach"] = stand_in
from a40console.cli import main
sys.exit(main())
"""


def attach(
    environment: dict[str, str], state: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    code = WITH_A_FOREIGN_ENGINE.format(state=state)
    return subprocess.run(
        [sys.executable, "-c", code, "attach", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_once_is_one_snapshot(environment: dict[str, str], tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-1\n")
    options = ("--once", "--json", "--api-key-file", str(key))
    run = attach(environment, "serving", "localhost:8000/", *options)
    assert run.returncode == 0
    assert json.loads(run.stdout)["engine"]["state"] == "serving"
    assert run.stderr == "http://localhost:8000 sk-1\n"


def test_an_engine_that_does_not_serve_is_code_4(environment: dict[str, str]) -> None:
    run = attach(environment, "absent", "http://localhost:8000", "--once", "--json")
    assert run.returncode == Exit.NOT_SERVING
    assert json.loads(run.stdout)["engine"]["state"] == "absent"
    assert run.stderr.endswith("Nothing serves at http://localhost:8000\n")


def test_without_once_it_goes_on(environment: dict[str, str]) -> None:
    run = attach(environment, "serving", "http://localhost:8000")
    assert run.returncode == 0
    assert [line.split()[1] for line in run.stdout.splitlines()] == ["SERVING"] * 3


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "http://", "http://host:notaport", "http://host:99999", "http://u:p@h"]
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        _address(url)
    assert ":p@" not in f"{caught.value.message}{caught.value.evidence}{caught.value.remedy}"


def test_a_key_file_that_cannot_be_read(console: Run, tmp_path: Path) -> None:
    gone = console("attach", "x:1", "--api-key-file", str(tmp_path / "gone"))
    assert gone.returncode == Exit.USAGE
    (tmp_path / "empty").touch()
    empty = console("attach", "x:1", "--api-key-file", str(tmp_path / "empty"))
    assert empty.returncode == Exit.USAGE
    assert "is empty" in empty.stderr
