"""`--read-only` and `[console] read_only`: from here one only looks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from a40console.paths import Paths

_ACT = frozenset({"ask", "note", "stop"})
_LOOKS: dict[str, frozenset[str]] = {
    "engine": frozenset({"history", "logs"}),
    "models": frozenset({"list"}),
    "sessions": frozenset({"list", "show", "follow"}),
    "links": frozenset({"list"}),
    "run": frozenset({"follow"}),
    "runs": frozenset({"list", "show", "compare", "export"}),
    "hypotheses": frozenset({"list"}),
}
"""Of commands with verbs of their own, those verbs that only look."""

_TELLS = (("engine switch", "--cost"), ("engine install", "--list"), ("run", "--plan"))
"""What acts, by its first words, and the option with which it only tells."""

_HELP = frozenset({"--help", "-h"})


def guarded(paths: Paths, words: Sequence[str], *, flag: bool) -> Paths:
    """The paths, with who forbade to act on what they lead to, if anybody did.

    Args:
        paths: As they were found.
        words: The command and its arguments; none for the console itself.
        flag: Whether `--read-only` was given.

    Raises:
        RefusedError: If the command acts, and that is forbidden.
    """
    words = list(words)
    who = _who(paths, flag=flag)
    if not who:
        return paths
    if acts(words) or (flag and words[:1] == ["serve"]):
        from a40console.service.forbidding import forbidden_error

        raise forbidden_error(" ".join(words[:2]), who)
    return replace(paths, forbidden=who)


def acts(words: Sequence[str]) -> bool:
    """Whether a command changes what runs or what is kept, or sends the model work."""
    words = list(words)
    options = words[: words.index("--")] if "--" in words else words
    if not words or _HELP.intersection(options):
        return False
    called = " ".join(words[:2]) + " "
    if any(called.startswith(f"{act} ") and option in options for act, option in _TELLS):
        return False
    if words[:2] == ["runs", "hypotheses"]:
        words = words[1:]
    verb = words[1] if len(words) > 1 else ""
    if words[0] in _LOOKS:
        return bool(verb) and not verb.startswith("-") and verb not in _LOOKS[words[0]]
    return words[0] in _ACT or (words[0] == "endpoint" and "--start" in words)


def _who(paths: Paths, *, flag: bool) -> str:
    """Who forbids it; the settings are read only where they speak of it at all."""
    if not flag:
        text = b""
        with suppress(OSError):
            text = paths.config_file.read_bytes()
        if b"read_only" not in text:
            return ""
    from a40console.config import lenient_settings
    from a40console.service.forbidding import BY_FLAG, by_console_settings

    if flag:
        return BY_FLAG
    settings, _ = lenient_settings(paths.config_file)
    return by_console_settings(paths.config_file) if settings.console.read_only else ""
