"""The operator's settings: one TOML file, every key optional, errors that name the key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from a40console.errors import UsageError
from a40console.model.document import DocumentError, Within, read_document
from a40console.model.engine import MessagesRoute
from a40console.model.profile import LIMIT_USD_PER_HOUR
from a40console.model.toml_text import parse_toml

_PRICE = Within(least=0, below=LIMIT_USD_PER_HOUR)
_COUNT = Within(least=0)


def instant(value: object) -> object:
    """A TOML date and time, or its text, as ISO 8601 in UTC; anything else as it is.

    Raises:
        ValueError: If it is no date and time, names no time zone, or lies outside all years.
    """
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        return value
    if moment.tzinfo is None:
        raise ValueError("has no time zone: write it as 2026-11-29T10:00:00Z")
    try:
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError as error:
        raise ValueError("lies outside the years 1 to 9999 in UTC") from error


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Where clients reach the models."""

    host: str = "127.0.0.1"
    """Any other than loopback makes a token mandatory."""

    port: Annotated[int, Within(least=0, most=65535)] = 8080
    """0 takes a free port at each start."""

    token_required: bool = False
    """Ask for the token on loopback as well."""

    messages_route: MessagesRoute = "auto"
    """How the Messages API is served where the profile does not say: as the engine is found."""

    client_requests: Annotated[int, _COUNT] = 0
    """Requests that one client, a machine, may have under way; 0 for no limit."""

    client_requests_per_minute: Annotated[int, _COUNT] = 0
    """Requests that one client may begin within a minute; 0 for no limit."""

    session_requests: Annotated[int, _COUNT] = 0
    """Requests that one session of a client may have under way; 0 for no limit."""

    session_requests_per_minute: Annotated[int, _COUNT] = 0
    """Requests that one session of a client may begin within a minute; 0 for no limit."""

    hold_requests: Annotated[int, _COUNT] = 128
    """Requests that wait while the engine is switched or restarted; 0 lets none wait."""

    hold_mib: Annotated[int, Within(least=0, most=192)] = 128
    """MiB of their bodies together; of 256 for all bodies some room is left to read others."""

    hold_s: Annotated[float, Within(least=0, most=3600)] = 600.0
    """Seconds that one of them waits at most."""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How the service works."""

    interval_s: Annotated[float, Within(least=0.05, most=60)] = 1.0
    """Seconds between snapshots."""

    restart_engine: bool = True
    """Start an engine again that ended by itself."""

    drain_s: Annotated[float, Within(least=0, most=3600)] = 30.0
    """Seconds that running requests may take to end before their engine is replaced."""

    gpu_wait_s: Annotated[float, Within(least=0, most=600)] = 30.0
    """Seconds that a start waits for the GPU's memory to be freed before it is refused."""

    read_only: bool = False
    """Refuse every command that acts, whoever asks; the engine goes on as it is."""


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """How the console looks."""

    theme: str = "midnight"
    """A theme of ours, or a file in the config folder's `themes`."""

    glyphs: Literal["auto", "unicode", "ascii"] = "auto"
    """Characters that are drawn with; `auto` asks tmux, the locale and the terminal's name."""

    alarms: Literal["bell", "osc9", "both", "off"] = "bell"
    """How the console calls for errors: the bell, a notification of the terminal, or both."""

    read_only: bool = False
    """Do nothing that acts from this console and its commands, as with `--read-only`."""


@dataclass(frozen=True, slots=True)
class InstallSettings:
    """Where `engine install` finds what the package index has not."""

    torch_cpu_index: str = "https://download.pytorch.org/whl/cpu"
    """PyTorch's builds for the CPU: an index, or a folder of wheels."""


@dataclass(frozen=True, slots=True)
class RunsSettings:
    """What becomes of controlled experiments when this machine is gone."""

    home: str = "auto"
    """A folder that outlives this machine, for a second copy of every run. `auto`: on a volume that
    a RunPod pod has mounted, without counting on it; `off`: none."""

    passing: Literal["auto", "yes", "no"] = "auto"
    """Whether this machine will be gone with its disk, so that runs that no other machine has are
    told before an end; `auto`: on a RunPod pod."""


@dataclass(frozen=True, slots=True)
class RentSettings:
    """What the machine is rented for: then cost is counted from the rent's begin, idle or not."""

    since: Annotated[str | None, instant] = None
    """When it began: a TOML date and time with its zone."""

    usd_per_hour: Annotated[Decimal, _PRICE] | None = None
    """Replaces the profile's price."""

    disk_usd_per_hour: Annotated[Decimal, _PRICE] | None = None
    """Added to it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings."""

    profile: str | None = None
    """The profile that is started when none is named."""

    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)
    console: ConsoleSettings = field(default_factory=ConsoleSettings)
    install: InstallSettings = field(default_factory=InstallSettings)
    rent: RentSettings = field(default_factory=RentSettings)
    runs: RunsSettings = field(default_factory=RunsSettings)
    keys: dict[str, str] = field(default_factory=dict)
    """Command id to key: `"engine.restart" = "f5"`."""


LOOKS = frozenset({"console", "keys"})
"""Tables that only what is drawn depends on: a wrong value there stops nothing."""


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """Something that is wrong in the settings file."""

    text: str
    """What it is, with its key."""

    refused: bool
    """Whether a service that starts refuses it; else its default is used."""

    def __str__(self) -> str:
        """What it is, and what becomes of it."""
        if self.refused:
            return f"{self.text}; the service refuses it when it next starts"
        return f"{self.text}; the default is used"


def load_settings(path: Path) -> Settings:
    """Read the settings file; without one, the defaults.

    How the console looks is no reason to stop: what is wrong there has its default.

    Raises:
        UsageError: If it cannot be read, is not TOML, or names an unknown key or a wrong value.
    """
    settings, problems = _mended(_read(path))
    if any(problem.refused for problem in problems):
        raise UsageError(
            f"{path} has a setting that does not exist or does not fit",
            evidence="; ".join(problem.text for problem in problems),
            remedy="Mend that key, or remove it for the default.",
        )
    return settings


def lenient_settings(path: Path) -> tuple[Settings, tuple[SettingsProblem, ...]]:
    """Read the settings file for what only shows or examines: whatever is wrong stops nothing.

    The settings have their defaults where something is wrong with the file.
    """
    try:
        return _mended(_read(path))
    except UsageError as error:
        told = f"{error.message}: {error.evidence}" if error.evidence else error.message
        return Settings(), (SettingsProblem(told, refused=True),)


def _read(path: Path) -> dict[str, Any]:
    """The file's document.

    Raises:
        UsageError: If it cannot be read, or is not TOML.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read", evidence=str(error)) from error
    try:
        return parse_toml(text)
    except ValueError as error:
        raise UsageError(
            f"{path} cannot be used", evidence=str(error), remedy="Mend or remove the file."
        ) from error


def _mended(document: dict[str, Any]) -> tuple[Settings, tuple[SettingsProblem, ...]]:
    """The settings without what is wrong, and what that is."""
    wrong: list[SettingsProblem] = []
    while True:
        try:
            return read_document(Settings, document), tuple(wrong)
        except DocumentError as error:
            for fault in error.faults:
                refused = fault.place[0] not in LOOKS
                wrong.append(SettingsProblem(fault.text, refused=refused))
                _remove(document, fault.place)


def _remove(document: dict[str, Any], place: Sequence[str]) -> None:
    """Take out the key that an error names, which may be deeper than a table's key."""
    table = document.get(place[0])
    if len(place) > 1 and isinstance(table, dict):
        table.pop(place[1], None)
    else:
        document.pop(place[0], None)
