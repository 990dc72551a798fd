"""`status` and `watch`: the verdict in words, and the snapshot itself for scripts."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.commands.bar import bar
from a40console.commands.verdict import one_line, verdict_lines
from a40console.errors import Exit
from a40console.model.codec import decode
from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.snapshot import Snapshot
from tests import make_snapshot as make
from tests.commands.console_process import Run, Service, on_terminal
from tests.commands.service_stub import at_state


def words(line: str) -> str:
    return " ".join(line.split())


def test_json_is_the_snapshot(console: Run, service: Service) -> None:
    service(state="serving", slots=2)
    run = console("status", "--json")
    assert run.returncode == 0
    assert run.stdout.count("\n") == 1
    snapshot = decode(Snapshot, json.loads(run.stdout))
    assert snapshot.engine.state is EngineState.SERVING
    assert isinstance(snapshot.slots, tuple)
    assert len(snapshot.slots) == 2


def test_text_is_the_verdict_and_the_slots_without_colours(console: Run, service: Service) -> None:
    service(state="serving", slots=2)
    run = console("status")
    lines = run.stdout.splitlines()
    assert lines[0].startswith("● SERVING   825 tok/s   2 decoding · 0 prefill · 0 held   ")
    assert lines[0].endswith("   qwen3-coder-30b  vllm 0.33.0  up 3 h 12 m")
    limit = at_state(EngineState.SERVING, 2).limit
    assert lines[1] == f"LIMIT  {limit.text}   ruled out: {' '.join(limit.ruled_out)}"
    assert words(lines[2]) == "COST $0.31/1M now $0.454/h $1.45 since engine start"
    assert words(lines[3]) == (
        "slot session client phase context reused gen tok/s pass/s × tok/pass TTFT age"
    )
    assert words(lines[5]) == (
        "0 7f3a claude-code decode 31,204 96 % 1,204 413 22.7 × 18.2 0.31 s 4 s"
    )
    assert "\x1b" not in run.stdout
    assert not run.stderr


def test_line_is_one_line(console: Run, service: Service) -> None:
    service(state="starting")
    run = console("status", "--line")
    assert run.stdout == (
        "STARTING   load 42 s, ≈35 s left   qwen3-coder-30b  vllm  up 1 m 1 s"
        "   limit: not-serving   $0.454/h\n"
    )


@pytest.mark.parametrize(("state", "code"), [("serving", 0), ("starting", 4), ("absent", 4)])
def test_only_check_makes_a_state_an_exit_code(
    state: str, code: int, console: Run, service: Service
) -> None:
    service(state=state)
    assert console("status").returncode == 0
    assert console("status", "--check").returncode == code


def test_a_failure_is_told_with_cause_and_remedy(console: Run, service: Service) -> None:
    service(state="failed")
    run = console("status")
    assert run.stdout.startswith("✖ FAILED   out of GPU memory while the KV cache was allocated   ")
    failed = at_state(EngineState.FAILED)
    (finding,) = failed.findings
    assert f"✖ {finding.title}" in words(run.stdout)
    assert "Lower max_model_len to 131072" in words(run.stdout)
    assert isinstance(failed.slots, Missing)
    assert f"slots  –  {failed.slots.reason}" in run.stdout


def test_another_protocol_is_refused_with_the_way_out(console: Run, service: Service) -> None:
    service(state="serving", protocol=99)
    run = console("status")
    assert run.returncode == Exit.REFUSED
    assert "a40console stop" in run.stderr


@pytest.mark.pty
def test_a_narrow_terminal_keeps_the_table_whole(
    environment: dict[str, str], service: Service
) -> None:
    service(state="serving", slots=3)
    code, written = on_terminal(environment, "--color", "mono", "status")
    assert code == 0
    assert "\x1b" not in written
    lines = written.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert not any("…" in line for line in lines[3:])
    assert "session phase context reused gen tok/s TTFT age" in map(words, lines)


@pytest.mark.pty
def test_a_terminal_gets_colours_unless_told_otherwise(
    environment: dict[str, str], service: Service
) -> None:
    service(state="serving")
    assert "\x1b[32m● SERVING" in on_terminal(environment, "status")[1]
    assert "\x1b" not in on_terminal({**environment, "NO_COLOR": "1"}, "status")[1]


@pytest.mark.pty
def test_json_for_a_person_is_indented(environment: dict[str, str], service: Service) -> None:
    service(state="serving")
    _, written = on_terminal(environment, "status", "--json")
    assert written.splitlines()[1] == '  "schema": 1,'


@pytest.mark.pty
def test_watch_draws_over_its_last_frame(environment: dict[str, str], service: Service) -> None:
    service(state="serving", slots=40)
    code, written = on_terminal(environment, "--color", "mono", "watch", "--count", "2")
    assert code == 0
    first, second = written.split("\x1b[23F\x1b[J")
    assert first == second
    assert first.count("\n") == 23


def test_watch_writes_a_line_a_snapshot(console: Run, service: Service) -> None:
    service(state="serving")
    run = console("watch", "--count", "3")
    assert run.returncode == 0
    line = (
        f"{make.at()}   SERVING   0 tok/s   0 decoding · 0 prefill · 0 held   "
        "qwen3-coder-30b  vllm 0.33.0  up 3 h 12 m   limit: client   $0.454/h"
    )
    assert run.stdout.splitlines() == [line] * 3


def test_watch_json_is_a_snapshot_a_line(console: Run, service: Service) -> None:
    service(state="serving")
    run = console("watch", "--json", "--count", "3")
    snapshots = [decode(Snapshot, json.loads(line)) for line in run.stdout.splitlines()]
    assert [snapshot.seq for snapshot in snapshots] == [1, 2, 3]


def test_watch_says_that_the_service_went_away(console: Run, service: Service) -> None:
    service(state="serving", stream_count=2)
    run = console("watch")
    assert run.returncode == Exit.NO_SERVICE
    assert run.stdout.count("\n") == 2
    assert run.stderr.startswith("The service ended the stream\n")


FIGURES = st.one_of(
    st.builds(Missing, st.just("unknown")),
    st.builds(Estimated, st.floats(0, 1e12)),
    st.integers(0, 10**12),
    st.floats(0, 1e12),
)


@given(state=st.sampled_from(EngineState), speed=FIGURES, price=FIGURES, running=FIGURES)
def test_no_verdict_shows_a_missing_figure_as_nought(
    state: EngineState, speed: Figure, price: Figure, running: Figure
) -> None:
    snapshot = at_state(state)
    snapshot = replace(
        snapshot,
        slots=Missing("unknown"),
        throughput=replace(snapshot.throughput, generation_tokens_per_s=speed),
        cost=replace(snapshot.cost, usd_per_hour=price),
        requests=replace(snapshot.requests, running=running),
    )
    text = "\n".join((*verdict_lines(snapshot), one_line(snapshot)))
    assert "Missing" not in text
    assert "Estimated" not in text
    if state is EngineState.SERVING and isinstance(speed, Missing):
        assert "– tok/s" in text
    if state is EngineState.SERVING and isinstance(running, Missing):
        assert "– running" in text
    if isinstance(price, Missing):
        assert "/h" not in text


@pytest.mark.parametrize(
    ("age_s", "interval_s", "told"),
    [(4.0, 1.0, "509 tok/s"), (6.0, 1.0, "– tok/s"), (600.0, 1.0, "– tok/s"), (8, 3, "509 tok/s")],
)
def test_an_old_speed_is_not_told_as_the_present_one(
    age_s: float, interval_s: float, told: str
) -> None:
    snapshot = make.snapshot(throughput=make.throughput(509.0, age_s=age_s))
    snapshot = replace(snapshot, interval_s=interval_s)
    for line in (verdict_lines(snapshot)[0], one_line(snapshot), bar(snapshot, None)):
        assert re.search(r"\S+ tok/s", line)[0] == told  # type: ignore[index]


def test_every_figure_of_a_slot_may_be_missing() -> None:
    from a40console.commands.status import _slot_cells

    figures = {
        field.name: Missing("unknown")
        for field in fields(make.slot())
        if "Figure" in str(field.type) or "Text" in str(field.type)
    }
    cells = _slot_cells(make.slot(**figures))
    shown = [cells[name] for name in ("session", "client", "context", "reused", "gen", "tok/s")]
    assert shown == ["–"] * 6
    assert cells["pass/s × tok/pass"] == "– × –"


def test_an_unknown_price_says_why() -> None:
    cost = make.cost()
    nothing = Missing("no price in the profile")
    spans = replace(cost.usd_per_million, now=nothing, session=nothing, since_rent=nothing)
    snapshot = make.snapshot(
        cost=replace(cost, usd_per_hour=nothing, usd_so_far=nothing, usd_per_million=spans)
    )
    assert verdict_lines(snapshot)[2] == "COST   –  no price in the profile"


def test_text_from_the_engine_cannot_steer_the_terminal(console: Run) -> None:
    from a40console.commands.output import printable

    engine = make.engine(profile="\x1b]0;owned\x07\x1b[2Jname\x9b31m\r")
    assert "name31m" in printable(one_line(make.snapshot(engine=engine)))
    assert "\x1b" not in printable(one_line(make.snapshot(engine=engine)))


def test_a_simulated_engine_says_so() -> None:
    assert verdict_lines(make.snapshot(simulated=True))[0].startswith("● SIMULATED SERVING")
    assert one_line(make.snapshot(simulated=True)).startswith("SIMULATED")
