"""`a40console profiles`: what can be run here, as it would be run. Works without a service."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import note, print_json, printable
from a40console.commands.profile_apply import diff
from a40console.commands.profile_fix import fix
from a40console.commands.profile_outlook import outlooks
from a40console.commands.profiles_fit import fit
from a40console.commands.table import Column, print_table
from a40console.commands.toml_place import line_of
from a40console.engines import command as launch
from a40console.engines.capability import find_program
from a40console.engines.speculation_cost import costs_of_ready
from a40console.errors import CheckFailedError, RefusedError, UsageError
from a40console.model.control import ProfileSummary
from a40console.model.profile import ModelFile, Profile, Speculation, TokenPrice
from a40console.operations.catalogue import summarise
from a40console.operations.ladder import rung_in_words, rungs
from a40console.paths import Paths
from a40console.profiles.loader import load_profiles, parse_profile, profile_text
from a40console.telemetry.cgroup import Cgroups

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_KEY = re.compile(r"[\w.-]+(?= is | must |: )")
_NEXT_FAULT = re.compile(r"; (?=[\w.-]+(?: is | must |: ))")
HIDDEN = "(set)"
SHOWN_APART = ("name", "title", "known_issues", "shape", "placements")
TOLD_WHERE_OTHERWISE = {"implementation": "python", "served": True}
"""Settings that say nothing as they mostly are."""


@click.group()
def command() -> None:
    """List, show, check and fit engine profiles. Works without a service."""


command.add_command(fit)
command.add_command(diff)


command.add_command(fix)


@command.command("list")
@json_option
@click.pass_obj
def list_profiles(invocation: Invocation, *, as_json: bool) -> None:
    """Every profile, shipped and your own, and whether this machine can run it."""
    found = load_profiles(invocation.paths.profiles)
    summaries = [
        summarise(profile, found, os.environ, invocation.paths)
        for _, profile in sorted(found.profiles.items())
    ]
    if as_json:
        failures = [{"file": str(file), "reason": why} for file, why in found.failures.items()]
        print_json({"profiles": summaries, "failures": failures})
        return
    columns = (
        Column("profile"),
        Column("kind"),
        Column("what it is", breaks=True),
        Column("runs here"),
        Column("from"),
    )
    rows = [
        (
            entry.name,
            entry.kind,
            entry.title or entry.model,
            "yes" if entry.ready else "no",
            entry.origin,
        )
        for entry in summaries
    ]
    print_table(invocation, columns, rows)
    for entry in summaries:
        if not entry.ready:
            click.echo(printable(f"{entry.name} does not run here: {entry.why_not}"))
    for why in found.failures.values():
        note(why)


@command.command()
@click.argument("name")
@json_option
@click.pass_obj
def show(invocation: Invocation, *, name: str, as_json: bool) -> None:
    """Settings, known issues and the full command line of profile NAME."""
    found = load_profiles(invocation.paths.profiles)
    profile = found.find(name)
    argv = _argv(profile, invocation.paths)
    shown = _without_secrets(profile)
    summary = summarise(profile, found, os.environ, invocation.paths)
    program = find_program(profile, os.environ, invocation.paths.environments)
    if as_json:
        print_json(
            {
                "profile": shown,
                "origin": summary.origin,
                "ready": summary.ready,
                "why_not": summary.why_not,
                "program": program.path if program else None,
                "program_origin": program.origin if program else None,
                "argv": argv,
                "shell": launch.printable(argv),
            }
        )
        return
    for line in _described(shown, summary):
        click.echo(printable(line))
    if program is not None and program.origin != "embedded":
        click.echo(printable(f"{'program':<24}{program.path} ({program.origin})"))
    click.echo(f"\n{printable(launch.printable(argv))}")


@command.command()
@click.argument("named", metavar="[PROFILE|FILE]", required=False)
@click.option(
    "--flags",
    "read_flags",
    is_flag=True,
    help="Ask each installed vLLM once which flags it takes; it needs a minute.",
)
@json_option
@click.pass_obj
def check(invocation: Invocation, *, named: str | None, read_flags: bool, as_json: bool) -> None:
    """Check a profile by its name or file, or every one.

    Exit code 6, with file, line and key, where something is wrong.

    What is right is told with whether it runs here: program, flags, GPU, memory and model.
    """
    paths = invocation.paths
    faults, profiles = _check_all(paths) if named is None else _check_named(named, paths)
    if faults:
        raise CheckFailedError(
            "A profile is wrong" if len(faults) == 1 else f"{len(faults)} profiles are wrong",
            evidence="\n".join(faults),
            remedy="Mend the file; what a setting means: a40console profiles show NAME",
        )
    checked = [profile.name for profile in profiles]
    here = outlooks(profiles, paths, os.environ, ask_engines=read_flags)
    if as_json:
        print_json({"checked": checked, "here": here})
        return
    click.echo(printable(f"Nothing is wrong with {', '.join(checked)}"))
    for outlook in here:
        click.echo(printable(outlook.in_words()))


def _check_all(paths: Paths) -> tuple[list[str], list[Profile]]:
    """What is wrong with the profiles, and those that can be read."""
    found = load_profiles(paths.profiles)
    faults = [_placed(file, why) for file, why in found.failures.items()]
    for name, profile in found.profiles.items():
        if (why := _refusal(profile, paths)) is not None:
            faults.append(f"{found.origins[name]}: {why}")
    return faults, [found.profiles[name] for name in sorted(found.profiles)]


def _check_named(named: str, paths: Paths) -> tuple[list[str], list[Profile]]:
    """Of a file where there is one of that name, else of the profile.

    Raises:
        UsageError: If it is neither.
    """
    if Path(named).exists():
        return _check_file(Path(named), paths)
    if "/" in named or named.endswith(".toml"):
        raise UsageError(f"There is no file {named}", remedy="By its name: profiles check NAME")
    found = load_profiles(paths.profiles)
    broken = {file.stem: file for file in found.failures if file.suffix == ".toml"}
    if named in broken:
        return [_placed(broken[named], found.failures[broken[named]])], []
    profile = found.find(named)
    why = _refusal(profile, paths)
    return [] if why is None else [f"{found.origins[named]}: {why}"], [profile]


def _check_file(file: Path, paths: Paths) -> tuple[list[str], list[Profile]]:
    if not file.is_file():
        return [f"{file}: not a regular file"], []
    try:
        profile = parse_profile(profile_text(file), file.stem)
    except (OSError, ValueError) as error:
        return [_placed(file, f"{file}: {error}")], []
    why = _refusal(profile, paths)
    return [] if why is None else [f"{file}: {why}"], [profile]


def _refusal(profile: Profile, paths: Paths) -> str | None:
    """Why the profile would not be started, as far as its settings go."""
    try:
        _argv(profile, paths)
    except RefusedError as error:
        return f"{error.message}: {error.evidence}"
    return None


def _placed(file: Path, why: str) -> str:
    """The faults of a file, one a line, with the line of the key that each begins with."""
    if not file.is_file():  # a pipe would be waited for
        return why
    try:
        text = profile_text(file)
    except (OSError, ValueError):
        return why
    placed = []
    for fault in _NEXT_FAULT.split(why.removeprefix(f"{file}: ")):
        key = _KEY.match(fault)
        line = line_of(text, key[0]) if key else None
        placed.append(f"{file}: {fault}" if line is None else f"{file}:{line}: {fault}")
    return "\n".join(placed)


def _argv(profile: Profile, paths: Paths) -> tuple[str, ...]:
    """What a start would run; its socket has a fresh name each time."""
    program = find_program(profile, os.environ, paths.environments)
    site = launch.Site(
        python=sys.executable,
        embedded_script=Path(launch.__file__).with_name("embedded.py"),
        model_path=paths.models / Path(profile.file.file).name if profile.file else None,
        socket_path=paths.engine_socket(profile.name),
        port=profile.port or 8000,
        threads=launch.default_threads(Cgroups().cpu_limit().quota_vcpu),
        executable=program.path if program else None,
    )
    return launch.plan(profile, site).argv


def _without_secrets(profile: Profile) -> Profile:
    environment = {
        name: HIDDEN if _SECRET_NAME.search(name) else value
        for name, value in profile.environment.items()
    }
    return replace(profile, environment=environment)


def _described(profile: Profile, summary: ProfileSummary) -> Iterator[str]:
    """The profile in lines: what is set, what this machine says to it, what is known."""
    yield f"{profile.name}   {profile.title}   ({summary.origin})"
    yield "runs here" if summary.ready else f"does not run here: {summary.why_not}"
    yield ""
    for item in fields(profile):
        value = getattr(profile, item.name)
        if item.name in SHOWN_APART or value == TOLD_WHERE_OTHERWISE.get(item.name):
            continue
        if value not in ((), {}):
            yield f"{item.name:<24}{_value(value)}"
    for rung in range(1, rungs(profile)):
        yield f"{'ladder':<24}{rung_in_words(profile, rung)}"
    for cost in costs_of_ready(profile):
        yield f"speculation, on or off  {cost}"
    for issue in profile.known_issues:
        yield f"known issue             {issue.setting}: {issue.reason}"


def _value(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case tuple():
            return " ".join(map(str, value))
        case dict():
            return "  ".join(f"{name}={_value(item)}" for name, item in value.items())
        case Speculation() | ModelFile() | TokenPrice():
            return _value({key: item for key, item in asdict(value).items() if item is not None})
        case _:
            return str(value)
