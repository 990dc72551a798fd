"""What is set of a run before it starts: rows, a cursor, and the values so far. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

from a40console.model.experiment import (
    PRESETS,
    Experiment,
    Parameter,
    ParameterError,
    read_value,
    write_value,
)
from a40console.model.run import RunSpec, RunTarget

RowKind = Literal["cycle", "several", "text"]
_GENERAL = (
    "target",
    "url",
    "model",
    "dialect",
    "key",
    "when",
    "disturb",
    "seed",
    "max_usd",
    "max_minutes",
    "note",
)
_URL_ONLY = ("url", "model", "dialect", "key")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "preset": PRESETS,
    "target": ("engine", "gateway", "url"),
    "dialect": ("openai", "anthropic"),
    "when": ("now", "idle"),
    "disturb": ("no", "yes"),
}
_HELP: dict[str, str] = {
    "target": "Where the requests go: our engine, our gateway, or any address.",
    "url": "The address, with http:// or https://.",
    "model": "What requests ask for; empty: what is served there.",
    "dialect": "What the address speaks.",
    "key": "What the address asks for; it is shown to nobody and written nowhere.",
    "when": "idle: it waits until no client of the engine is active.",
    "disturb": "yes: it may throw out what clients have cached, or restart the engine.",
    "seed": "The same seed makes the same prompts.",
    "max_usd": "It ends at so many dollars; what was measured stays.",
    "max_minutes": "It ends after so many minutes; what was measured stays.",
    "note": "A line that is kept with it.",
}
_COVER = "••••••••"
_NAMES = {"max_usd": "at most $", "max_minutes": "at most min", "disturb": "may disturb"}
_DEFAULTS: dict[str, str] = {
    "preset": "standard",
    "target": "engine",
    "dialect": "openai",
    "when": "now",
    "disturb": "no",
    "seed": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRow:
    """One thing that may be set."""

    key: str
    name: str
    kind: RowKind
    value: str
    options: tuple[str, ...] = ()
    help: str = ""
    unit: str = ""
    changed: bool = False
    """Whether it differs from what it is without the operator."""

    problem: str = ""
    """Why it cannot be so."""

    secret: bool = False
    """Whether its value is covered, also while it is typed."""


class RunForm:
    """The values of one experiment; what is wrong is said in its row."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self._texts = dict(_DEFAULTS)
        self._parameters: dict[str, str] = {}
        self.cursor = 0
        self.option = 0
        """Of a row with several choices, the one that is turned on or off."""

    @property
    def preset(self) -> str:
        """The preset that values come from."""
        return self._texts["preset"]

    def rows(self) -> list[FormRow]:
        """The preset, the experiment's parameters, then where and how it runs."""
        shown = [key for key in _GENERAL if key not in _URL_ONLY or self._texts["target"] == "url"]
        return [
            self._general("preset"),
            *(self._parameter(parameter) for parameter in self.experiment.parameters),
            *(self._general(key) for key in shown),
        ]

    @property
    def row(self) -> FormRow:
        """The row under the cursor."""
        rows = self.rows()
        return rows[min(self.cursor, len(rows) - 1)]

    def move(self, rows: int) -> None:
        """Move the cursor."""
        self.cursor = max(0, min(self.cursor + rows, len(self.rows()) - 1))
        self.option = 0

    def turn(self, steps: int) -> None:
        """The next option of a row that has some; of several, the next to be turned on or off."""
        row = self.row
        if not row.options:
            return
        if row.kind == "several":
            self.option = (self.option + steps) % len(row.options)
            return
        at = row.options.index(row.value) if row.value in row.options else 0
        self.put(row.key, row.options[(at + steps) % len(row.options)])

    def toggle(self) -> None:
        """Turn the choice on or off that is pointed at; of a row with options, the next one."""
        row = self.row
        if row.kind != "several":
            self.turn(1)
            return
        on = set(row.value.split(","))
        on ^= {row.options[self.option]}
        self.put(row.key, ",".join(option for option in row.options if option in on))

    def put(self, key: str, text: str) -> None:
        """Set a row; a parameter that is as in the preset is no longer one of the operator's."""
        text = text.strip()
        parameter = self._known(key)
        if parameter is None:
            if text in _OPTIONS.get(key, (text,)):
                self._texts[key] = text
        elif text in _means_nothing(parameter, self.preset):
            self._parameters.pop(key, None)
        else:
            self._parameters[key] = text

    def problem(self) -> str:
        """The first thing that is wrong; empty where nothing is."""
        row = next((row for row in self.rows() if row.problem), None)
        if row is None or row.problem.startswith(row.name):
            return row.problem if row else ""
        return f"{row.name}: {row.problem}"

    @property
    def key(self) -> str:
        """What an address asks for; empty where it asks for nothing."""
        return self._texts.get("key", "") if self._texts["target"] == "url" else ""

    def spec(self) -> RunSpec:
        """What is asked for; only where there is no problem."""
        texts = self._texts
        at_url = texts["target"] == "url"
        return RunSpec(
            experiment=self.experiment.name,
            preset=self.preset,
            parameters=dict(self._parameters),
            target=RunTarget(
                kind=texts["target"],  # type: ignore[arg-type]  # one of its options
                url=texts.get("url", "") if at_url else "",
                model=texts.get("model", "") if at_url else "",
                dialect=texts["dialect"] if at_url else "openai",  # type: ignore[arg-type]
            ),
            seed=int(texts["seed"]),
            max_usd=Decimal(texts["max_usd"]) if texts.get("max_usd") else None,
            max_minutes=float(texts["max_minutes"]) if texts.get("max_minutes") else None,
            when=texts["when"],  # type: ignore[arg-type]
            accept_intrusion=texts["disturb"] == "yes",
            note=texts.get("note", ""),
        )

    def _known(self, key: str) -> Parameter | None:
        return next((each for each in self.experiment.parameters if each.name == key), None)

    def _parameter(self, parameter: Parameter) -> FormRow:
        own = self._parameters.get(parameter.name)
        value = write_value(parameter.of(self.preset)) if own is None else own
        options = ("yes", "no") if parameter.kind == "yes" else parameter.choices
        kind: RowKind = "cycle" if options else "text"
        return FormRow(
            key=parameter.name,
            name=parameter.name,
            kind="several" if parameter.kind == "choices" else kind,
            value=value,
            options=options,
            help=_bounded(parameter),
            unit=parameter.unit,
            changed=own is not None,
            problem=_wrong(parameter, value),
        )

    def _general(self, key: str) -> FormRow:
        value = self._texts.get(key, "")
        shown = _COVER if key == "key" and value else value
        return FormRow(
            key=key,
            name=_NAMES.get(key, key),
            kind="cycle" if key in _OPTIONS else "text",
            value=shown,
            secret=key == "key",
            options=_OPTIONS.get(key, ()),
            help=self.experiment.presets.get(value, "") if key == "preset" else _HELP[key],
            changed=value != _DEFAULTS.get(key, ""),
            problem=_general_problem(key, value),
        )


