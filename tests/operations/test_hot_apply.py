"""An edited profile against what runs: each setting with what it takes, by properties."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a40console.engines.command import Site, plan
from a40console.model.profile import KnownIssue, Placement, Profile, Speculation
from a40console.operations.hot_apply import changes, digest, taken_over

RUNS = Profile(
    name="mine",
    kind="vllm",
    model="some/model",
    max_model_len=4096,
    environment={"HF_TOKEN": "hf_old", "OMP_NUM_THREADS": "4"},
    speculation=Speculation(tokens=5),
)
SITE = Site(python="python", embedded_script=Path("x.py"), socket_path=Path("s"), port=9, threads=7)


def effects(file: Profile, started: Profile = RUNS) -> dict[str, str]:
    return {change.key: change.effect for change in changes(started, started, file)}


def test_nothing_differs_from_itself() -> None:
    assert changes(RUNS, RUNS, RUNS) == ()
    assert digest((), RUNS) == ""


@pytest.mark.parametrize(
    ("changed", "key", "effect"),
    [
        ({"max_model_len": 8192}, "max_model_len", "restart"),
        ({"max_model_len": None}, "max_model_len", "restart"),
        ({"model": "another/model"}, "model", "restart"),
        ({"executable": "/opt/vllm"}, "executable", "restart"),
        ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype", "restart"),
        ({"plugin": False}, "plugin", "restart"),
        ({"arguments": ("--enforce-eager",)}, "arguments", "restart"),
        ({"served_name": "another"}, "served_name", "restart"),
        ({"listen": "loopback"}, "listen", "restart"),
        ({"title": "Mine"}, "title", "live"),
        ({"usd_per_hour": Decimal("0.44")}, "usd_per_hour", "live"),
        ({"messages_route": "translated"}, "messages_route", "live"),
        ({"start_timeout_s": 60.0}, "start_timeout_s", "live"),
        ({"stall_after_s": 9.0}, "stall_after_s", "live"),
        ({"known_issues": (KnownIssue(setting="a", reason="b"),)}, "known_issues", "live"),
        ({"placements": (Placement(max_model_len=9),)}, "placements", "live"),
        ({"port": 9000}, "port", "live"),  # it listens on a socket
        ({"threads": 3}, "threads", "live"),  # vLLM is not told of them
    ],
)
def test_what_a_setting_takes(changed: dict[str, Any], key: str, effect: str) -> None:
    assert effects(replace(RUNS, **changed)) == {key: effect}


def test_speculation_that_is_not_ready_is_ours_to_change() -> None:
    deeper = replace(RUNS, speculation=Speculation(tokens=9))
    assert effects(deeper) == {"speculation.tokens": "live"}
    on = replace(RUNS, speculation=Speculation(tokens=5, enabled=True))
    assert effects(on) == {"speculation.enabled": "restart"}
    assert effects(replace(on, speculation=Speculation(tokens=9, enabled=True)), on) == {
        "speculation.tokens": "restart"
    }
    ready = replace(RUNS, speculation=Speculation(tokens=5, start="off"))
    assert effects(ready) == {"speculation.start": "restart"}
    assert effects(replace(RUNS, speculation=Speculation(tokens=5, start="on")), ready) == {
        "speculation.start": "restart"  # to turn it now is a command of its own
    }
    assert effects(replace(RUNS, speculation=Speculation(tokens=5, locked="broken"))) == {
        "speculation.locked": "live"
    }


def test_what_was_turned_while_it_ran_is_no_edit() -> None:
    started = replace(RUNS, speculation=Speculation(tokens=5, start="off"))
    turned = replace(started, speculation=Speculation(tokens=5, start=3))
    assert changes(started, turned, started) == ()
    assert taken_over(turned, replace(started, title="T")) == replace(turned, title="T")


def test_what_was_taken_over_already_is_no_edit() -> None:
    named = replace(RUNS, title="T", usd_per_hour=Decimal(1))
    assert changes(RUNS, named, named) == ()


def test_secrets_are_covered() -> None:
    file = replace(
        RUNS,
        environment={
            "HF_TOKEN": "hf_new",
            "OMP_NUM_THREADS": "8",
            "HTTPS_PROXY": "http://joe:hunter2@proxy:3128",
            "DATABASE": "postgres://u:hunter2@db/x",
        },
        base_url="https://joe:hunter2@models.example/v1",
        arguments=("--api-key", "sk-1"),
    )
    told = {change.key: change for change in changes(RUNS, RUNS, file)}
    assert told["environment.HF_TOKEN"].change == "environment.HF_TOKEN: •••• → ••••"
    assert told["environment.OMP_NUM_THREADS"].change == 'environment.OMP_NUM_THREADS: "4" → "8"'
    assert told["arguments"].change == 'arguments: not set → ["--api-key", "••••"]'
    assert told["environment.HTTPS_PROXY"].change == "environment.HTTPS_PROXY: not set → ••••"
    assert "models.example" in told["base_url"].change
    assert "hunter2" not in repr(told)
    assert "hf_new" not in repr(told)
    assert "sk-1" not in repr(told)


def test_the_digest_names_the_changes() -> None:
    one, other = replace(RUNS, max_model_len=1), replace(RUNS, max_model_len=2)
    assert digest(changes(RUNS, RUNS, one), one) != digest(changes(RUNS, RUNS, other), other)
    hidden = replace(RUNS, environment={**RUNS.environment, "HF_TOKEN": "hf_b"})
    again = replace(RUNS, environment={**RUNS.environment, "HF_TOKEN": "hf_c"})
    assert digest(changes(RUNS, RUNS, hidden), hidden) != digest(changes(RUNS, RUNS, again), again)


SPECULATIONS = st.none() | st.builds(
    Speculation,
    enabled=st.booleans(),
    start=st.sampled_from([None, "on", "off", 2]),
    locked=st.sampled_from([None, "no"]),
    method=st.sampled_from(["ngram", "suffix"]),
    tokens=st.integers(3, 5),
    max_batched_tokens=st.sampled_from([None, 4096]),
)
PROFILES = st.builds(
    Profile,
    name=st.just("mine"),
    title=st.sampled_from(["", "T"]),
    kind=st.sampled_from(["vllm", "llamacpp", "sim"]),
    executable=st.just("program"),
    model=st.sampled_from(["a/b", "c/d"]),
    served_name=st.sampled_from([None, "served"]),
    listen=st.sampled_from(["socket", "loopback"]),
    port=st.sampled_from([None, 9000]),
    max_model_len=st.sampled_from([None, 4096]),
    max_batched_tokens=st.sampled_from([None, 2048]),
    async_scheduling=st.sampled_from([None, True, False]),
    threads=st.sampled_from([None, 2]),
    speculation=SPECULATIONS,
    plugin=st.booleans(),
    arguments=st.sampled_from([(), ("--x",)]),
    environment=st.sampled_from([{}, {"A": "1"}, {"A": "2", "B": "1"}]),
    usd_per_hour=st.sampled_from([None, Decimal(1)]),
)


def launch(profile: Profile) -> object:
    """All that a start is given."""
    return plan(profile, SITE)


@settings(max_examples=400, deadline=None)
@given(PROFILES, PROFILES)
def test_where_no_change_takes_a_restart_both_start_the_same(runs: Profile, file: Profile) -> None:
    found = changes(runs, runs, file)
    if all(change.effect == "live" for change in found):
        assert launch(runs) == launch(file)
        after = taken_over(runs, file)
        assert launch(after) == launch(runs)
        assert changes(after, after, file) == ()


@settings(max_examples=200, deadline=None)
@given(PROFILES, PROFILES)
def test_every_setting_that_differs_is_named(runs: Profile, file: Profile) -> None:
    named = {change.key.partition(".")[0] for change in changes(runs, runs, file)}
    differ = {
        each.name
        for each in fields(Profile)
        if getattr(runs, each.name) != getattr(file, each.name)
    }
    assert named == differ
