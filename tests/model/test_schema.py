"""The published schema is the model's, and closed: what is not in the contract does not pass."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import a40console.model
from a40console.model.codec import decode, encode
from a40console.model.schema import json_schema
from a40console.model.snapshot import Snapshot
from tests import make_snapshot

PUBLISHED = Path(a40console.model.__file__).with_name("snapshot.schema.json")
SCHEMA = jsonschema.Draft202012Validator(json_schema(Snapshot))


@pytest.fixture
def data() -> Any:
    return json.loads(json.dumps(encode(make_snapshot.snapshot())))


def test_the_published_schema_is_the_models() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == json_schema(Snapshot)


def test_a_snapshot_passes(data: Any) -> None:
    assert list(SCHEMA.iter_errors(data)) == []


@pytest.mark.parametrize("path", [(), ("engine",), ("throughput",), ("slots", 0), ("cost",)])
def test_every_object_is_closed(data: Any, path: tuple[str | int, ...]) -> None:
    changed = copy.deepcopy(data)
    place = changed
    for step in path:
        place = place[step]
    place["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError):
        SCHEMA.validate(changed)


@pytest.mark.parametrize("value", [None, "12", {"missing": 3}, {"value": 1}, {"estimated": True}])
def test_a_figure_is_a_number_an_estimate_or_missing_with_a_reason(data: Any, value: Any) -> None:
    data["throughput"]["generation_tokens_per_s"] = value
    with pytest.raises(jsonschema.ValidationError):
        SCHEMA.validate(data)


def test_no_block_may_be_left_out(data: Any) -> None:
    for name in list(data):
        changed = {key: value for key, value in data.items() if key != name}
        with pytest.raises(jsonschema.ValidationError):
            SCHEMA.validate(changed)


@pytest.mark.parametrize("make", ["snapshot", "idle", "starting", "failed", "orphaned", "sparse"])
def test_every_kind_of_snapshot_survives_the_trip(make: str) -> None:
    snapshot: Snapshot = getattr(make_snapshot, make)()
    data = json.loads(json.dumps(encode(snapshot)))
    SCHEMA.validate(data)
    assert decode(Snapshot, data) == snapshot
