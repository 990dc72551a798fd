"""What a client is told to set, for every place that a gateway can stand in."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.control import ClientEnvironment
from a40console.model.figures import Figure, Missing
from a40console.service.connecting import client_environment, output_limit
from a40console.service.pod_environment import with_pod

POD = {
    "RUNPOD_POD_ID": "abc123",
    "RUNPOD_PUBLIC_IP": "203.0.113.7",
    "RUNPOD_TCP_PORT_22": "40022",
    "RUNPOD_TCP_PORT_8080": "40080",
    "USER": "root",
}


def told(
    *,
    listens_on: str = "127.0.0.1",
    served_name: str | None = "qwen3",
    window_tokens: Figure = 32_768,
    environment: dict[str, str] | None = None,
) -> ClientEnvironment:
    return client_environment(
        url="http://127.0.0.1:8080",
        listens_on=listens_on,
        token="a40-token",
        served_name=served_name,
        window_tokens=window_tokens,
        environment=environment or {},
    )


def test_the_true_window_and_an_answer_that_fits_into_it() -> None:
    variables = told().variables
    assert variables["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "32768"
    assert variables["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "2768"
    assert told(window_tokens=65_536).variables["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "16384"


@given(st.integers(1, 10_000_000))
def test_the_answer_never_takes_the_window(window: int) -> None:
    limit = output_limit(window)
    assert 1 <= limit <= min(window, 32_000)
    assert limit <= max(window // 4, min(256, window))


def test_every_name_that_the_client_has_for_models_is_the_served_one() -> None:
    variables = told().variables
    models = {name: value for name, value in variables.items() if name.endswith("_MODEL")}
    assert set(models.values()) == {"qwen3"}
    assert {"ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL"} <= models.keys()


def test_without_an_engine_no_window_and_no_model_is_made_up() -> None:
    environment = told(served_name=None, window_tokens=Missing("no engine runs"))
    assert "ANTHROPIC_MODEL" not in environment.variables
    assert "CLAUDE_CODE_MAX_CONTEXT_TOKENS" not in environment.variables
    assert environment.window_tokens == Missing("no engine runs")
    assert isinstance(environment.output_tokens, Missing)
    assert any("No engine runs" in sentence for sentence in environment.advice)


@pytest.mark.parametrize(
    ("window", "said"),
    [
        (2048, "--bare needs about 1,000"),
        (1024, "even claude --bare does not fit"),
        (15_256, "it would compact at every turn"),
        (30_047, "it would compact at every turn"),
        (30_048, "so that it compacts at ≈ 15,000 and not at every turn"),
        (32_768, "answers are kept to 2,768 tokens, so that it compacts at ≈ 17,000"),
        (39_999, "not at every turn"),
    ],
)
def test_a_window_too_small_for_the_client_is_told(window: int, said: str) -> None:
    assert any(said in sentence for sentence in told(window_tokens=window).advice)


@pytest.mark.parametrize("window", [1024, 2048, 13_000])
def test_a_window_that_the_client_would_refuse_by_itself_is_not_told_it(window: int) -> None:
    environment = told(window_tokens=window)
    assert "CLAUDE_CODE_MAX_CONTEXT_TOKENS" not in environment.variables
    assert "CLAUDE_CODE_MAX_OUTPUT_TOKENS" in environment.variables
    assert any("not told this window" in sentence for sentence in environment.advice)


def test_a_window_that_fits_is_not_complained_about() -> None:
    assert not any("window" in sentence for sentence in told(window_tokens=40_000).advice)


@given(st.integers(15_256, 300_000))
def test_no_window_compacts_at_every_turn_without_a_word(window: int) -> None:
    advice = told(window_tokens=window).advice
    at_every_turn = any("it would compact at every turn" in sentence for sentence in advice)
    limit = output_limit(window)
    assert at_every_turn == (window - min(limit, 20_000) - 13_000 < 15_000)
    assert at_every_turn == (window < 30_048)


def test_a_name_that_the_client_believes_to_know_is_told() -> None:
    advice = told(served_name="claude-local").advice
    assert any("begin with claude-" in sentence for sentence in advice)


def test_on_loopback_the_outer_addresses_of_a_pod_are_closed() -> None:
    ways = {way.kind: way for way in told(environment=POD).addresses}
    assert ways["loopback"].refused == ""
    assert "a40console --ssh root@203.0.113.7:40022" in ways["tunnel"].text
    assert "-L 8080:127.0.0.1:8080 -p 40022 root@203.0.113.7" in ways["tunnel"].text
    assert "loopback alone" in ways["tcp"].refused
    assert "loopback alone" in ways["proxy"].refused


def test_an_open_gateway_of_a_pod_names_both_ways_with_their_limits() -> None:
    ways = {way.kind: way for way in told(listens_on="0.0.0.0", environment=POD).addresses}
    assert ways["tcp"].url == "http://203.0.113.7:40080"
    assert "can be read on the way" in ways["tcp"].limit
    assert ways["proxy"].url == "https://abc123-8080.proxy.runpod.net"
    assert "silent for 100 s" in ways["proxy"].limit
    assert ways["tcp"].refused == ways["proxy"].refused == ""


def test_away_from_a_pod_there_is_no_word_of_one() -> None:
    assert [way.kind for way in told().addresses] == ["loopback", "tunnel"]


def test_a_service_started_over_ssh_knows_the_pods_addresses_and_no_key(tmp_path: Path) -> None:
    first = tmp_path / "environ"
    first.write_bytes(
        b"RUNPOD_POD_ID=abc123\0RUNPOD_API_KEY=secret\0USER=nobody\0"
        b"RUNPOD_TCP_PORT_8080=40080\0RUNPOD_PUBLIC_IP=203.0.113.7\0broken\0"
    )
    environment = with_pod({"USER": "root", "RUNPOD_TCP_PORT_8080": "40081"}, first)
    assert environment == {
        "RUNPOD_POD_ID": "abc123",
        "RUNPOD_PUBLIC_IP": "203.0.113.7",
        "RUNPOD_TCP_PORT_8080": "40081",
        "USER": "root",
    }
    assert with_pod({"USER": "root"}, tmp_path / "none") == {"USER": "root"}
