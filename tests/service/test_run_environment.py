"""What tells one configuration of an engine from another, and what does not."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from a40console.model.profile import KnownIssue, Profile
from a40console.operations.record import RunRecord
from a40console.service.run_environment import config_digest, own_environment
from tests import make_snapshot as make

ARGV = ("/opt/vllm/bin/vllm", "serve", "x/coder", "--uds", "/tmp/a/1.sock", "--max-num-seqs", "8")
PROFILE = Profile(
    name="coder",
    kind="vllm",
    model="x/coder",
    environment={"OMP_NUM_THREADS": "8", "HF_TOKEN": "a"},
)
IN_FORCE = {"speculation": "off", "max_model_len": "32768"}


def started(profile: Profile = PROFILE, argv: tuple[str, ...] = ARGV) -> RunRecord:
    return RunRecord(
        id="20261130-1",
        profile=profile,
        base_url="http://engine",
        socket_path=argv[4],
        plugin=True,
        argv=argv,
        argv_digest="",
        started_at="2026-11-30T17:45:01.000Z",
    )


def variables(**changes: str) -> dict[str, str]:
    return {**PROFILE.environment, **changes}


@pytest.mark.parametrize(
    "same",
    [
        started(replace(PROFILE, name="mine", title="A coder", usd_per_hour=Decimal("0.79"))),
        started(replace(PROFILE, known_issues=(KnownIssue(setting="x", reason="y"),))),
        started(replace(PROFILE, start_timeout_s=60.0, served_name="coder-30b")),
        started(replace(PROFILE, environment=variables(HF_TOKEN="b"))),
        started(argv=("/usr/bin/vllm", *ARGV[1:4], "/tmp/b/2.sock", *ARGV[5:])),
    ],
    ids=["title and price", "issues", "names and waits", "a key", "its address"],
)
def test_what_reaches_no_engine_makes_no_other_configuration(same: RunRecord) -> None:
    assert config_digest(same, IN_FORCE) == config_digest(started(), IN_FORCE)


@pytest.mark.parametrize(
    ("other", "force"),
    [
        (started(argv=(*ARGV[:-1], "4")), {}),
        (started(argv=(*ARGV, "--enforce-eager")), {}),
        (started(replace(PROFILE, environment=variables(OMP_NUM_THREADS="4"))), {}),
        (started(), {"speculation": "ngram 24"}),
    ],
    ids=["a value", "a flag", "a variable", "in force"],
)
def test_what_reaches_it_does(other: RunRecord, force: dict[str, Any]) -> None:
    assert config_digest(other, IN_FORCE | force) != config_digest(started(), IN_FORCE)


async def test_what_is_in_force_is_what_the_engine_says_and_nothing_that_was_only_asked() -> None:
    run = started(replace(PROFILE, prefix_caching=True))
    silent = await own_environment(run, make.snapshot(), {})
    assert "enable_prefix_caching" not in silent.effective
    said = await own_environment(run, make.snapshot(), {"enable_prefix_caching": False})
    assert said.effective["enable_prefix_caching"] == "False"
