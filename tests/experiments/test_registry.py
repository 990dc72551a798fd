"""Every experiment that is offered can be planned as offered."""

from __future__ import annotations

import pytest

from a40console.experiments.bench import Known
from a40console.experiments.registry import designs
from a40console.model.codec import decode, encode
from a40console.model.experiment import PRESETS, Experiment, read_value, settle, write_value
from a40console.model.figures import Missing, number
from a40console.model.run import RunTarget

NAMES = ("compaction", "sweep", "regimes", "lossless", "protocol", "canary")
UNKNOWN = Missing("nothing is known")


def known(*, told: bool) -> Known:
    return Known(
        generation_tokens_per_s=77.6 if told else UNKNOWN,
        prefill_tokens_per_s=4000.0 if told else UNKNOWN,
        window_tokens=262_144 if told else UNKNOWN,
        usd_per_h=0.44 if told else UNKNOWN,
        speculation_depth=5 if told else UNKNOWN,
        can_reset_cache=told,
        live_speculation=told,
    )


def test_all_six_are_offered() -> None:
    assert tuple(designs()) == NAMES
    assert designs()["sweep"] is not designs()["sweep"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_can_be_planned(name: str, preset: str) -> None:
    design = designs()[name]
    plan = design.plan(settle(design.offer, preset, {}), known(told=True), RunTarget())

    assert plan.arms
    assert plan.requests > 0
    assert not plan.refusal
    assert number(plan.seconds)
    assert number(plan.usd)
    assert all(plan.consequences)
    blind = design.plan(settle(design.offer, preset, {}), known(told=False), RunTarget())
    assert isinstance(blind.seconds, Missing)
    assert isinstance(blind.usd, Missing)


@pytest.mark.parametrize("name", NAMES)
def test_an_offer_can_be_sent_and_its_values_written_and_read(name: str) -> None:
    offer = designs()[name].offer
    assert decode(Experiment, encode(offer)) == offer
    assert set(offer.presets) == set(PRESETS)
    for parameter in offer.parameters:
        for preset in PRESETS:
            value = parameter.of(preset)
            assert read_value(parameter, write_value(value)) == value
