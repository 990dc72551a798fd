"""Documents from elsewhere that claim too much, or hold what breaks whoever reads them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from a40console.commands.run_text import full
from a40console.errors import UsageError
from a40console.ledger.documents import read
from a40console.ledger.reports import FORMS, report
from a40console.ledger.store import Ledger
from a40console.model.codec import encode
from a40console.model.run_result import Plot, Point, Series
from a40console.model.run_words import marks
from a40console.tui.panels.run_plot import plotted
from tests import make_runs

NAMES = (
    "=HYPERLINK(1)",
    "+1",
    "@x",
    "-1+1",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "a|b`c`",
    "[x](javascript:alert(1))",
    "\x1b]0;owned\x07\x1b[2J\u202e",
    "\ud800",
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger.open(tmp_path / "ledger.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def document(ledger: Ledger) -> Any:
    """A whole run's, as it comes out of a file."""
    run = make_runs.run()
    ledger._update(run, make_runs.samples(run)[:2], make_runs.arm_ends(run)[:2])
    data: Any = json.loads(json.dumps(ledger.document(run.id)))
    data["run"]["id"] = "20261130-000000-hostile-0000"
    return data


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_markup_elsewhere_are_text(ledger: Ledger, document: Any, name: str) -> None:
    run = document["run"]
    run["spec"]["target"]["model"] = run["environment"]["model"] = name
    run["result"]["headline"] = run["result"]["verdict"]["text"] = name
    run["result"]["excerpts"] = [name]
    run["result"]["tables"][0]["title"] = name
    run["notes"] = [{"at": name, "text": name}]
    for sample in document["samples"]:
        sample["arm"] = sample["error"] = sample["role"] = name
    told = ledger.import_run(document)
    reports = {form: report(read(ledger.document(told.id)), form) for form in FORMS}
    for text in reports.values():
        text.encode()  # half a character could not be written to any file
        assert "\x1b" not in text
    assert "<img" not in reports["html"]
    assert "<script" not in reports["html"]
    outside = re.sub(r"(?s)```.*?```", "", reports["md"])
    assert not re.search(r"(?<!\\)\]\(", outside), "a link"
    rows = list(csv.reader(reports["csv"].splitlines()))
    assert not any(cell[:1] in "=+-@" for row in rows for cell in row if cell)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data["run"].update(started_at="0001-01-01T00:00:00+14:00"),
        lambda data: data["run"].update(ended_at="9999-12-31T23:59:59-14:00"),
        lambda data: data["run"]["result"]["tables"][0]["columns"][1].update(digits=-1),
        lambda data: data["run"]["result"]["tables"][0]["columns"][1].update(digits=10**9),
        lambda data: data["run"]["result"]["tables"][0].update(rows=[["short"], [1.0] * 99]),
        lambda data: data["run"]["spec"].update(seed=10**30, preset="\ud800"),
    ],
)
def test_what_is_odd_but_readable_is_shown(
    ledger: Ledger, document: Any, spoil: Callable[[Any], None]
) -> None:
    spoil(document)
    told = ledger.import_run(document)
    whole = read(ledger.document(told.id))
    for form in FORMS:
        assert report(whole, form).encode()
    assert full(whole.run, 80, arm_ends=whole.arm_ends, samples=whole.samples)
    json.dumps(encode(told), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data["run"]["spec"].update(max_minutes=10**400),
        lambda data: data["samples"][0].update(total_s={"value": "<b>", "estimated": True}),
        lambda data: data["samples"][0].update(total_s={"value": 10**400, "estimated": True}),
        lambda data: data["arm_ends"][0].update(wall_s=10**400),
        lambda data: data["run"].update(id="../../etc/passwd"),
        lambda data: data["run"].update(id="x' OR '1'='1"),
        lambda data: data.update(version=2),
        lambda data: data["run"].update(state="running"),
    ],
)
def test_what_is_no_run_is_refused_and_nothing_of_it_is_kept(
    ledger: Ledger, document: Any, spoil: Callable[[Any], None]
) -> None:
    before = ledger.runs()
    spoil(document)
    with pytest.raises(UsageError):
        ledger.import_run(document)
    assert ledger.runs() == before


def test_a_simulation_that_claims_to_be_real_is_marked_all_the_same(ledger: Ledger) -> None:
    run = make_runs.simulated()
    ledger.add(run)
    data = json.loads(json.dumps(ledger.document(run.id)))
    data["run"]["id"] = "20261130-000000-hostile-0001"
    data["run"]["environment"]["simulated"] = False
    assert "SIMULATED" in marks(ledger.import_run(data))


def test_a_bar_never_outgrows_its_plot() -> None:
    """An interval that does not hold its value is drawn as far as the plot goes."""
    for bounds in ((1e308, 2.0), (-1e308, 1e308), (5e-324, 5e-324)):
        point = Point(x=1, y=1e-320, low=bounds[0], high=bounds[1])
        plot = Plot(
            title="t",
            x_label="",
            y_label="s",
            series=(Series(name="a", points=(point,)),),
            style="bars",
        )
        for row in plotted(plot, 60, 10):
            assert cell_len("".join(span.text for span in row)) <= 60
