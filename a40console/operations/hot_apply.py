"""What an edited profile changes of the engine that runs, and what of it takes a restart. Pure.

A setting takes a restart where it changes what the engine's process is started with: its program,
its model, its command line, its environment or its address. All others are ours, and are taken over
while it runs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

from a40console.engines.command import LaunchPlan, Site, plan
from a40console.errors import ConsoleError
from a40console.model.profile import Profile, Speculation
from a40console.model.profile_change import ProfileChange
from a40console.model.secrets import COVER, covered, covered_within

Effect = Literal["live", "restart"]

RESTART = frozenset({"kind", "implementation", "executable", "model", "file", "plugin"})
"""What the process is, whatever its command line says."""

LIVE = {
    "title": "it is a name on the screen",
    "usd_per_hour": "the cost is worked out with it from now on",
    "messages_route": "the gateway serves the next requests by it",
    "start_timeout_s": "it counts at the next start",
    "stall_after_s": "it counts at the next start",
    "known_issues": "they are words on the screen",
    "served": "it is a word on the screen",
    "placements": "they are tried where a later start fails",
    "shape": "it is what fits are worked out from",
    "speculation.locked": "the next change of speculation is refused or allowed by it",
}
"""Settings of our own, and what each does without a restart."""

ONE_RUNS = "the engine runs one of them"
ENGINE_READS = "the engine reads it when it starts"
NOT_TOLD = "the engine is not told of it as things are"
IS_THE_ENGINE = "another program or model is another process"

_SITE = Site(
    python="python",
    embedded_script=Path("embedded.py"),
    socket_path=Path("engine.sock"),
    port=0,
    threads=-1,
    plugin_token="-",  # noqa: S106 - stands for whatever a start makes up
)
_SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)
_PLAIN = re.compile(r"[+-]?[0-9]{1,9}(\.[0-9]{1,6})?|true|false|on|off|auto|None", re.IGNORECASE)
"""Values of the environment that hold no secret whatever their name is."""

_ABSENT = object()


def changes(
    started: Profile, in_force: Profile, file: Profile, *, placed: bool = False
) -> tuple[ProfileChange, ...]:
    """Every setting that the file has otherwise.

    Args:
        started: What the engine was started with.
        in_force: The same with what was taken over or turned while it ran.
        file: The profile as its file is now.
        placed: Whether a placement of it runs.
    """
    present = as_if_live(started, in_force)
    found = []
    for key, running, wanted in _differing(present, file):
        effect, why = _effect(key, present, file)
        if placed and key == "placements":
            effect, why = "restart", ONE_RUNS
        found.append(
            ProfileChange(
                key=key,
                running=_shown(key, running),
                file=_shown(key, wanted),
                effect=effect,
                why=why,
            )
        )
    return tuple(found)


def digest(found: tuple[ProfileChange, ...], file: Profile) -> str:
    """12 hexadecimal digits that name exactly these changes; empty for none."""
    if not found:
        return ""
    text = json.dumps([[asdict(change) for change in found], asdict(file)], default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def as_if_live(started: Profile, in_force: Profile) -> Profile:
    """What the engine was started with, with our own settings as they are in force."""
    own = {key: getattr(in_force, key) for key in LIVE if "." not in key}
    speculation = started.speculation
    if speculation is not None and in_force.speculation is not None:
        speculation = replace(speculation, locked=in_force.speculation.locked)
    return replace(started, **own, speculation=speculation)


def taken_over(present: Profile, file: Profile) -> Profile:
    """The present profile with the file's settings that take no restart.

    What was turned while the engine ran stays as it was turned.
    """
    own = {key: getattr(file, key) for key in LIVE if "." not in key}
    untold = {
        key.partition(".")[0]
        for key, _, _ in _differing(present, file)
        if _effect(key, present, file)[0] == "live"
    }
    told = {key: getattr(file, key) for key in untold - {"speculation"}}
    return replace(present, **own | told, speculation=_speculation(present, file))


def _speculation(present: Profile, file: Profile) -> Speculation | None:
    """Speculation with what of it the engine need not be told."""
    mine, theirs = present.speculation, file.speculation
    if mine is None or theirs is None:
        ready = (mine is not None and mine.ready) or (theirs is not None and theirs.ready)
        return mine if ready else theirs
    own: dict[str, Any] = {"locked": theirs.locked}
    for key, _, _ in _differing(replace(present, speculation=mine), file):
        table, _, name = key.partition(".")
        if table == "speculation" and key not in LIVE and _effect(key, present, file)[0] == "live":
            own[name] = getattr(theirs, name)
    return replace(mine, **own)


def _differing(present: Profile, file: Profile) -> Iterator[tuple[str, object, object]]:
    before, after = dict(_flat(present)), dict(_flat(file))
    for key in [*before, *(key for key in after if key not in before)]:
        running, wanted = before.get(key, _ABSENT), after.get(key, _ABSENT)
        if running != wanted:
            yield key, running, wanted


def _flat(profile: Profile) -> Iterator[tuple[str, object]]:
    """Each setting by its key in the file; what is not set is not there."""
    for each in fields(profile):
        value = getattr(profile, each.name)
        if each.name in ("speculation", "file") and value is not None:
            for inner in fields(value):
                if (held := getattr(value, inner.name)) is not None:
                    yield f"{each.name}.{inner.name}", held
        elif each.name == "environment":
            yield from ((f"environment.{name}", held) for name, held in value.items())
        elif value is not None and value != ():
            yield each.name, value


def _effect(key: str, present: Profile, file: Profile) -> tuple[Effect, str]:
    name = key.partition(".")[0]
    if key in LIVE:
        return "live", LIVE[key]
    if name in RESTART:
        return "restart", IS_THE_ENGINE
    if _plan(present) != _plan(_with(key, present, file)):
        return "restart", ENGINE_READS
    return "live", NOT_TOLD


def _with(key: str, present: Profile, file: Profile) -> Profile:
    """The present profile with this one setting of the file."""
    name, _, inner = key.partition(".")
    mine, theirs = getattr(present, name), getattr(file, name)
    if name == "environment":
        others = {variable: value for variable, value in mine.items() if variable != inner}
        theirs = others | ({inner: theirs[inner]} if inner in theirs else {})
    elif isinstance(mine, Speculation) and isinstance(theirs, Speculation):
        one: dict[str, Any] = {inner: getattr(theirs, inner)}
        theirs = replace(mine, **one)
    changed: dict[str, Any] = {name: theirs}
    return replace(present, **changed)


def _plan(profile: Profile) -> LaunchPlan | str:
    try:
        return plan(profile, _SITE)
    except ConsoleError as error:
        return error.message


def _variable(key: str, value: str) -> str:
    """An environment variable's value: covered unless it cannot be a secret."""
    told = _PLAIN.fullmatch(value) and not _SECRET.search(key)
    return json.dumps(value) if told else COVER


def _shown(key: str, value: object) -> str | None:
    if value is _ABSENT:
        return None
    if key.startswith("environment."):
        return _variable(key, str(value))
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(covered_within(value), ensure_ascii=False)
        case tuple() if key == "arguments":
            return json.dumps(list(covered(value)), ensure_ascii=False)
        case tuple():
            return f"{len(value)} of them"
        case _ if is_dataclass(value):
            return "a table"
        case _:
            return str(value)
