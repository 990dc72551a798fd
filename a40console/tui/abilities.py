"""What the terminal can show: colours and characters, decided before anything is drawn."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from a40console.tui import terminfo

Depth = Literal["truecolor", "256", "16", "mono"]
Multiplexer = Literal["", "tmux", "screen"]
Ask = Callable[[], str]
"""Answers with tmux's word on the terminal it is shown on; empty where it has none."""

_DEEP_TERMS = ("xterm-kitty", "xterm-ghostty", "alacritty", "wezterm", "foot", "contour", "iterm2")
"""Terminals that show 24-bit colour and say so by their name alone, also through SSH."""

_POOR_TERMS = ("linux", "vt", "ansi", "cons", "sun", "wyse")
"""Terminals whose characters are not those of a terminal emulator, whatever the locale says."""

_NO_TERMS = ("", "dumb", "unknown", "network")
"""Names of no terminal at all: nothing could be placed on it."""

_TMUX_ASK = ("tmux", "display-message", "-p", "#{client_utf8} #{client_termfeatures}")
_TMUX_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What is drawn with."""

    depth: Depth = "truecolor"
    ascii: bool = False
    """Borders, bars and marks of ASCII characters only."""

    multiplexer: Multiplexer = ""
    """What stands between us and the terminal."""


def examine(
    environment: Mapping[str, str] = os.environ,
    *,
    color: str = "auto",
    glyphs: str = "auto",
    ask_tmux: Ask | None = None,
) -> Abilities:
    """What to draw with, from the options, or from what the environment tells of the terminal.

    Args:
        environment: The process's own, as it was started.
        color: `auto`, or the depth that the operator named.
        glyphs: `auto`, `unicode` or `ascii`.
        ask_tmux: Asks tmux about its client; by default the tmux that we run in.
    """
    inside = multiplexer(environment)
    told = (ask_tmux or _ask_tmux)() if inside == "tmux" else ""
    return Abilities(
        depth=_depth(environment, color, inside, told),
        ascii=glyphs == "ascii" or (glyphs == "auto" and not _has_unicode(environment, told)),
        multiplexer=inside,
    )


def multiplexer(environment: Mapping[str, str]) -> Multiplexer:
    """The multiplexer that we run in: the inner one where they are nested."""
    if environment.get("TMUX"):
        return "tmux"
    return "screen" if environment.get("STY") else ""


def cannot_draw(environment: Mapping[str, str]) -> str:
    """Why nothing can be drawn on this terminal; empty where it can."""
    term = environment.get("TERM", "")
    if term not in _NO_TERMS:
        return ""
    return f"TERM is {term!r}" if term else "TERM is not set"


def as_started() -> Mapping[str, str]:
    """The environment that this process was started with.

    Python itself sets LC_CTYPE to UTF-8 where the locale is C (PEP 538), so that `os.environ` no
    longer tells what the operator's terminal was set up for.
    """
    with suppress(OSError, ValueError):
        block = Path("/proc/self/environ").read_bytes().split(b"\0")
        pairs = (os.fsdecode(entry).split("=", 1) for entry in block if b"=" in entry)
        return {**os.environ, **_locale_of(dict(pairs))}
    return os.environ


_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")


def _locale_of(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment.get(name, "") for name in _LOCALE}


def _depth(environment: Mapping[str, str], color: str, inside: Multiplexer, told: str) -> Depth:
    match color:
        case "truecolor" | "256" | "16" | "mono":
            return color
    if environment.get("NO_COLOR"):
        return "mono"
    term = environment.get("TERM", "").lower()
    deep = environment.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    if inside == "tmux":
        # tmux takes any colour and maps it to what its client shows.
        return "truecolor" if deep or "RGB" in told else "256"
    if inside == "screen":
        # COLORTERM is the outer terminal's; screen 4 makes nonsense of 24-bit colours.
        return "256" if "256color" in term else _listed_depth(term)
    if deep or term.startswith(_DEEP_TERMS) or term.endswith(("-direct", "-truecolor")):
        return "truecolor"
    return "256" if "256color" in term else _listed_depth(term)


def _listed_depth(term: str) -> Depth:
    """The colours that the terminal database knows of this terminal; 16 where it knows none."""
    colours = terminfo.colours(term)
    if colours is None:
        return "16"
    if colours >= 256:
        return "256"
    return "16" if colours >= 8 else "mono"


def _has_unicode(environment: Mapping[str, str], told: str) -> bool:
    """Whether more than ASCII arrives: by tmux's word, else by the terminal and the locale.

    Where no locale is set at all, as in most containers, the terminal at the other end is nearly
    always one of UTF-8.
    """
    if told[:1] in ("0", "1"):
        return told[0] == "1"
    if environment.get("TERM", "").lower().startswith(_POOR_TERMS):
        return False
    locale = next((environment[name] for name in _LOCALE if environment.get(name)), "")
    return not locale or "utf8" in locale.lower().replace("-", "")


def _ask_tmux() -> str:
    try:
        done = subprocess.run(
            _TMUX_ASK, capture_output=True, text=True, timeout=_TMUX_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
