"""What a change of speculation takes, in words, and what a restart took the last time."""

from __future__ import annotations

from dataclasses import replace

from a40console.model.figures import Missing
from a40console.model.turning import TurningWay, last_start_s, told, way_in_words
from tests.tui import fake_past

RESTART = TurningWay(how="restart", tokens=7, why="7 is deeper than 5", last_start_s=42.4)


def test_the_last_start_of_the_profile_counts() -> None:
    newest = replace(fake_past.starts()[0], profile="a", ready_after_s=42.4)
    failed = replace(newest, ready_after_s=Missing("it never served"))
    older = replace(newest, ready_after_s=90.0)
    other = replace(newest, profile="b", ready_after_s=1.0)
    assert last_start_s((other, failed, newest, older), "a") == 42.4
    never = last_start_s((failed,), "a")
    assert way_in_words(replace(RESTART, last_start_s=never)) == (
        "By restart (7 is deeper than 5); how long it takes is not known: "
        "no start of this profile was measured."
    )


def test_a_restart_is_said_with_its_cause_and_cost() -> None:
    assert way_in_words(RESTART) == (
        "By restart, with clients waiting (7 is deeper than 5): the last start took 42 s."
    )


def test_a_live_change_cuts_nobody() -> None:
    said = way_in_words(replace(RESTART, how="live", why=""))
    assert said == "Live, from the next pass on: no restart, and no request is cut."


def test_the_depth_and_what_is_known_against_it_are_said() -> None:
    issue = "slower from 2 sessions on"
    assert told(replace(RESTART, tokens=24, issues=(issue,)))[:2] == (
        "24 tokens are drafted for each pass then.",
        "Known issue of this profile: slower from 2 sessions on.",
    )
    off = replace(RESTART, tokens=0, issues=(issue,))
    assert told(off) == (way_in_words(off), "What still runs after the drain is cut.")
    live = replace(off, how="live")
    assert told(live) == (way_in_words(live),)
