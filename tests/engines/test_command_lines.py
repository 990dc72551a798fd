"""What each shipped profile runs, to the letter; its flags exist; what is known of it is said."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from decimal import Decimal
from pathlib import Path

import pytest

from a40console.engines import vllm_cpp
from a40console.engines.capability import obstacles
from a40console.engines.fit import fit
from a40console.engines.flags import flags_in, in_words, known_flags, read_flags, unknown_flags
from a40console.model.figures import Missing, number
from a40console.model.profile import Profile
from a40console.operations.ladder import placed
from tests.engines.command_lines import FOLDER, command_lines, shipped

DATA = Path(__file__).parents[1] / "data" / "engine_logs"
SHIPPED = shipped()
A40_BYTES = 46_068 * 2**20
SEEDED = {
    "kimi-k3-reap448",
    "kimi-linear-48b",
    "kimi-linear-48b-vllm-cpp",
    "qwen3-coder-30b",
    "qwen3-coder-next-80b",
    "qwen3-coder-reap-25b",
    "qwen3.8-27b",
}
PYTHON_VLLM = sorted(
    name for name, each in SHIPPED.items() if each.kind == "vllm" and not each.is_cpp
)
ON_ONE_A40 = ("kimi-linear-48b", "qwen3-coder-30b", "qwen3-coder-reap-25b", "qwen3.8-27b")


def argv_of(name: str) -> list[list[str]]:
    argv: list[list[str]] = command_lines(SHIPPED[name])["argv"]
    return argv


def test_every_profile_has_its_command_line_on_record() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(SHIPPED)
    assert set(SHIPPED) >= SEEDED


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_profile_runs_what_is_on_record(name: str) -> None:
    assert command_lines(SHIPPED[name]) == json.loads((FOLDER / f"{name}.json").read_text())


@pytest.mark.parametrize("release", ["0.27.1", "0.32.0"])
@pytest.mark.parametrize("name", PYTHON_VLLM)
def test_every_flag_is_one_of_vllms(name: str, release: str) -> None:
    known = frozenset((DATA / f"vllm-flags-{release}.txt").read_text().split())
    for argv in argv_of(name):
        assert unknown_flags(argv, known) == ()
        assert {word for word in argv if word.startswith("--")} <= known


def test_every_flag_is_one_of_vllm_cpps() -> None:
    (argv,) = argv_of("kimi-linear-48b-vllm-cpp")
    assert argv[0] == "vllm-server"
    assert {word for word in argv if word.startswith("--")} <= vllm_cpp.FLAGS


def test_the_ladder_of_k3_pins_nothing_while_all_of_it_is_on_the_cards() -> None:
    rungs = argv_of("kimi-k3-reap448")
    contexts = [argv[argv.index("--ctx-size") + 1] for argv in rungs]
    assert contexts == ["524288", "262144", "16384"]
    pinning = {"-ngl", "--n-gpu-layers", "--tensor-split", "-ot", "--cpu-moe", "--n-cpu-moe"}
    assert [sorted(pinning & set(argv)) for argv in rungs] == [[], [], ["--n-cpu-moe"]]
    assert all(argv[argv.index("--hf-repo") + 1].endswith(":UD-IQ1_S") for argv in rungs)


def test_what_never_served_says_so_and_shares_its_layers() -> None:
    profile = SHIPPED["qwen3-coder-next-80b"]
    assert [name for name, each in SHIPPED.items() if not each.served] == [profile.name]
    assert profile.environment["NCCL_P2P_DISABLE"] == "1"
    assert "VLLM_WORKER_MULTIPROC_METHOD" not in profile.environment
    (argv,) = argv_of(profile.name)
    assert argv[argv.index("--tensor-parallel-size") + 1] == "2"
    assert any("no request served" in issue.reason for issue in profile.known_issues)


def test_kimi_linear_cannot_be_started_with_drafts() -> None:
    profile = SHIPPED["kimi-linear-48b"]
    assert profile.speculation is not None
    assert (profile.speculation.ready, bool(profile.speculation.locked)) == (False, True)
    (argv,) = argv_of(profile.name)
    assert "--speculative-config" not in argv
    assert argv[argv.index("--tokenizer") + 1] == "patdev/kimi-linear-tokenizer-fix"
    assert {"--enable-prefix-caching", "--trust-remote-code"} <= set(argv)


@pytest.mark.parametrize("name", sorted(SEEDED))
def test_a_known_issue_is_of_a_setting_and_has_its_reason(name: str) -> None:
    issues = SHIPPED[name].known_issues
    assert issues
    settings = {each.name for each in fields(Profile)}
    assert {issue.setting for issue in issues} <= settings
    assert all(len(issue.reason) > 20 for issue in issues)


@pytest.mark.parametrize("name", ON_ONE_A40)
def test_what_was_served_by_one_a40_fits_into_one(name: str) -> None:
    profile = SHIPPED[name]
    assert profile.usd_per_hour == Decimal("0.44")
    found = fit(profile, profile.shape or Missing("none"), A40_BYTES)
    assert (found.verdict, found.judged_by) == ("fits", "predicted")
    tokens = number(found.capacity_tokens)
    assert tokens is not None
    assert tokens >= (profile.max_model_len or 0)


def test_kimi_linears_cache_is_the_measured_one_within_two_per_cent() -> None:
    profile = SHIPPED["kimi-linear-48b"]
    found = fit(profile, profile.shape or Missing("none"), A40_BYTES)
    assert number(found.capacity_tokens) == pytest.approx(1_505_550, rel=0.02)


def test_k3_takes_five_cards_and_the_80b_two() -> None:
    k3, large = SHIPPED["kimi-k3-reap448"], SHIPPED["qwen3-coder-next-80b"]
    assert k3.shape is not None
    assert large.shape is not None
    for rung in (0, 1):
        held = placed(k3, rung)
        assert fit(held, k3.shape, A40_BYTES, devices=5).verdict == "fits"
        assert fit(held, k3.shape, A40_BYTES, devices=3).verdict == "too_large"
    assert fit(large, large.shape, A40_BYTES, devices=2).verdict == "fits"
    alone = fit(large, large.shape, A40_BYTES)
    assert (alone.verdict, alone.reason) == ("too_large", "it asks for 2 GPUs, and 1 is here")


def test_vllm_cpp_holds_its_weights_in_full_and_fits_no_a40() -> None:
    profile = SHIPPED["kimi-linear-48b-vllm-cpp"]
    found = fit(profile, profile.shape or Missing("none"), A40_BYTES)
    assert found.verdict == "too_large"
    assert "weights of 91.08 GiB" in found.reason


def test_all_that_is_missing_is_told_not_only_the_first() -> None:
    found = list(
        obstacles(SHIPPED["kimi-linear-48b"], {"PATH": "/nonexistent"}, has_gpu=lambda: False)
    )
    program, gpu = found
    assert program.startswith("vllm is not on the PATH: a40console engine install --gpu")
    assert gpu == "no GPU is visible here: take a profile for the CPU"


HELP = """\
usage: vllm serve [model_tag] [options]

