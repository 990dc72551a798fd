"""From a profile to a command line: flags that exist, one address, no secret."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines.command import (
    LaunchPlan,
    Site,
    argv_digest,
    default_threads,
    engine_environment,
    plan,
    printable,
)
from a40console.engines.speculation_cost import costs_of_ready
from a40console.errors import RefusedError
from a40console.model.profile import Profile, Speculation
from a40console.profiles.loader import load_profiles

DATA = Path(__file__).parents[1] / "data" / "engine_logs"
SHIPPED = load_profiles(Path("/nonexistent")).profiles
TOKEN = "5f0d6b2b9a1e4c53a7d1"


def site(**changes: Any) -> Site:
    settings: dict[str, Any] = {
        "python": "/usr/bin/python3",
        "embedded_script": Path("/lib/embedded.py"),
        "socket_path": Path("/tmp/a/engine.sock"),
        "port": 18100,
        "threads": 6,
        "plugin_environment": {"PYTHONPATH": "/p", "VLLM_PLUGINS": "a40console", "X_KEY": TOKEN},
        "plugin_token": TOKEN,
    }
    return Site(**(settings | changes))


def value_after(plan_: LaunchPlan, flag: str) -> str:
    return plan_.argv[plan_.argv.index(flag) + 1]


def speculating(profile: Profile, **changes: Any) -> Profile:
    assert profile.speculation is not None
    return replace(
        profile, speculation=replace(profile.speculation, **({"enabled": True} | changes))
    )


EVERYTHING = Profile(
    name="all",
    kind="vllm",
    model="some/model",
    max_model_len=4096,
    max_running=8,
    max_batched_tokens=2048,
    kv_cache_dtype="fp8",
    gpu_memory_utilization=0.9,
    quantization="awq",
    prefix_caching=True,
    async_scheduling=True,
    enforce_eager=True,
    tool_call_parser="hermes",
    reasoning_parser="qwen3",
)


@pytest.mark.parametrize("release", ["0.27.1", "0.32.0"])
@pytest.mark.parametrize("switched", [True, False])
@pytest.mark.parametrize("speculation", [None, Speculation(enabled=True, tokens=4)])
@pytest.mark.parametrize("listen", ["socket", "loopback"])
def test_every_vllm_flag_of_ours_exists(
    release: str, switched: bool, speculation: Speculation | None, listen: Any
) -> None:
    known = set((DATA / f"vllm-flags-{release}.txt").read_text().split())
    profile = replace(
        EVERYTHING,
        prefix_caching=switched,
        async_scheduling=switched,
        enforce_eager=switched,
        speculation=speculation,
        listen=listen,
    )
    used = {word for word in plan(profile, site()).argv if word.startswith("--")}
    assert used <= known


def test_vllm_listens_on_the_socket_or_on_loopback_never_on_both() -> None:
    on_socket = plan(EVERYTHING, site())
    assert value_after(on_socket, "--uds") == "/tmp/a/engine.sock"
    assert not {"--host", "--port"} & set(on_socket.argv)
    assert on_socket.endpoint.socket_path == "/tmp/a/engine.sock"
    on_port = plan(replace(EVERYTHING, listen="loopback"), site())
    assert value_after(on_port, "--host") == "127.0.0.1"
    assert "--uds" not in on_port.argv
    assert on_port.endpoint.base_url == "http://127.0.0.1:18100"
    assert (on_port.endpoint.socket_path, on_port.socket_path) == (None, None)


def test_speculation_that_is_off_leaves_no_trace() -> None:
    argv = plan(SHIPPED["qwen3-coder-30b"], site()).argv
    assert "--speculative-config" not in argv
    assert "--max-num-batched-tokens" not in argv
    assert "--async-scheduling" in argv
    assert "--enable-prefix-caching" in argv
    assert "--enable-auto-tool-choice" in argv


def test_speculation_that_is_on_brings_its_batched_tokens() -> None:
    on = plan(speculating(SHIPPED["qwen3-coder-30b"]), site())
    assert json.loads(value_after(on, "--speculative-config")) == {
        "method": "ngram",
        "num_speculative_tokens": 24,
    }
    assert value_after(on, "--max-num-batched-tokens") == "16384"


@pytest.mark.parametrize(("start", "depth"), [("off", "0"), (5, "5"), ("on", None), (None, None)])
def test_speculation_that_is_ready_can_be_turned_while_the_engine_runs(
    start: Any, depth: str | None
) -> None:
    qwen = SHIPPED["qwen3-coder-30b"]
    ready = plan(speculating(qwen, start=start, enabled=start != "off"), site())
    assert json.loads(value_after(ready, "--speculative-config"))["num_speculative_tokens"] == 24
    assert value_after(ready, "--worker-extension-cls") == "a40console_vllm.depth.DepthWorker"
    assert value_after(ready, "--max-num-batched-tokens") == "16384"
    assert "--async-scheduling" not in ready.argv
    assert ready.environment.get("A40CONSOLE_SPECULATION_DEPTH") == depth


def test_what_our_plugin_cannot_turn_gets_nothing_of_it() -> None:
    qwen = SHIPPED["qwen3-coder-30b"]
    for profile in (speculating(qwen, method="eagle3"), replace(speculating(qwen), plugin=False)):
        started = plan(profile, site())
        assert "--speculative-config" in started.argv
        assert "--worker-extension-cls" not in started.argv
        assert "A40CONSOLE_SPECULATION_DEPTH" not in started.environment


def test_what_being_ready_costs_is_told() -> None:
    qwen = SHIPPED["qwen3-coder-30b"]
    assert costs_of_ready(qwen) == ()
    told = costs_of_ready(speculating(qwen))
    assert any("async scheduling stays off" in cost for cost in told)
    assert any("min_p or logit_bias" in cost for cost in told)
    assert any("16,384 tokens" in cost for cost in told)
    assert any("25 tokens a sequence" in cost for cost in told)
    assert not any("async" in cost for cost in costs_of_ready(speculating(qwen, method="eagle3")))
    assert costs_of_ready(speculating(SHIPPED["smollm2-135m"])) == ()


def test_async_scheduling_is_not_forced_beside_a_method_that_excludes_it() -> None:
    """vLLM refuses to start when told to; it turns it off by itself when left alone."""
    qwen = SHIPPED["qwen3-coder-30b"]
    assert "--async-scheduling" not in plan(speculating(qwen), site()).argv
    assert "--async-scheduling" in plan(speculating(qwen, method="eagle3"), site()).argv
    never = replace(speculating(qwen), async_scheduling=False)
    assert "--no-async-scheduling" in plan(never, site()).argv


def test_a_model_folder_replaces_the_repository_and_the_name_stays() -> None:
    planned = plan(SHIPPED["smollm2-135m-vllm-cpu"], site(model_path=Path("/m/smol")))
    assert planned.argv[:3] == ("vllm", "serve", "/m/smol")
    assert value_after(planned, "--served-model-name") == "smollm2-135m-vllm-cpu"


def test_the_plugin_is_left_out_where_the_profile_says_so() -> None:
    without = plan(replace(EVERYTHING, plugin=False), site())
    assert "VLLM_PLUGINS" not in without.environment
    assert without.endpoint.plugin_token is None
    assert plan(EVERYTHING, site()).endpoint.plugin_token == TOKEN


def test_the_profiles_own_path_and_plugins_do_not_undo_the_merged_ones() -> None:
    own = replace(EVERYTHING, environment={"PYTHONPATH": "/own", "VLLM_PLUGINS": "own", "A": "b"})
    environment = plan(own, site()).environment
    assert environment["PYTHONPATH"] == "/p"
    assert environment["VLLM_PLUGINS"] == "a40console"
    assert environment["A"] == "b"


def test_the_embedded_server_runs_by_path_without_our_modules_on_its_path() -> None:
    planned = plan(SHIPPED["smollm2-135m"], site(model_path=Path("/m/x.gguf")))
    assert planned.argv[:5] == (
        "/usr/bin/python3",
        "-P",
        "/lib/embedded.py",
        "--model",
        "/m/x.gguf",
    )
    assert value_after(planned, "--context-tokens") == "8192"
    assert value_after(planned, "--slots") == "4"
    assert value_after(planned, "--threads") == "6"
    assert "--draft-tokens" not in planned.argv
    on = plan(speculating(SHIPPED["smollm2-135m"]), site())
    assert value_after(on, "--draft-tokens") == "6"


def test_llama_server_shares_the_context_out_among_its_slots() -> None:
    profile = replace(
        speculating(SHIPPED["smollm2-135m"]),
        executable="llama-server",
        threads=2,
        arguments=("-fa",),
    )
    planned = plan(profile, site(executable="/opt/llama-server"))
    assert planned.argv[0] == "/opt/llama-server"
    assert {"--metrics", "--slots"} <= set(planned.argv)
    assert value_after(planned, "--ctx-size") == "8192"
    assert value_after(planned, "--parallel") == "4"
    assert value_after(planned, "--host") == "/tmp/a/engine.sock"
    assert value_after(planned, "--threads") == "2"
    assert value_after(planned, "--spec-type") == "ngram-mod"
    assert planned.argv[-1] == "-fa", "the profile's own arguments come last"


def test_the_digest_names_the_settings_and_not_the_address() -> None:
    first = plan(EVERYTHING, site())
    again = plan(EVERYTHING, site(socket_path=Path("/tmp/b/other.sock")))
    other = plan(replace(EVERYTHING, max_running=9), site())
    assert argv_digest(first.argv) == argv_digest(again.argv) != argv_digest(other.argv)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"arguments": ("--api-key", "s3cret")}, "secret"),
        ({"arguments": ("--api_key=s3cret",)}, "secret"),
        ({"arguments": ("--hf-token=s3cret",)}, "secret"),
        ({"arguments": ("--proxy-password", "s3cret")}, "secret"),
        ({"arguments": ("--uds", "/x")}, "address"),
        ({"arguments": ("--port=1",)}, "address"),
        ({"environment": {"VLLM_SERVER_DEV_MODE": "1"}}, "developer mode"),
    ],
)
def test_what_a_profile_must_not_do_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(RefusedError, match=says) as refused:
        plan(replace(EVERYTHING, **changes), site())
    assert refused.value.remedy
    assert "s3cret" not in f"{refused.value} {refused.value.evidence}"


def test_arguments_for_the_embedded_server_are_refused() -> None:
    with pytest.raises(RefusedError, match="takes no arguments"):
        plan(replace(SHIPPED["smollm2-135m"], arguments=("-fa",)), site())


def test_an_engine_inherits_no_secret_of_ours() -> None:
    service = {
        "PATH": "/bin",
        "HF_TOKEN": "needed",
        "RUNPOD_API_KEY": "x",
        "A40CONSOLE_HOME": "/h",
        "VLLM_API_KEY": "x",
        "VLLM_SERVER_DEV_MODE": "1",
    }
    environment = engine_environment(service, plan(EVERYTHING, site()))
    assert environment["PATH"] == "/bin"
    assert environment["HF_TOKEN"] == "needed"
    assert environment["X_KEY"] == TOKEN
    forbidden = {"RUNPOD_API_KEY", "A40CONSOLE_HOME", "VLLM_API_KEY", "VLLM_SERVER_DEV_MODE"}
    assert not forbidden & environment.keys()


@pytest.mark.parametrize(
    ("name", "passes"),
    [
        ("OPENAI_API_KEY", False),
        ("GITHUB_TOKEN", False),
        ("AWS_SECRET_ACCESS_KEY", False),
        ("AWS_SESSION_TOKEN", False),
        ("ANTHROPIC_AUTH_TOKEN", False),
        ("llama_api_key", False),
        ("DB_PASSWORD", False),
        ("HF_TOKEN", True),
        ("HUGGING_FACE_HUB_TOKEN", True),
        ("TOKENIZERS_PARALLELISM", True),
        ("VLLM_LOGGING_LEVEL", True),
    ],
)
def test_the_operators_other_secrets_stay_with_the_service(name: str, passes: bool) -> None:
    launch = plan(EVERYTHING, site())
    assert (name in engine_environment({name: "x"}, launch)) is passes
    named = plan(replace(EVERYTHING, environment={name: "y"}), site())
    assert engine_environment({name: "x"}, named)[name] == "y"


@pytest.mark.parametrize(("quota", "threads"), [(None, 1), (0.5, 1), (1.0, 1), (6.4, 5), (8, 7)])
def test_one_vcpu_stays_free_of_llamacpps_threads(quota: float | None, threads: int) -> None:
    assert default_threads(quota) == threads


def test_the_profiles_own_key_reaches_the_engine_and_the_gateway() -> None:
    keyed = replace(EVERYTHING, environment={"VLLM_API_KEY": TOKEN})
    planned = plan(keyed, site())
    assert engine_environment({}, planned)["VLLM_API_KEY"] == TOKEN
    assert planned.endpoint.api_key == TOKEN
    assert TOKEN not in repr(planned)
    assert TOKEN not in repr(site())


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
profiles = st.builds(
    Profile,
    name=words,
    kind=st.sampled_from(["vllm", "llamacpp"]),
    executable=st.just("/opt/engine"),
    model=words,
    listen=st.sampled_from(["socket", "loopback"]),
    served_name=st.none() | words,
    max_model_len=st.none() | st.integers(1, 10**6),
    max_running=st.none() | st.integers(1, 64),
    kv_cache_dtype=st.none() | words,
    prefix_caching=st.none() | st.booleans(),
    tool_call_parser=st.none() | words,
    speculation=st.none()
    | st.builds(Speculation, enabled=st.booleans(), method=words, tokens=st.integers(1, 64)),
    arguments=st.lists(words.filter(lambda word: not word.startswith("-"))).map(tuple),
    environment=st.just({"SOME_TOKEN": TOKEN}),
)


@given(profiles)
def test_a_command_line_survives_quoting_and_holds_no_secret(profile: Profile) -> None:
    planned = plan(profile, site())
    assert tuple(shlex.split(printable(planned.argv))) == planned.argv
    assert not any(TOKEN in word for word in planned.argv)
    assert planned.environment["SOME_TOKEN"] == TOKEN
    assert all(isinstance(word, str) for word in planned.argv)
