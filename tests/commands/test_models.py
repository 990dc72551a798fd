"""`models` as an operator runs it: what is here, fetching it slowly, wrongly, in two goes."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from a40console.paths import Paths
from a40console.profiles.loader import load_profiles
from tests.commands.console_process import CONSOLE, Run, on_terminal
from tests.engines.hub_server import ModelHub, serve
from tests.operations.living import living_engine

GGUF = Random(5).randbytes(24_000_000)
"""The hub's library writes pieces of 10 MB: less than one of them would never be partial."""

SHA256 = hashlib.sha256(GGUF).hexdigest()
SNAPSHOT = {"config.json": b"{}", "model.safetensors": GGUF[:3_000_000]}

FILE_PROFILE = f"""
kind = "llamacpp"
model = "m.gguf"
[file]
repo = "owner/model"
file = "m.gguf"
sha256 = "{SHA256}"
size_bytes = {len(GGUF)}
"""
HUB_PROFILE = 'kind = "vllm"\nmodel = "owner/model"\n'


@pytest.fixture
def hub() -> Iterator[ModelHub]:
    files = {**SNAPSHOT, "m.gguf": GGUF}
    with serve(ModelHub(files=files, large={"m.gguf", "model.safetensors"})) as served:
        yield served


@pytest.fixture
def environment(environment: dict[str, str], hub: ModelHub, paths: Paths) -> dict[str, str]:
    """With the hub in small, and two profiles that use it."""
    paths.profiles.mkdir(parents=True)
    (paths.profiles / "gguf.toml").write_text(FILE_PROFILE)
    (paths.profiles / "hub.toml").write_text(HUB_PROFILE)
    kept = {name: value for name, value in environment.items() if "proxy" not in name.lower()}
    own = {"HF_ENDPOINT": hub.url, "HF_HOME": str(paths.home / "hf"), "HF_HUB_OFFLINE": "0"}
    return {**kept, **own, "HF_HUB_DISABLE_TELEMETRY": "1"}


def state(console: Run, name: str, *options: str) -> str:
    listed = json.loads(console("models", "list", "--json", *options).stdout)
    found: str = next(each["state"] for each in listed["models"] if each["name"] == name)
    return found


def test_a_pinned_file_comes_is_listed_and_goes(console: Run, paths: Paths) -> None:
    assert state(console, "m.gguf") == "missing"
    fetched = console("models", "fetch", "gguf")
    assert fetched.returncode == 0, fetched.stderr
    assert f"m.gguf is here and verified: 24 MB, {paths.models}/m.gguf" in fetched.stdout
    assert re.search(r"m\.gguf  .* of 24 MB", fetched.stderr)
    assert state(console, "m.gguf") == "verified"
    listed = console("models", "list").stdout
    assert "verified" in listed
    assert "gguf" in listed
    refused = console("models", "delete", "m.gguf")
    assert refused.returncode == 2, "nobody was asked"
    deleted = json.loads(console("models", "delete", "m.gguf", "--yes", "--json").stdout)
    assert deleted["freed_bytes"] >= len(GGUF)
    assert list(paths.models.iterdir()) == []
    assert console("models", "delete", "m.gguf", "--yes").returncode == 5


def test_a_model_of_the_hub_comes_is_verified_and_goes(
    console: Run, hub: ModelHub, paths: Paths
) -> None:
    assert state(console, "owner/model") == "missing"
    fetched = json.loads(console("models", "fetch", "owner/model", "--json").stdout)
    assert fetched["model"]["state"] == "verified"
    assert fetched["model"]["profiles"] == ["hub"]
    assert fetched["model"]["here_bytes"] >= 3_000_000
    assert "m.gguf" not in hub.gets
    [blob] = (paths.home / "hf").rglob(hub.name_of("model.safetensors"))
    blob.write_bytes(bytes(3_000_000))
    assert state(console, "owner/model") == "here", "it changed, and was not hashed since"
    damaged = console("models", "list", "--verify")
    assert damaged.returncode == 6
    assert "DAMAGED" in damaged.stdout
    again = console("models", "fetch", "owner/model")
    assert again.returncode == 6
    assert "moved aside" in again.stderr
    assert console("models", "fetch", "owner/model").returncode == 0
    assert console("models", "delete", "hub", "--yes").returncode == 0
    assert state(console, "owner/model") == "missing"


