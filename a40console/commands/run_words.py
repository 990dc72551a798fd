"""What an experiment takes and does, in lines for a terminal. Pure."""

from __future__ import annotations

from a40console.model.experiment import PRESETS, Experiment, Parameter, write_value
from a40console.model.figures import Figure, Missing, number
from a40console.model.run import RunPlan, RunSpec
from a40console.tui.format import dollars, duration

INTRUSIONS = {
    "nothing": "Clients of the engine notice nothing.",
    "shares": "It shares the engine with its clients: both are slower.",
    "evicts": "It throws clients' cached prefixes out: their next prompts are read whole.",
    "restarts": "It starts the engine anew: clients wait meanwhile, and the cache is lost.",
}


def plan_lines(spec: RunSpec, plan: RunPlan) -> list[str]:
    """What a run takes, what it does, and whom."""
    arms = f"{len(plan.arms)} arms" if len(plan.arms) != 1 else "1 arm"
    takes = f"{arms}, {plan.requests} requests, {_time(plan.seconds)}, {_money(plan.usd)}"
    lines = [f"{spec.experiment} ({spec.preset}): {takes}"]
    lines += [f"  {INTRUSIONS[plan.intrusion]}"] if spec.target.kind != "url" else []
    lines += [f"  {sentence}" for sentence in plan.consequences]
    return [*lines, f"  Refused: {plan.refusal}."] if plan.refusal else lines


def _time(seconds: Figure) -> str:
    value = number(seconds)
    if value is None:
        return f"time unknown ({_why(seconds)})"
    return f"≈ {duration(value)}"


def _money(usd: Figure) -> str:
    value = number(usd)
    if value is None:
        return f"cost unknown ({_why(usd)})"
    return f"≈ {dollars(value)}"


def _why(figure: Figure) -> str:
    return figure.reason if isinstance(figure, Missing) else ""


def parameter_help(offer: Experiment) -> list[str]:
    """The presets and parameters of an experiment, a line or two each."""
    lines = ["Presets:"] if offer.presets else []
    lines += [f"  {name:<9} {offer.presets[name]}" for name in PRESETS if name in offer.presets]
    lines += ["", "Parameters (--set NAME=VALUE):"] if offer.parameters else []
    for parameter in offer.parameters:
        lines += [f"  {parameter.name}: {parameter.help}", f"      {_values(parameter)}"]
    return lines


def _values(parameter: Parameter) -> str:
    """`3; quick 1, full 5; at least 1, at most 20`."""
    presets = [f"{name} {write_value(parameter.of(name))}" for name in parameter.presets]
    bounds = [f"at least {parameter.least:g}"] if parameter.least is not None else []
    bounds += [f"at most {parameter.most:g}"] if parameter.most is not None else []
    choices = [f"one of {', '.join(parameter.choices)}"] if parameter.choices else []
    unit = f" {parameter.unit}" if parameter.unit else ""
    parts = [f"{write_value(parameter.default)}{unit}", ", ".join(presets), ", ".join(bounds)]
    return "; ".join(part for part in (*parts, *choices) if part)
