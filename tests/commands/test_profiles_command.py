"""`profiles`: what can run here, how it would run, and what is wrong with a file; no service."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from a40console.commands.toml_place import line_of
from a40console.engines.command import plan
from a40console.errors import Exit
from a40console.model.profile import Profile
from a40console.paths import Paths
from tests.commands.console_process import Run
from tests.engines.command_lines import SITE

OWN = """\
title = "Mine"
kind = "llamacpp"
executable = "/no/such/llama-server"
model = "/models/my model.gguf"
max_model_len = 4096
arguments = ["--flash-attn", "on"]

[environment]
HF_TOKEN = "hf_very_secret"
OMP_NUM_THREADS = "4"

[[known_issues]]
setting = "flash-attn"
reason = "slow on this card"
"""


@pytest.fixture
def folder(paths: Paths) -> Path:
    paths.profiles.mkdir(parents=True)
    return paths.profiles


def test_list(console: Run, folder: Path) -> None:
    (folder / "mine.toml").write_text(OWN)
    (folder / "broken.toml").write_text("kind = [")
    run = console("profiles", "list")
    assert run.returncode == 0
    assert "mine" in run.stdout
    assert "mine does not run here: /no/such/llama-server is not there" in run.stdout
    assert "smollm2-135m" in run.stdout
    assert "broken.toml" in run.stderr
    document = json.loads(console("profiles", "list", "--json").stdout)
    entries = {entry["name"]: entry for entry in document["profiles"]}
    assert entries["mine"]["origin"] == str(folder / "mine.toml")
    assert entries["mine"]["ready"] is False
    assert entries["smollm2-135m"]["origin"] == "shipped"
    assert entries["smollm2-135m"]["speculation"] == "ngram 6, off"
    assert [failure["file"] for failure in document["failures"]] == [str(folder / "broken.toml")]


def test_show_is_settings_issues_and_a_command_line_to_paste(console: Run, folder: Path) -> None:
    (folder / "mine.toml").write_text(OWN)
    run = console("profiles", "show", "mine")
    assert run.returncode == 0
    assert "max_model_len           4096" in run.stdout
    assert "known issue             flash-attn: slow on this card" in run.stdout
    argv = shlex.split(run.stdout.splitlines()[-1])
    assert argv[0] == "/no/such/llama-server"
    assert argv[argv.index("--model") + 1] == "/models/my model.gguf"
    assert argv[-2:] == ["--flash-attn", "on"]
    document = json.loads(console("profiles", "show", "mine", "--json").stdout)
    assert document["argv"] == argv
    assert shlex.split(document["shell"]) == argv
    assert document["profile"]["known_issues"][0]["setting"] == "flash-attn"


def test_secrets_are_shown_nowhere(console: Run, folder: Path) -> None:
    (folder / "mine.toml").write_text(OWN)
    for arguments in (("show", "mine"), ("show", "mine", "--json"), ("list", "--json")):
        run = console("profiles", *arguments)
        assert "hf_very_secret" not in run.stdout + run.stderr
    assert "OMP_NUM_THREADS=4" in console("profiles", "show", "mine").stdout


def test_an_unknown_name_is_a_usage_error_with_the_nearest(console: Run) -> None:
    run = console("profiles", "show", "smollm2")
    assert run.returncode == Exit.USAGE
    assert "smollm2-135m" in run.stderr
    error = json.loads(console("profiles", "show", "smollm2", "--json").stdout)["error"]
    assert "smollm2-135m" in error["remedy"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('kind = "vllm"\nmodel = "m"\nmax_runing = 3\n', "FILE:3: max_runing is not a setting"),
        ('kind = "vllm"\nmodel = "m"\nmax_running = 0\n', "FILE:3: max_running must be more"),
        ('kind = "vllm"\nmodel = "m"\n\n[speculation]\ntoken = 3\n', "FILE:5: speculation.token"),
        ('kind = "tgi"\nmodel = "m"\n', "FILE:1: kind: "),
        ('kind = "vllm"\n', "FILE: model is missing"),
        ('kind = "vllm"\nmodel = \n', "at line 2"),
        (
            'kind = "vllm"\nmodel = "m"\narguments = ["--api-key", "k"]\n',
            "arguments hold --api-key",
        ),
    ],
)
def test_check_names_file_line_and_key(text: str, told: str, console: Run, folder: Path) -> None:
    file = folder / "mine.toml"
    file.write_text(text)
    for arguments in ((str(file),), ()):
        run = console("profiles", "check", *arguments)
        assert run.returncode == Exit.CHECK_FAILED
        assert told.replace("FILE", str(file)) in run.stderr
        assert str(file) in run.stderr
        assert "Traceback" not in run.stderr
    error = json.loads(console("profiles", "check", "--json").stdout)["error"]
    assert error["exit_code"] == 6
    assert told.replace("FILE", str(file)) in error["evidence"]


def test_check_of_what_is_right(console: Run, folder: Path) -> None:
    file = folder / "mine.toml"
    file.write_text(OWN)
    run = console("profiles", "check", str(file))
    assert run.returncode == 0
    assert run.stdout == (
        "Nothing is wrong with mine\n"
        "mine does not run here: /no/such/llama-server is not there: install it, or set executable "
        "in the profile; its model /models/my model.gguf is not here\n"
    )
    document = json.loads(console("profiles", "check", "--json").stdout)
    assert {"mine", "smollm2-135m"} <= set(document["checked"])


def test_check_says_of_each_profile_whether_it_runs_here(console: Run) -> None:
    lines = console("profiles", "check").stdout.splitlines()
    document = json.loads(console("profiles", "check", "--json").stdout)
    here = {entry["name"]: entry for entry in document["here"]}
    assert [line.split()[0] for line in lines[1:]] == list(here) == document["checked"]
    assert here["sim-a40-qwen3-coder-30b"]["ready"] is True
    assert "sim-a40-qwen3-coder-30b runs here" in lines
    k3 = here["kimi-k3-reap448"]
    assert k3["ready"] is False
    assert k3["why_not"][0].startswith("llama-server is not on the PATH: ")
    (note,) = k3["notes"]
    assert note.startswith("llama-server fetches mmnga-o/Kimi-K3-REAP50-Width50-UD-gguf:UD-IQ1_S (")
    never = here["qwen3-coder-next-80b"]
    assert "nobody has seen it serve yet" in never["notes"]
    assert never["why_not"]


def test_check_names_flags_that_the_installed_engine_does_not_take(
    console: Run, folder: Path, tmp_path: Path
) -> None:
    engine = tmp_path / "bin" / "vllm"
    engine.parent.mkdir()
    taken = plan(Profile(name="mine", kind="vllm", model="m"), SITE).argv
    names = [word for word in taken if word.startswith("--")] + [f"--f{n}" for n in range(60)]
    options = "\n".join(f"  {name} VALUE" for name in names)
    engine.write_text(f"#!/bin/sh\ncat <<'END'\n{options}\nEND\n")
    engine.chmod(0o755)
    text = f'kind = "vllm"\nmodel = "m"\nexecutable = "{engine}"\n'
    mine = folder / "mine.toml"
    mine.write_text(text + 'arguments = ["--f7x", "--f8", "1"]\n')
    assert "does not know" not in console("profiles", "check", str(mine)).stdout
    told = console("profiles", "check", str(mine), "--flags").stdout
    assert "does not know --f7x (nearest: --f7)" in told
    engine.write_text("#!/bin/sh\nexit 1\n")  # what it said is remembered
    assert "does not know --f7x" in console("profiles", "check", str(mine)).stdout
    mine.write_text(text)
    assert "does not know" not in console("profiles", "check", str(mine)).stdout


def test_check_of_what_is_no_text(console: Run, folder: Path) -> None:
    (folder / "mine.toml").write_bytes(b"\xff\xfe")
    assert console("profiles", "check").returncode == Exit.CHECK_FAILED
    assert console("profiles", "check", str(folder / "mine.toml")).returncode == Exit.CHECK_FAILED
    assert console("profiles", "check", str(folder / "none.toml")).returncode == Exit.USAGE
    assert console("profiles", "check", str(folder)).returncode == Exit.CHECK_FAILED


TOML = """\
name = "x"
"quoted" = 1
[a]
name = 2
[[b]]
[[ b ]]
name = 3
[c] # d = 4
c.x = 1
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("name", 1),
        ("quoted", 2),
        ("a", 3),
        ("a.name", 4),
        ("a.gone", 3),
        ("b.0.name", 5),
        ("b.1.name", 7),
        ("b.2.name", None),
        ("c.c", 9),
        ("d", None),
    ],
)
def test_the_line_of_a_key(key: str, line: int | None) -> None:
    assert line_of(TOML, key) == line


