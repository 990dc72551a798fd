"""What the engine says of itself, as far as telemetry read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from a40console.model.figures import Figure, Missing, Text
from a40console.telemetry.reading import Setting
from a40console.telemetry.view import EngineView

UNKNOWN = Missing("the engine does not say")
SILENT = Missing("the engine does not answer yet")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfReport:
    """Identity and state in the engine's own words."""

    version: Text = UNKNOWN
    served_name: Text = UNKNOWN
    max_model_len: Figure = UNKNOWN
    paused: bool | Missing = UNKNOWN
    controls: Mapping[str, str] | None = None
    """Why each control that cannot be used cannot; None where it does not say."""

    settings: Mapping[str, Setting] = field(default_factory=dict)
    """What it says is in force; empty while nothing is known."""


def self_report(view: EngineView | None) -> SelfReport:
    """The report from a view; all missing without one."""
    if view is None:
        return SelfReport(version=SILENT, served_name=SILENT, max_model_len=SILENT, paused=SILENT)
    return SelfReport(
        version=view.version,
        served_name=view.served_names[0] if view.served_names else UNKNOWN,
        max_model_len=view.max_model_len,
        paused=view.paused,
        controls=view.controls,
        settings=view.settings,
    )
