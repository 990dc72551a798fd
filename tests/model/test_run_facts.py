"""What stands beside a run's results: how it was asked, and where it was made."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.run import RunEnvironment, RunSpec, RunTarget
from a40console.model.run_facts import environment_facts, run_facts, title, usd_text
from a40console.model.run_facts import target as target_of
from tests import make_runs as make


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        (0, "$0"),
        (0.44, "$0.44"),
        (0.0778, "$0.0778"),
        (0.5, "$0.50"),
        (0.00001, "<$0.0001"),
        (0.99999, "$1.00"),
        (1234.5, "$1,234.50"),
        (Estimated(0.748), "≈$0.748"),
        (Missing("no price"), "– no price"),
    ],
)
def test_dollars(figure: Figure, said: str) -> None:
    assert usd_text(figure) == said


def test_how_it_was_asked() -> None:
    target = RunTarget(kind="url", url="http://x:1", model="tiny", dialect="anthropic")
    spec = RunSpec(
        experiment="sweep", target=target, max_usd=Decimal("2.5"), max_minutes=30.0, note="cold"
    )
    facts = dict(run_facts(make.run(spec=spec, origin="pod-1"), make.arm_ends(make.run())))
    assert facts["target"] == "http://x:1, anthropic dialect, model tiny"
    assert target_of(replace(spec, experiment="protocol")).endswith(", Messages API, model tiny")
    assert facts["limits"] == "$2.50, 30 minutes"
    assert facts["asked with the note"] == "cold"
    assert facts["from"] == "pod-1"
    assert facts["measured cost"].startswith("$0.0")
    assert facts["turns"] == "120"


def test_a_small_limit_is_no_limit_of_nothing() -> None:
    spec = RunSpec(experiment="sweep", max_usd=Decimal("0.0005"))
    assert dict(run_facts(make.run(spec=spec)))["limits"] == "$0.0005"


def test_a_reference_row_was_asked_of_nobody() -> None:
    facts = dict(run_facts(make.reference()))
    assert "target" not in facts
    assert "seed" not in facts
    assert facts["took"] == "– not written down"
    assert title(make.reference()) == "sweep · 2026-11-15 00:00 UTC"


def test_how_long_it_took() -> None:
    at = {"started_at": "2026-11-30T10:00:00Z", "ended_at": "2026-11-30T11:42:39Z"}
    assert dict(run_facts(make.run(**at)))["took"] == "1 h 42 m"


def test_times_that_cannot_be_read() -> None:
    facts = dict(run_facts(make.run(started_at="yesterday")))
    assert facts["started"] == "yesterday"
    assert facts["took"] == "– its times cannot be read"


def test_where_it_was_made() -> None:
    two = make.environment(gpu_count=2, simulated=True, vcpu_quota=Missing("no quota"))
    facts = dict(environment_facts(two))
    assert facts["GPU"] == "2 × NVIDIA A40"
    assert facts["engine"] == "vllm 0.32.0, SIMULATED"
    assert facts["vCPU quota"] == "– no quota"
    assert facts["price"] == "$0.44/h"
    assert "argv asked" not in dict(environment_facts(make.environment(argv=())))


def test_everything_of_the_environment_is_told() -> None:
    whole = make.environment()
    said = " ".join(value for _, value in environment_facts(whole))
    for name in RunEnvironment.__dataclass_fields__:
        value = getattr(whole, name)
        if isinstance(value, str):
            assert value in said, name
    for item in (*whole.argv, *whole.effective.values()):
        assert item in said
