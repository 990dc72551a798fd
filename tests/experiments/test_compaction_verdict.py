"""What is concluded of arms whose seconds are known: a winner beyond noise, a tie, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from a40console.experiments.compaction_offer import Arm
from a40console.experiments.compaction_score import ArmScore
from a40console.experiments.compaction_tables import plots, tables
from a40console.experiments.compaction_verdict import verdict
from a40console.experiments.planted import planted
from a40console.experiments.session_log import Recall, SessionLog, TurnLog
from a40console.experiments.shrinking import Way
from a40console.model.figures import Missing, number
from a40console.model.run_result import Interval, Verdict

TURNS = 4
FACTS = planted(TURNS, 4, 1)


def turn_of(at: int, seconds: float, *, cached: int = 900, shrank: bool = False) -> TurnLog:
    return TurnLog(
        turn=at,
        seconds=seconds,
        ttft_s=0.1,
        prompt_tokens=1_000,
        cached_tokens=cached,
        generated_tokens=50,
        new_tokens=90,
        own_tokens=90,
        asked_tokens=50,
        shrank=shrank,
    )


def log_of(repeat: int, wall_s: float, *, kept: int = 2, known: int = 2) -> SessionLog:
    log = SessionLog(label="", setting="as-is", repeat=repeat, turns_asked=TURNS)
    log.turns = [turn_of(at, wall_s / TURNS) for at in range(1, TURNS + 1)]
    log.recalls = [Recall(fact, at < kept, True, at < known) for at, fact in enumerate(FACTS)]
    return log


def score_of(way: Way, walls_s: Sequence[float], *, kept: int = 2, known: int = 2) -> ArmScore:
    limit = 0 if way == "none" else 48_000
    label = way if way == "none" else f"{way}-48k"
    logs = [log_of(at, wall_s, kept=kept, known=known) for at, wall_s in enumerate(walls_s)]
    return ArmScore(label, Arm(label, way, limit), "as-is", logs)


def concluded(*scores: ArmScore, window_tokens: int | Missing = 262_144) -> Verdict:
    return verdict(scores, turns=TURNS, seed=1, window_tokens=window_tokens, scaled=False)


BLOCK = (100.0, 101.0, 99.5)
PER_TURN = (154.0, 155.0, 153.8)
AUTO = (100.4, 100.6, 99.8)


def test_the_winner_is_told_with_the_next_ones_interval() -> None:
    found = concluded(score_of("per-turn", PER_TURN), score_of("block", BLOCK))
    assert (found.kind, found.winner) == ("difference", "block-48k")
    assert isinstance(found.ratio, Interval)
    assert found.ratio.value == pytest.approx(1.54, abs=0.01)
    assert found.ratio.low > 1.5
    assert "per-turn-48k 1.54 ×" in found.text


def test_a_tie_has_no_winner_but_still_says_what_is_slower() -> None:
    found = concluded(
        score_of("block", BLOCK), score_of("cc-auto", AUTO), score_of("per-turn", PER_TURN)
    )
    assert (found.kind, found.winner) == ("no difference", "")
    assert "No difference beyond noise between block-48k and cc-auto-48k" in found.text
    assert "per-turn-48k 1.54 ×" in found.text


def test_a_noisy_third_forbids_a_winner_though_the_second_is_beyond_noise() -> None:
    found = concluded(
        score_of("block", BLOCK),
        score_of("cc-auto", (110.0, 111.0, 109.6)),
        score_of("per-turn", (90.0, 170.0, 120.0)),
    )
    assert (found.kind, found.winner) == ("no difference", "")
    assert "No difference beyond noise between block-48k and per-turn-48k" in found.text
    assert "Beyond noise slower, times as long: cc-auto-48k 1.10 ×" in found.text
    assert isinstance(found.ratio, Interval)
    assert found.ratio.low < 1 < found.ratio.high, "the ratio is of the two that are told alike"


def test_a_way_with_one_session_is_not_compared_and_not_called_alike() -> None:
    slow_once = score_of("per-turn", PER_TURN[:1])
    found = concluded(score_of("block", BLOCK), score_of("cc-auto", (120, 121, 119)), slow_once)
    assert (found.kind, found.winner, found.paste) == ("none", "", "")
    assert "per-turn-48k cannot be compared: one repeat" in found.text
    assert "cc-auto-48k 1.20 ×" in found.text
    tied = concluded(score_of("block", BLOCK), score_of("cc-auto", AUTO), slow_once)
    assert tied.kind == "no difference"
    assert "between block-48k and cc-auto-48k (" in tied.text
    assert "Not to be compared: per-turn-48k (one repeat" in tied.text


def test_one_that_lost_every_common_repeat_is_no_winner() -> None:
    found = concluded(
        score_of("block", (105.0, 105.2)), score_of("per-turn", (100.0, 100.1, 130.0))
    )
    assert (found.kind, found.winner) == ("none", "")
    assert "it was the faster one" in found.text


def test_most_facts_kept_is_a_share_and_nothing_more_is_concluded() -> None:
    more_sessions = score_of("per-turn", (*PER_TURN, 154.2), kept=2)
    found = concluded(score_of("block", BLOCK, kept=2), more_sessions)
    assert "block-48k keeps 6 of 12 planted facts" in found.text
    assert "per-turn-48k keeps" not in found.text, "8 of 16 are no greater share"
    assert "no arm keeps" not in found.text
    fewer = concluded(score_of("block", BLOCK, kept=2), score_of("per-turn", PER_TURN[:2], kept=3))
    assert "per-turn-48k keeps 6 of 8" in fewer.text, "as many facts, and a greater share"


def test_the_bounds_of_the_wall_hold_it() -> None:
    noisy = score_of("block", (1.0, 40.0, 90.0))
    (score, *_), bounds = (
        tables([noisy], turns=TURNS, usd_per_h=0.44, notes=()),
        noisy.wall_interval,
    )
    assert isinstance(bounds, Interval)
    assert score.rows[0][1] == pytest.approx(bounds.value)
    assert score.rows[0][2:4] == (bounds.low, bounds.high)
    assert 0 < bounds.low < bounds.value < bounds.high


def test_a_turns_plot_draws_no_spread_as_if_it_were_bounds() -> None:
    for plot in plots([score_of("block", (100.0, 140.0, 90.0))]):
        points = plot.series[0].points
        assert len(points) == TURNS
        assert all(point.low is None and point.high is None for point in points)


def test_none_is_a_ceiling_and_never_the_winner() -> None:
    found = concluded(
        score_of("none", (80.0, 80.5, 79.8), kept=4, known=4),
        score_of("block", BLOCK),
        score_of("per-turn", PER_TURN),
    )
    assert found.winner == "block-48k"
    assert "Without any shrinking it takes 0.80 ×" in found.text
    assert "block-48k keeps 6 of 12 planted facts" in found.text
    assert "none keeps 12 of 12" in found.text


def test_the_winners_recall_is_told_beside_its_speed() -> None:
    found = concluded(
        score_of("block", BLOCK, kept=1, known=1), score_of("per-turn", PER_TURN, kept=3, known=3)
    )
    assert "keeps 3 of 12 planted facts in the context and answers 3 of 12" in found.text
    assert "per-turn-48k keeps 9 of 12" in found.text


def test_a_session_that_is_not_whole_is_in_no_pair() -> None:
    broken = score_of("block", (100.0, 30.0, 99.0))
    broken.logs[1].overflow = "turn 2 overflows the window"
    found = concluded(broken, score_of("per-turn", PER_TURN))
    assert isinstance(found.ratio, Interval)
    assert found.ratio.repeats == 2
    assert number(broken.wall_s) == pytest.approx(99.5, abs=0.1)


def test_the_line_is_for_the_clients_own_way_even_where_another_wins() -> None:
    found = concluded(score_of("block", BLOCK), score_of("cc-auto", PER_TURN))
    assert found.winner == "block-48k"
    assert found.paste == (
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS=69192 CLAUDE_CODE_MAX_OUTPUT_TOKENS=8192"
    )
    assert "The line has Claude Code do as cc-auto-48k" in found.text
    assert "an agent of one's own" in found.text


def test_without_a_verdict_there_is_no_line_to_paste() -> None:
    found = concluded(score_of("block", BLOCK[:1]), score_of("cc-auto", PER_TURN[:1]))
    assert (found.kind, found.paste) == ("none", "")


def test_a_shrink_has_recovered_when_the_cache_serves_the_prompt_again() -> None:
    log = log_of(0, 4.0)
    log.turns = [
        turn_of(1, 1.0),
        turn_of(2, 1.0, cached=200, shrank=True),
        turn_of(3, 1.0, cached=400),
        turn_of(4, 1.0),
    ]
    assert log.turns_to_recover == 2
    assert log.reread_tokens == 710 + 510


def test_one_that_shrinks_at_every_turn_never_recovers() -> None:
    log = log_of(0, 4.0)
    log.turns = [turn_of(at, 1.0, cached=200, shrank=True) for at in range(1, 5)]
    told = log.turns_to_recover
    assert isinstance(told, Missing)
    assert "never" in told.reason