def test_check_takes_a_name_as_well_as_a_file(console: Run, folder: Path) -> None:
    (folder / "mine.toml").write_text(OWN)
    (folder / "broken.toml").write_text('kind = "vllm"\nmodle = "m"\n')
    by_name = console("profiles", "check", "mine")
    assert by_name.stdout == console("profiles", "check", str(folder / "mine.toml")).stdout
    assert by_name.stdout.startswith("Nothing is wrong with mine\n")
    assert console("profiles", "check", "smollm2-135m").returncode == Exit.DONE
    broken = console("profiles", "check", "broken")
    assert broken.returncode == Exit.CHECK_FAILED
    assert "broken.toml:2: modle is not a setting" in broken.stderr
    nobody = console("profiles", "check", "smolm2-135m")
    assert nobody.returncode == Exit.USAGE
    assert "Nearest: smollm2-135m" in nobody.stderr


def test_what_is_broken_is_not_called_missing_nor_told_of_another(
    console: Run, folder: Path
) -> None:
    (folder / "broken.toml").write_text("kind = [")
    for verb in ("show", "fit"):
        run = console("profiles", verb, "broken")
        assert run.returncode == Exit.USAGE
        assert "the profile 'broken' cannot be read" in run.stderr
        assert f"{folder / 'broken.toml'}: not valid TOML" in run.stderr
        assert "there is no profile" not in run.stderr
        misspelt = console("profiles", verb, "smolm2-135m")
        assert "there is no profile 'smolm2-135m'" in misspelt.stderr
        assert "broken.toml" not in misspelt.stderr
