"""The operator's settings: one TOML file, every key optional, errors that name the key."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from a40console.errors import UsageError

_CLOSED = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Where clients reach the models."""

    host: str = "127.0.0.1"
    """Any other than loopback makes a token mandatory."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """0 takes a free port at each start."""

    token_required: bool = False
    """Ask for the token on loopback as well."""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How the service works."""

    interval_s: Annotated[float, Field(ge=0.05, le=60)] = 1.0
    """Seconds between snapshots."""

    restart_engine: bool = True
    """Start an engine again that ended by itself."""


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """How the console looks."""

    theme: str = "midnight"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings."""

    profile: str | None = None
    """The profile that is started when none is named."""

    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)
    console: ConsoleSettings = field(default_factory=ConsoleSettings)
    keys: dict[str, str] = field(default_factory=dict)
    """Command id to key: `"engine.restart" = "f5"`."""


for _kind in (GatewaySettings, ServiceSettings, ConsoleSettings, Settings):
    _kind.__pydantic_config__ = _CLOSED  # type: ignore[union-attr]


def load_settings(path: Path) -> Settings:
    """Read the settings file; without one, the defaults.

    Raises:
        UsageError: If it cannot be read, is not TOML, or names an unknown key or a wrong value.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read", evidence=str(error)) from error
    try:
        return TypeAdapter(Settings).validate_python(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"{path} is not valid TOML", evidence=str(error), remedy="Mend or remove the file."
        ) from error
    except ValidationError as error:
        raise UsageError(
            f"{path} has a setting that does not exist or does not fit",
            evidence="; ".join(
                f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()
            ),
            remedy="Mend that key, or remove it for the default.",
        ) from error
