"""What was asked and is not in force, told with each start."""

from __future__ import annotations

from dataclasses import replace

from a40console.engines.effective import with_cache_config
from a40console.model.figures import Missing
from a40console.model.profile import Placement, Profile
from a40console.model.snapshot import Difference
from a40console.operations.asked import evidence_of, not_in_force
from a40console.operations.ladder import placed
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus


def test_each_difference_is_evidence_of_the_start() -> None:
    lowered = Difference(
        setting="max_num_batched_tokens", asked=16384, effective=2048, evidence="the log"
    )
    off = Difference(setting="async_scheduling", asked=None, effective=False, evidence="the log")
    unknown = Difference(
        setting="threads", asked=4, effective=Missing("it is not said"), evidence=""
    )
    assert evidence_of(EngineStatus(differences=(lowered, off, unknown))) == {
        "not in force: max_num_batched_tokens": "asked 16384, runs 2048",
        "not in force: async_scheduling": "nothing was asked, runs False",
        "not in force: threads": "asked 4, runs not known (it is not said)",
    }
    assert evidence_of(EngineStatus()) == {}


TALL = Profile(
    name="tall",
    kind="vllm",
    model="m",
    max_model_len=600_000,
    placements=(
        Placement(max_model_len=65_536, max_running=4, kv_cache_dtype="fp8"),
        Placement(arguments=("--hf-token", "hf_secret", "--b")),
    ),
)
CONFIG = "Initializing a V1 LLM engine (v0.33.0) with config: max_seq_len={}, kv_cache_dtype=fp8"


def started(profile: Profile, rung: int) -> RunRecord:
    return RunRecord(
        id="a-start",
        profile=placed(profile, rung),
        base_url="http://localhost",
        socket_path=None,
        plugin=False,
        argv=("vllm",),
        argv_digest="0" * 12,
        started_at="2026-11-30T12:00:00.000+00:00",
        asked=profile if rung else None,
        rung=rung,
    )


def test_what_a_placement_gives_up_is_not_in_force_for_as_long_as_it_serves() -> None:
    run = started(TALL, 1)
    found = not_in_force(run, [CONFIG.format(65536)])
    assert not isinstance(found, Missing)
    window, rows, cache = found
    assert (window.setting, window.asked, window.effective) == ("max_model_len", 600_000, 65_536)
    assert window.evidence == ("placement 1 of 2 serves; engine config: max_seq_len=65536")
    assert (rows.setting, rows.asked, rows.effective) == ("max_num_seqs", "the default", 4)
    assert (cache.setting, cache.asked, cache.effective) == (
        "kv_cache_dtype",
        "the default",
        "fp8",
    )
    assert cache.evidence == "placement 1 of 2 serves"
    said = {"cache_dtype": "fp8_e4m3"}
    assert with_cache_config(found, run.profile, said) == found


def test_a_placement_is_told_where_the_log_says_nothing_and_its_secrets_are_covered() -> None:
    (words,) = _listed(not_in_force(started(TALL, 2), []))
    assert (words.setting, words.asked) == ("arguments", "the default")
    assert words.effective == "--hf-token \u2022\u2022\u2022\u2022 --b"


def test_without_a_placement_the_log_alone_tells() -> None:
    assert not_in_force(started(TALL, 0), [CONFIG.format(600_000)]) == ()
    assert isinstance(not_in_force(started(TALL, 0), []), Missing)
    alike = replace(TALL, placements=(Placement(max_model_len=600_000),))
    assert not_in_force(started(alike, 1), [CONFIG.format(600_000)]) == ()


def _listed(found: tuple[Difference, ...] | Missing) -> tuple[Difference, ...]:
    assert not isinstance(found, Missing)
    return found
