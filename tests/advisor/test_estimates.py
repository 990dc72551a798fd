"""An estimate says ≈ wherever the advisor names it, and changes no verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a40console.advisor.evidence import Evidence
from a40console.advisor.findings import findings
from a40console.advisor.limit import explain
from a40console.model.codec import DecodeError, decode, encode
from a40console.model.snapshot import Snapshot
from tests.advisor.scenes import Scene
from tests.advisor.test_situations import FILES, load, merged, snapshot_of

Place = tuple[str | int, ...]


def said(snapshot: Any, extra: Any) -> list[str]:
    """Every text that names a figure."""
    seen, told = decode(Snapshot, snapshot), decode(Evidence, extra)
    explanation, found = explain(seen, told), findings(seen, told)
    return [
        *(piece for cause in explanation.causes for piece in (cause.text, *cause.evidence)),
        *(excluded.how for excluded in explanation.ruled_out),
        *(unjudged.reason for unjudged in explanation.unjudged),
        *(text for finding in found for text in (finding.title, *finding.evidence.split(" · "))),
    ]


def numbers(block: Any, place: Place = ()) -> Iterator[tuple[Place, float]]:
    """Places of plain figures in encoded input."""
    if isinstance(block, (int, float)) and not isinstance(block, bool) and block:
        yield place, block
    elif isinstance(block, (dict, list)):
        for name, value in block.items() if isinstance(block, dict) else enumerate(block):
            yield from numbers(value, (*place, name))


def changed(block: Any, place: Place, value: Any) -> Any:
    """A copy of the block with another value there."""
    copy, (first, *rest) = block.copy(), place
    copy[first] = changed(block[first], tuple(rest), value) if rest else value
    return copy


def may_be_estimated(snapshot: Any, extra: Any) -> bool:
    try:
        said(snapshot, extra)
    except DecodeError:
        return False
    return True


def exact(text: str) -> str:
    return re.sub("≈ ", "", text)


def form(text: str) -> str:
    return re.sub(r"[\d.,]+", "#", text)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_an_estimate_is_marked_in_every_text_that_names_it(path: Path, scene: Scene) -> None:
    situation = load(path)
    snapshot = encode(snapshot_of(situation, scene()))
    extra = merged(encode(Evidence()), situation["evidence"])
    for whole, is_extra in ((snapshot, False), (extra, True)):
        for place, value in numbers(whole):
            if place[-1] in {"now", "before"}:
                estimate = changed(whole, (*place[:-1], "estimated"), True)
            else:
                estimate = changed(whole, place, {"value": value, "estimated": True})
            inputs = [
                (snapshot, one) if is_extra else (one, extra)
                for one in (whole, estimate, changed(whole, place, 1.03 * value))
            ]
            if not may_be_estimated(*inputs[1]):
                continue
            plain, marked, moved = (said(*one) for one in inputs)
            assert [exact(text) for text in marked] == [exact(text) for text in plain], place
            if [form(text) for text in moved] != [form(text) for text in plain]:
                continue  # so much more is another verdict
            for before, after, shown in zip(plain, moved, marked, strict=True):
                assert before == after or "≈" in shown, (place, shown)