def test_another_file_is_refused_and_moved_aside(console: Run, hub: ModelHub, paths: Paths) -> None:
    hub.lies["m.gguf"] = bytes(len(GGUF))
    failed = console("models", "fetch", "m.gguf", "--json")
    assert failed.returncode == 6
    error = json.loads(failed.stdout)["error"]
    assert "not the file that the profile pins" in error["message"]
    [aside] = paths.models.glob("m.gguf.wrong-*")
    assert str(aside) in error["remedy"]
    assert state(console, "m.gguf") == "missing"


def test_an_interrupted_fetch_goes_on(
    console: Run, hub: ModelHub, environment: dict[str, str], paths: Paths
) -> None:
    hub.hold_after = 20_000_000
    process = subprocess.Popen(
        [*CONSOLE, "models", "fetch", "m.gguf"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    partial = paths.models / f".fetching-{SHA256[:12]}" / "hub.partial"
    deadline = time.monotonic() + 30
    while not (partial.exists() and partial.stat().st_size > 0):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    busy = console("models", "fetch", "m.gguf")
    assert busy.returncode == 5
    assert "another process is fetching this file" in busy.stderr
    assert "is being fetched" in console("models", "delete", "m.gguf", "--yes").stderr
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert state(console, "m.gguf") == "partial"
    hub.hold.set()
    hub.hold_after = 0
    done = console("models", "fetch", "m.gguf")
    assert done.returncode == 0, done.stderr
    assert not hub.ranges[-1][1].startswith("bytes=0-")


def test_a_slow_hub_is_told_with_speed_and_time_left(
    hub: ModelHub, environment: dict[str, str]
) -> None:
    hub.files["m.gguf"] = GGUF
    hub.bytes_per_s = 12_000_000
    code, written = on_terminal(environment, "models", "fetch", "m.gguf")
    assert code == 0, written
    told = re.findall(r"(\d+) MB of 24 MB, ([\d.]+) MB/s, (\d+) s left", written)
    assert told, written
    assert any(0 < float(speed) < 40 for _, speed, _ in told)


def test_the_hubs_no_is_told_in_words_without_the_token(
    console: Run, hub: ModelHub, environment: dict[str, str]
) -> None:
    hub.status, hub.error = 404, "RepoNotFound"
    missing = console("models", "fetch", "owner/model")
    assert missing.returncode == 5
    assert "the hub has no owner/model, or it is private (set HF_TOKEN)" in missing.stderr
    hub.status, hub.token = 0, "hf_rightrightright"
    own = {**environment, "HF_TOKEN": "hf_wrongwrongwrong"}
    gated = console("models", "fetch", "owner/model", environment=own)
    assert gated.returncode == 5
    assert "HF_TOKEN" in gated.stderr
    assert "hf_wrong" not in gated.stderr + gated.stdout
    assert (
        console(
            "models", "fetch", "owner/model", environment=own | {"HF_TOKEN": hub.token}
        ).returncode
        == 0
    )


def test_a_name_that_nothing_has_is_refused(console: Run) -> None:
    unknown = console("models", "fetch", "nothing")
    assert unknown.returncode == 2
    assert "owner/model" in unknown.stderr


async def test_what_a_running_engine_uses_is_not_deleted(console: Run, paths: Paths) -> None:
    assert console("models", "fetch", "m.gguf").returncode == 0
    profile = load_profiles(paths.profiles).find("gguf")
    async with living_engine(paths, profile):
        assert "in use" in console("models", "list").stdout
        refused = console("models", "delete", "m.gguf", "--yes")
        assert refused.returncode == 5
        assert "the engine of gguf runs with it" in refused.stderr
        assert Path(paths.models / "m.gguf").exists()
    assert console("models", "delete", "m.gguf", "--yes").returncode == 0


def other_profile(text: str = "", **values: object) -> str:
    wanted = {
        "repo": "else/where",
        "file": "m.gguf",
        "sha256": "b" * 64,
        "size_bytes": 1000,
        **values,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in wanted.items()]
    return "\n".join(['kind = "llamacpp"', 'model = "m"', text, "[file]", *lines])


def test_two_files_of_one_name_are_two_models(console: Run, paths: Paths) -> None:
    console("models", "fetch", "gguf")
    (paths.profiles / "other.toml").write_text(other_profile())
    (paths.profiles / "third.toml").write_text(other_profile(sha256="c" * 64))
    (paths.profiles / "same.toml").write_text(FILE_PROFILE.replace("owner/model", "mirror/model"))
    listed = json.loads(console("models", "list", "--json").stdout)["models"]
    told = {each["name"]: each for each in listed if each["name"].endswith(("m.gguf", ")"))}
    assert {name: (each["state"], each["profiles"]) for name, each in told.items()} == {
        "owner/model/m.gguf": ("verified", ["gguf", "same"]),
        "else/where/m.gguf (bbbbbbbbbbbb)": ("missing", ["other"]),
        "else/where/m.gguf (cccccccccccc)": ("missing", ["third"]),
    }
    assert told["else/where/m.gguf (bbbbbbbbbbbb)"]["detail"] == "in its place lies that of gguf"
    several = console("models", "delete", "m.gguf", "--yes")
    assert several.returncode == 2
    assert "Several models are called 'm.gguf'" in several.stderr
    assert "else/where/m.gguf (cccccccccccc)" in several.stderr
    nothing = console("models", "delete", "else/where/m.gguf (bbbbbbbbbbbb)", "--yes")
    assert nothing.returncode == 5
    assert (paths.models / "m.gguf").stat().st_size == len(GGUF), "that of the other"
    assert console("models", "delete", "same", "--yes").returncode == 0
    assert not (paths.models / "m.gguf").exists()


def test_one_repository_in_two_caches_is_two_models(console: Run, paths: Paths) -> None:
    elsewhere = paths.home / "elsewhere"
    moved = f'{HUB_PROFILE}[environment]\nHF_HOME = "{elsewhere}"\n'
    (paths.profiles / "moved.toml").write_text(moved)
    assert console("models", "fetch", "moved").returncode == 0
    listed = json.loads(console("models", "list", "--json").stdout)["models"]
    states = {each["profiles"][0]: (each["state"], each["name"]) for each in listed}
    assert states["moved"] == ("verified", f"owner/model ({elsewhere}/hub)")
    assert states["hub"] == ("missing", f"owner/model ({paths.home}/hf/hub)")
    assert console("models", "delete", "moved", "--yes").returncode == 0
    assert not list(elsewhere.rglob("model.safetensors"))


@pytest.mark.parametrize("columns", [30, 60, 80, 100, 200])
def test_no_name_is_cut_at_any_width(
    columns: int, environment: dict[str, str], paths: Paths
) -> None:
    begin = "a-name-that-is-long-enough-to-be-cut-somewhere-in-its-middle"
    names = [f"{begin}-{end}.gguf" for end in ("one", "two")]
    for number, name in enumerate(names):
        profile = other_profile(file=name, sha256=str(number) * 64)
        (paths.profiles / f"profile-with-a-rather-long-name-{number}.toml").write_text(profile)
    code, written = on_terminal(environment, "models", "list", columns=columns)
    assert code == 0
    words = written.split()
    for number, name in enumerate(names):
        assert name in words
        assert any(f"profile-with-a-rather-long-name-{number}" in word for word in words)
    assert "…" not in written


def test_what_could_not_be_seen_in_a_name_is_printed_as_escapes(
    console: Run, environment: dict[str, str], paths: Paths
) -> None:
    names = {
        "a\u202emodnar": "a\\u202emodnar",
        "b\x01c": "b\\x01c",
        "zero\u200bwidth": "zero\\u200bwidth",
    }
    for number, name in enumerate(names):
        profile = f'kind = "vllm"\nmodel = {json.dumps("/models/" + name)}\n'
        (paths.profiles / f"odd-{number}.toml").write_text(profile)
    shown = console("models", "list").stdout
    for name, escaped in names.items():
        assert name not in shown
        assert f"/models/{escaped}" in shown.split()
        refused = console("models", "delete", f"/models/{name}", "--yes")
        assert name not in refused.stderr
        assert f"/models/{escaped} was not fetched by us\n" in refused.stderr
        unknown = console("models", "fetch", "/models/none")
        assert name not in unknown.stderr
        assert f"/models/{escaped}" in unknown.stderr