def _means_nothing(parameter: Parameter, preset: str) -> tuple[str, ...]:
    """What leaves a parameter as the preset has it."""
    own = write_value(parameter.of(preset))
    return (own,) if parameter.kind in {"text", "choices"} else (own, "")


def _bounded(parameter: Parameter) -> str:
    """What it is, and what it may be."""
    bounds = [f"at least {parameter.least:g}"] if parameter.least is not None else []
    bounds += [f"at most {parameter.most:g}"] if parameter.most is not None else []
    said = parameter.help.rstrip(".")
    return f"{said}: {', '.join(bounds)}." if bounds else f"{said}."


def _wrong(parameter: Parameter, text: str) -> str:
    try:
        read_value(parameter, text)
    except ParameterError as error:
        return str(error)
    return ""


def _general_problem(key: str, text: str) -> str:
    if key == "url":
        fits = text.startswith(("http://", "https://"))
        return "" if fits else "an address with http:// or https:// is needed"
    if key == "seed":
        return "" if text.isascii() and text.isdigit() else "a whole number is needed"
    if key in {"max_usd", "max_minutes"} and text:
        try:
            value = Decimal(text)
        except InvalidOperation:
            return f"a number is needed, not {text!r}"
        return "" if value.is_finite() and value > 0 else "a number above 0 is needed"
    return ""
