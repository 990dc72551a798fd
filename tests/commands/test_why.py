"""`why`: the ranking in words, and as data for scripts."""

from __future__ import annotations

import json

import pytest

from a40console.advisor.limit import explain
from a40console.commands.why import lines
from a40console.errors import Exit
from a40console.model.codec import decode, encode
from a40console.model.explanation import Explanation
from a40console.model.figures import Missing
from a40console.tui.ink import width_of
from tests import make_snapshot as make
from tests.commands.console_process import Run, Service


def plain(explanation: Explanation, width: int) -> str:
    rows = lines(explanation, width)
    assert all(width_of(row) <= width for row in rows)
    return "\n".join("".join(span.text for span in row) for row in rows)


def test_text_says_what_it_is_and_what_it_is_not_and_how(console: Run, service: Service) -> None:
    service(state="serving", slots=2)
    run = console("why")
    assert run.returncode == 0
    assert "1 request waiting in the engine" in run.stdout
    assert "KV 11 % held" in run.stdout
    assert "Ruled out, and how" in run.stdout
    assert "throttled 0 ms/s, below 10; 3.1 of 9.0 vCPU used" in run.stdout
    assert "Could not be judged" in run.stdout
    assert "\x1b" not in run.stdout


def test_json_is_the_explanation(console: Run, service: Service) -> None:
    service(state="serving", slots=2)
    run = console("why", "--json")
    found = decode(Explanation, json.loads(run.stdout))
    assert found.causes[0].cause == "queue"
    assert {excluded.cause for excluded in found.ruled_out} >= {"vcpu", "kv", "gate"}
    assert decode(Explanation, encode(found)) == found


def test_without_a_service_it_says_so_and_starts_none(console: Run) -> None:
    run = console("why")
    assert run.returncode == Exit.NO_SERVICE
    assert "serve" in run.stderr


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("state", ["snapshot", "idle", "starting", "failed", "hung", "sparse"])
def test_it_fits_whatever_is_said(state: str, width: int) -> None:
    text = plain(explain(getattr(make, state)()), width)
    assert "Why this speed" in text


def test_a_remedy_comes_with_the_line_that_applies_it() -> None:
    text = plain(explain(make.hung()), 100)
    assert "[a40console engine restart]" in text


def test_a_simulated_engine_is_called_so() -> None:
    assert "SIMULATED" in plain(explain(make.snapshot(simulated=True)), 100)


def test_nothing_ruled_out_is_said_too() -> None:
    gone = Missing("HTTP 500")
    bare = make.snapshot(slots=gone, gpus=gone)
    explanation = explain(bare)
    nothing = Explanation(
        seq=1,
        at=explanation.at,
        simulated=False,
        causes=explanation.causes[:1],
        ruled_out=(),
        unjudged=(),
    )
    assert "nothing could be ruled out" in plain(nothing, 80)
