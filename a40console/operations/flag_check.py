"""Whether the installed vLLM takes the flags of a profile, asked of the engine's own help once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from a40console.engines import flags
from a40console.engines.capability import find_program
from a40console.engines.command import Site, plan
from a40console.errors import RefusedError
from a40console.model.figures import Missing
from a40console.model.profile import Profile
from a40console.operations.ladder import placed, rungs
from a40console.paths import Paths

NOT_VLLM = Missing("its flags are not vLLM's")
NOT_HERE = Missing("its vllm is not here")


def known_flags(
    profile: Profile, paths: Paths, environment: Mapping[str, str], *, ask: bool
) -> frozenset[str] | Missing:
    """The flags of the vLLM that a profile would run.

    Args:
        profile: What would run.
        paths: Where installed engines lie, and where their flags are remembered.
        environment: Where programs are looked for, and what the help is run with.
        ask: Run its help where they are not remembered, which takes half a minute.
    """
    if profile.kind != "vllm" or profile.is_cpp:
        return NOT_VLLM
    program = find_program(profile, environment, paths.environments)
    if program is None:
        return NOT_HERE
    if ask:
        return flags.read_flags(Path(program.path), paths.engine_flags, environment)
    return flags.known_flags(Path(program.path), paths.engine_flags)


def unknown_flags(
    profile: Profile, known: frozenset[str], paths: Paths, environment: Mapping[str, str]
) -> str | None:
    """Which flags of which rung the engine does not take; None where it takes all of them."""
    program = find_program(profile, environment, paths.environments)
    site = Site(python="", embedded_script=Path(), socket_path=Path("/engine.sock"), port=1)
    for rung in range(rungs(profile)):
        argv = plan(placed(profile, rung), site).argv
        if program is not None and (unknown := flags.unknown_flags(argv, known)):
            return flags.in_words(unknown, known, flags.engine_name(Path(program.path)))
    return None


def demand_flags(profile: Profile, paths: Paths, *, ask: bool = True) -> tuple[bool, str]:
    """See that the installed vLLM takes every flag; whether that could be told, and what was seen.

    Args:
        profile: What would run.
        paths: Where installed engines lie, and where their flags are remembered.
        ask: Run its help where they are not remembered.

    Raises:
        RefusedError: If it does not.
    """
    known = known_flags(profile, paths, os.environ, ask=ask)
    if isinstance(known, Missing):
        return False, known.reason
    if (why := unknown_flags(profile, known, paths, os.environ)) is not None:
        raise RefusedError(
            f"The engine of {profile.name} does not take its flags",
            evidence=why,
            remedy="Remove or correct them in the profile's arguments.",
        )
    return True, f"all are among the {len(known)} that the engine's help lists"
