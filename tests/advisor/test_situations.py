"""Situations in which a rule must speak, and others in which it must not: each is a file of data.

`changes` are made to the snapshot of a healthy engine that decodes for two clients, `evidence` to
a service that has just begun to watch; `gpus` changes the one GPU.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from a40console.advisor.evidence import Evidence
from a40console.advisor.limit import DECODE, RANKED, explain, limit
from a40console.model.codec import decode, encode
from a40console.model.explanation import Explanation
from a40console.model.snapshot import Snapshot
from tests.advisor.scenes import Scene

Situation = dict[str, Any]

FILES = sorted(Path(__file__).with_name("situations").glob("*.json"))
SPEAKS = {"cause", "candidate", "weak"}


def load(path: Path) -> Situation:
    situation: Situation = json.loads(path.read_text(encoding="utf-8"))
    return situation


def merged(base: Any, changes: Any) -> Any:
    """The base with changes: objects by their keys, everything else as a whole."""
    ours = isinstance(base, dict) and isinstance(changes, dict)
    if not ours or "missing" in changes or "missing" in base or "value" in changes:
        return changes
    return {**base, **{name: merged(base.get(name), value) for name, value in changes.items()}}


def snapshot_of(situation: Situation, healthy: Snapshot) -> Snapshot:
    base, changes = encode(healthy), dict(situation["changes"])
    if isinstance(gpus := changes.get("gpus"), list):
        changes["gpus"] = [merged(base["gpus"][0], change) for change in gpus]
    return decode(Snapshot, merged(base, changes))


def explained(situation: Situation, healthy: Snapshot) -> Explanation:
    extra = decode(Evidence, merged(encode(Evidence()), situation["evidence"]))
    return explain(snapshot_of(situation, healthy), extra)


def verdict(explanation: Explanation, name: str) -> tuple[str, str]:
    """What became of a cause, and everything that was said of it."""
    for cause in explanation.causes:
        if cause.cause == name:
            return cause.strength, " ".join([cause.text, *cause.evidence, cause.command or ""])
    for excluded in explanation.ruled_out:
        if excluded.cause == name:
            return "ruled-out", excluded.how
    for open_one in explanation.unjudged:
        if open_one.cause == name:
            return "unjudged", open_one.reason
    return "nothing", ""


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_rule_says_what_the_situation_is(path: Path, scene: Scene) -> None:
    situation = load(path)
    explanation = explained(situation, scene())
    came, said = verdict(explanation, situation["of"])
    assert came == situation["verdict"], (said, explanation)
    for words in situation["says"]:
        assert words in said
    first = explanation.causes[0]
    assert first.strength == "cause"
    causes = [each.cause for each in explanation.causes if each.strength == "cause"]
    assert DECODE not in causes or causes == [DECODE], "what makes the passes slow is the limit"
    block = limit(explanation)
    assert (block.cause, block.text, block.evidence) == (first.cause, first.text, first.evidence)
    assert first.cause not in block.ruled_out


def test_every_rule_has_a_situation_to_speak_in_and_one_to_be_silent_in() -> None:
    seen: dict[str, set[bool]] = defaultdict(set)
    for path in FILES:
        situation = load(path)
        seen[situation["of"]].add(situation["verdict"] in SPEAKS)
    for name in (DECODE, *(name for name, _ in RANKED)):
        assert seen[name] == {True, False}, name


def test_only_a_strong_cause_becomes_the_limit(scene: Scene) -> None:
    for path in FILES:
        situation = load(path)
        if situation["verdict"] in {"candidate", "weak"}:
            assert explained(situation, scene()).causes[0].cause != situation["of"], path.stem
