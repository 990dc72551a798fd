"""The flags that an installed vLLM takes, read from its own help once and then remembered."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from a40console.engines.distributions import version_of
from a40console.engines.plugin_folder import EngineEnvironmentError, engine_python
from a40console.errors import RefusedError
from a40console.files import read_json, write_private
from a40console.model.figures import Missing
from a40console.paths import make_private

TIMEOUT_S = 300.0
"""vLLM imports most of itself before it prints its help: half a minute, and more under load."""

FEWEST = 50
"""Flags; a help that lists less is no help of `vllm serve`."""

NEVER_READ = Missing("the flags of this vLLM were not read yet: a40console profiles check --flags")
_LIKE = 0.7
_OPTIONS = re.compile(r"^ {2}(-.*?)(?: {2,}|$)", re.MULTILINE)
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9_-]*")


def known_flags(program: Path, folder: Path) -> frozenset[str] | Missing:
    """What is remembered of an installed vLLM; nothing is run.

    Args:
        program: Its `vllm`.
        folder: Where flags are remembered.
    """
    try:
        found = read_json(_place(program, folder))
    except (OSError, ValueError):
        return NEVER_READ
    flags = found.get("flags") if isinstance(found, dict) else None
    if not isinstance(flags, list) or not all(isinstance(flag, str) for flag in flags):
        return NEVER_READ
    return frozenset(flags)


def read_flags(
    program: Path, folder: Path, environment: Mapping[str, str], *, timeout_s: float = TIMEOUT_S
) -> frozenset[str] | Missing:
    """The flags of an installed vLLM: remembered, else from its help, at the lowest priority.

    Args:
        program: Its `vllm`.
        folder: Where they are remembered.
        environment: What it is run with.
        timeout_s: After so many seconds its help is given up.
    """
    remembered = known_flags(program, folder)
    if not isinstance(remembered, Missing):
        return remembered
    try:
        done = subprocess.run(
            ["nice", "-n", "19", str(program), "serve", "--help=all"],
            env={**environment, "VLLM_NO_USAGE_STATS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Missing(f"the help of {program} cannot be read: {error}")
    flags = flags_in(done.stdout)
    if done.returncode or len(flags) < FEWEST:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return Missing(f"{program} serve --help=all ended with {done.returncode}: {last}")
    with suppress(OSError, RefusedError):  # then it is read once more next time
        write_private(_place(program, make_private(folder)), _text(program, flags))
    return flags


def flags_in(help_text: str) -> frozenset[str]:
    """The flags that a help lists: those at the beginning of a line, not those in its prose."""
    return frozenset(
        flag for options in _OPTIONS.findall(help_text) for flag in _FLAG.findall(options)
    )


def unknown_flags(argv: Sequence[str], known: frozenset[str]) -> tuple[str, ...]:
    """The long flags of a command line that its engine does not take, as they are written.

    Underscores count as dashes, a beginning stands for the whole flag and `--flag.key` for a key of
    its value: vLLM takes all three.
    """
    return tuple(word for word in argv if word.startswith("--") and not _is_known(word, known))


def in_words(unknown: Sequence[str], known: frozenset[str], engine: str) -> str:
    """`vllm 0.32.0 does not know --max-seq (nearest: --max-num-seqs)`."""
    told = []
    for word in unknown:
        near = get_close_matches(_name(word), sorted(known), n=1, cutoff=_LIKE)
        told.append(f"{_name(word)} (nearest: {near[0]})" if near else _name(word))
    return f"{engine} does not know {', '.join(told)}"


def engine_name(program: Path) -> str:
    """The engine with its version, where that can be read."""
    return f"vllm {_version(program) or 'of ' + str(program)}"


def _name(word: str) -> str:
    return word.partition("=")[0].partition(".")[0].replace("_", "-")


def _is_known(word: str, known: frozenset[str]) -> bool:
    name = _name(word)
    return name in known or any(flag.startswith(name) for flag in known)


def _place(program: Path, folder: Path) -> Path:
    """One file for each program in each of its versions."""
    digest = hashlib.sha256(f"{program}\0{_version(program)}".encode()).hexdigest()[:16]
    return folder / f"{digest}.json"


def _version(program: Path) -> str | None:
    try:
        return version_of(engine_python(program), "vllm")
    except EngineEnvironmentError:
        return None


def _text(program: Path, flags: frozenset[str]) -> str:
    return json.dumps({"program": str(program), "flags": sorted(flags)}, indent=1)
