"""A client's environment as it is pasted: into a shell, or as Claude Code's settings."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Literal, TypeAlias

Form: TypeAlias = Literal["sh", "fish", "settings"]
FORMS: tuple[Form, ...] = ("sh", "fish", "settings")

PLACE: Mapping[Form, str] = {
    "sh": "Paste into the shell that starts the client:",
    "fish": "Paste into the fish shell that starts the client:",
    "settings": "Into ~/.claude/settings.json, or .claude/settings.local.json of a project:",
}
"""Where each form belongs."""


def client_lines(variables: Mapping[str, str], form: Form) -> str:
    """The variables in a form, line by line; every value is quoted."""
    match form:
        case "sh":
            return "".join(f"export {name}={_quoted(value)}\n" for name, value in variables.items())
        case "fish":
            return "".join(f"set -gx {name} {_fish(value)}\n" for name, value in variables.items())
        case "settings":
            client = {k: v for k, v in variables.items() if not k.startswith("OPENAI_")}
            return _readable(json.dumps({"env": client}, indent=2, ensure_ascii=False)) + "\n"


def at_address(variables: Mapping[str, str], url: str) -> dict[str, str]:
    """The variables for another address of the gateway."""
    before = variables.get("ANTHROPIC_BASE_URL", "")
    return {
        name: url + value.removeprefix(before) if name.endswith("_BASE_URL") else value
        for name, value in variables.items()
    }


def _readable(document: str) -> str:
    """JSON whose characters stand as they are, but for those that no terminal shows."""
    return "".join(
        each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in document
    )


def _quoted(value: str) -> str:
    """In single quotes, whatever it holds."""
    quoted = shlex.quote(value)
    return quoted if quoted != value else f"'{value}'"


def _fish(value: str) -> str:
    """In fish's single quotes, in which only these two are escaped."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
