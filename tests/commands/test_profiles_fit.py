"""`profiles fit`: verdict, figures with their origin, remedies and exit codes; no service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from a40console.engines.capability import gpu_present
from a40console.engines.model_shape import folder_shape
from a40console.errors import Exit
from a40console.model.codec import encode
from a40console.model.figures import Missing
from a40console.model.profile import Profile
from a40console.model.shape import ModelShape
from a40console.operations import record
from a40console.operations.fitting import measured
from a40console.paths import Paths
from a40console.profiles import loader
from tests.commands.console_process import Run
from tests.engines import model_configs

LOGS = Path(__file__).parent.parent / "data" / "engine_logs"
OWN = """\
kind = "vllm"
model = "{folder}"
max_model_len = {context}

[environment]
VLLM_CPU_KVCACHE_SPACE = "1"
"""


@pytest.fixture
def folder(paths: Paths) -> Path:
    paths.profiles.mkdir(parents=True)
    return paths.profiles


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model's folder: its configuration, and weights of 1,000 bytes in two parts."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(model_configs.config("smollm2-135m")))
    parts = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    for name in parts.values():
        (folder / name).write_bytes(b"x" * 500)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 7}, "weight_map": parts})
    )
    return folder


def test_a_shipped_profile_on_a_card_that_is_not_here(console: Run) -> None:
    run = console("profiles", "fit", "qwen3-coder-30b", "--vram", "44.99")
    assert run.returncode == Exit.DONE
    assert run.stdout.startswith("qwen3-coder-30b fits: a context of 262,144 tokens takes 12.00")
    assert "49,152 bytes of cache" in run.stdout
    assert "measured                –   no earlier start" in run.stdout


def test_what_does_not_fit_says_what_would_and_exits_6(console: Run) -> None:
    run = console("profiles", "fit", "qwen3-coder-30b", "--vram", "24")
    assert run.returncode == Exit.CHECK_FAILED
    assert run.stdout.startswith("qwen3-coder-30b does not fit: ")
    assert "would fit with          max_model_len = " in run.stdout
    document = json.loads(
        console("profiles", "fit", "qwen3-coder-30b", "--vram", "24", "--json").stdout
    )
    assert document["fit"]["verdict"] == "too_large"
    assert document["fit"]["remedies"][0]["setting"] == "max_model_len"
    assert document["fit"]["room_bytes"]["estimated"] is True


def test_what_cannot_be_told_exits_5(console: Run) -> None:
    run = console("profiles", "fit", "sim-a40-qwen3-coder-30b", "--vram", "44.99")
    assert run.returncode == Exit.REFUSED
    assert "cannot be told: a simulated engine holds no model" in run.stdout


def test_a_folder_is_read_and_its_weights_are_counted(
    console: Run, folder: Path, model: Path
) -> None:
    (folder / "mine.toml").write_text(OWN.format(folder=model, context=65_536))
    run = console("profiles", "fit", "mine")
    assert run.returncode == Exit.CHECK_FAILED
    assert "cache holds             46,592 tokens" in run.stdout
    assert "max_model_len = 8192 (65536 now)" in run.stdout  # more the model was not made for
    found = folder_shape(model)
    assert isinstance(found, ModelShape)
    assert found.weights_bytes == 1000
    (model / "model-2.safetensors").unlink()
    found = folder_shape(model)
    assert isinstance(found, ModelShape)
    assert found.weights_bytes == 7  # the rest is still on the hub: what the index says


def test_all_profiles(console: Run, folder: Path) -> None:
    (folder / "broken.toml").write_text("kind = [")
    run = console("profiles", "fit", "--vram", "44.99")
    assert run.returncode == Exit.CHECK_FAILED  # one asks for two GPUs
    assert "qwen3-coder-next-80b does not fit: it asks for 2 GPUs, and 1 is here" in run.stdout
    assert "broken.toml" in run.stderr
    fits = json.loads(console("profiles", "fit", "--vram", "44.99", "--json").stdout)["fits"]
    verdicts = {answer["profile"]: answer["verdict"] for answer in fits}
    assert verdicts["qwen3-coder-30b"] == "fits"
    assert verdicts["sim-a40-kimi-linear-48b"] == "unknown"


def test_the_list_exits_like_its_worst(console: Run, folder: Path) -> None:
    shipped = {path.stem for path in Path(loader.__file__).parent.glob("*.toml")}
    for name in shipped:  # of their names, what fits on any machine and what holds no model
        text = 'kind = "sim"\nmodel = "m"\n'
        (folder / f"{name}.toml").write_text(text)
    assert console("profiles", "fit", "--vram", "44.99").returncode == Exit.DONE
    (folder / "mine.toml").write_text('kind = "vllm"\nmodel = "nobody/knows"\n')
    assert console("profiles", "fit", "--vram", "44.99").returncode == Exit.REFUSED


@pytest.mark.skipif(gpu_present(), reason="a GPU is here")
def test_without_a_gpu_none_is_counted(console: Run) -> None:
    run = console("profiles", "fit", "--json")
    fits = {answer["profile"]: answer for answer in json.loads(run.stdout)["fits"]}
    for name in ("qwen3-coder-30b", "qwen3-coder-next-80b"):
        assert fits[name]["verdict"] == "unknown"
        assert fits[name]["reason"] == "no GPU is seen here; name its memory with --vram"
    assert console("profiles", "fit", "qwen3-coder-next-80b").returncode == Exit.REFUSED
    both = console("profiles", "fit", "qwen3-coder-next-80b", "--vram", "44.99", "--gpus", "2")
    assert "and 1 is here" not in both.stdout


def test_an_earlier_start_is_told_apart(
    console: Run, paths: Paths, folder: Path, model: Path
) -> None:
    (folder / "mine.toml").write_text(OWN.format(folder=model, context=4096))
    then = Profile(
        name="mine",
        kind="vllm",
        model=str(model),
        max_model_len=4096,
        environment={"VLLM_CPU_KVCACHE_SPACE": "1"},
    )
    run = record.RunRecord(
        id="2026-11-29T13-00-00-abcd-mine",
        profile=then,
        base_url="http://localhost",
        socket_path=None,
        plugin=False,
        argv=("vllm",),
        argv_digest="0" * 12,
        started_at="2026-11-29T13:00:00.000+00:00",
    )
    place = paths.engine_runs / run.id
    place.mkdir(parents=True)
    (place / "run.json").write_text(json.dumps(encode(run)))
    (place / "output.log").write_bytes((LOGS / "startup-ngram.log").read_bytes())
    told = console("profiles", "fit", "mine")
    assert told.returncode == Exit.DONE
    assert "measured                cache 46,592 tokens, 11.38 sequences of 4,096" in told.stdout
    assert "with these settings" in told.stdout
    assert json.loads(console("profiles", "fit", "mine", "--json").stdout)["fit"]["judged_by"] == (
        "measured"
    )
    (folder / "mine.toml").write_text(OWN.format(folder=model, context=8192))
    assert "with OTHER settings" in console("profiles", "fit", "mine").stdout
    (place / "output.log").write_text("nothing of the kind\n")
    told_nothing = Missing("the output of earlier starts does not say what they took")
    assert measured(then, paths.engine_runs) == told_nothing
    assert isinstance(
        measured(Profile(name="x", kind="sim", model="y"), paths.engine_runs), Missing
    )


def test_a_shape_that_makes_no_sense_is_no_profile(console: Run, folder: Path) -> None:
    (folder / "mine.toml").write_text(
        'kind = "vllm"\nmodel = "a/b"\n[shape]\nlayers = 0\nattention_layers = 4\nkv_heads = -1\n'
    )
    run = console("profiles", "check", str(folder / "mine.toml"))
    assert run.returncode == Exit.CHECK_FAILED
    assert "mine.toml:4: shape.layers must be more than 0" in run.stderr
    assert "shape.kv_heads must not be negative" in run.stderr