options:
  --headless            Run in headless mode. See --data-parallel-size-gone.
  --max-num-seqs MAX_NUM_SEQS
                        Sequences; formerly one more counted:
                        --swap-space, and no other.
  --enable-prefix-caching, --no-enable-prefix-caching
                        Whether to.
  --tensor-parallel-size, -tp N
                        Groups.
"""


def test_a_help_lists_flags_at_the_beginning_of_its_lines() -> None:
    assert flags_in(HELP) == {
        "--headless",
        "--max-num-seqs",
        "--enable-prefix-caching",
        "--no-enable-prefix-caching",
        "--tensor-parallel-size",
    }


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("--max-num-seqs", ()),
        ("--max_num_seqs=4", ()),
        ("--max-num", ()),
        ("--max-num-seqs.key", ()),
        ("-tp", ()),
        ("--swap-space", ("--swap-space",)),
        ("--max-num-seqz=4", ("--max-num-seqz=4",)),
    ],
)
def test_a_flag_is_known_in_every_way_that_vllm_takes(word: str, told: tuple[str, ...]) -> None:
    assert unknown_flags(["vllm", "serve", "x", word], flags_in(HELP)) == told


def test_what_is_not_known_is_told_with_the_nearest() -> None:
    known = flags_in(HELP)
    told = in_words(("--max-num-seqz=4", "--nothing-like-it"), known, "vllm 0.32.0")
    assert told == (
        "vllm 0.32.0 does not know --max-num-seqz (nearest: --max-num-seqs), --nothing-like-it"
    )


def test_an_engine_is_asked_once(tmp_path: Path) -> None:
    program, asked = tmp_path / "bin" / "vllm", tmp_path / "asked"
    program.parent.mkdir()
    options = "\n".join(f"  --flag-{number} N" for number in range(60))
    program.write_text(f"#!/bin/sh\necho $* >> {asked}\ncat <<'END'\n{options}\nEND\n")
    program.chmod(0o755)
    folder = tmp_path / "flags"
    assert isinstance(known_flags(program, folder), Missing)
    first = read_flags(program, folder, os.environ)
    assert not isinstance(first, Missing)
    assert len(first) == 60
    assert read_flags(program, folder, os.environ) == first == known_flags(program, folder)
    assert asked.read_text() == "serve --help=all\n"


def test_an_engine_that_gives_no_help_is_no_reason_to_refuse(tmp_path: Path) -> None:
    program = tmp_path / "vllm"
    program.write_text("#!/bin/sh\necho 'no module named torch' >&2\nexit 1\n")
    program.chmod(0o755)
    found = read_flags(program, tmp_path / "flags", os.environ)
    assert isinstance(found, Missing)
    assert found.reason.endswith("ended with 1: no module named torch")


@pytest.mark.engine
@pytest.mark.vllm
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_flag_is_one_of_the_installed_vllms(tmp_path: Path) -> None:
    engines = os.environ.get("A40CONSOLE_TEST_ENGINES")
    if engines is None:
        pytest.skip("A40CONSOLE_TEST_ENGINES names no folder that .ci/engines.sh prepared")
    program = Path(engines) / "vllm-0.32.0" / "venv" / "bin" / "vllm"
    known = read_flags(program, tmp_path, os.environ, timeout_s=500)
    assert not isinstance(known, Missing), known
    assert known >= set((DATA / "vllm-flags-0.32.0.txt").read_text().split()) - {"--help"}
    for name in PYTHON_VLLM:
        for argv in argv_of(name):
            assert unknown_flags(argv, known) == (), name
