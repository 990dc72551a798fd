"""Copying: into the terminal's clipboard where there is a way, else into a file, and saying which.

A terminal answers nothing to a copy: that it arrived is never claimed, only how it was sent.
"""

from __future__ import annotations

import base64
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from a40console.files import write_private
from a40console.tui.abilities import Abilities
from a40console.tui.format import size
from a40console.tui.multiplex import through

if TYPE_CHECKING:
    from a40console.tui.terminal_app import TerminalApp

LIMIT_BYTES = 74_994
"""Longest base64 text that common terminals take in one OSC 52 sequence (hterm's limit)."""

_NO_CLIPBOARD = ("linux", "vt", "cons", "ansi", "sun", "wyse")
"""Terminals without a clipboard, by the beginning of TERM."""

_TMUX_TIMEOUT_S = 1.0

Tell = Callable[[list[str], bytes], str | None]
"""Runs a tmux command with this input; its output, None where it failed."""


def copy(app: TerminalApp, text: str) -> str:
    """Copy a text; answers how it went, in words for the operator."""
    clipboard = Clipboard(
        app.write_to_terminal, app.abilities, term=os.environ.get("TERM", ""), folder=app.state
    )
    return clipboard.copy(text)


def save(app: TerminalApp, text: str, name: str) -> str:
    """Write a text into a file of this user's alone, over one before; answers where it is."""
    path = (app.state or Path(tempfile.gettempdir())) / name
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, text)
    except OSError as error:
        return f"Not saved: {path} cannot be written ({error.strerror})."
    return f"Saved to {path}, readable by you alone."


class Clipboard:
    """One way to the clipboard for each surrounding, and a file for what is left.

    Args:
        write: Writes to the terminal; answers whether there is one.
        abilities: What the terminal can do.
        term: The terminal's name.
        folder: Where files go; None for the system's temporary folder.
        tell: Runs tmux.
    """

    def __init__(
        self,
        write: Callable[[str], bool],
        abilities: Abilities,
        *,
        term: str,
        folder: Path | None,
        tell: Tell | None = None,
    ) -> None:
        self._write = write
        self._abilities = abilities
        self._term = term
        self._folder = folder or Path(tempfile.gettempdir())
        self._tell = tell or _tell_tmux

    def copy(self, text: str) -> str:
        """Copy; answers how: sent where, or saved where and why."""
        content = text.encode()
        if self._abilities.multiplexer == "tmux":
            return self._through_tmux(content)
        if self._term.startswith(_NO_CLIPBOARD):
            return self._save(content, "this terminal has no clipboard")
        reason = self._send(content)
        if reason:
            return self._save(content, reason)
        via = " through screen" if self._abilities.multiplexer == "screen" else ""
        return f"Sent to the terminal's clipboard{via} (OSC 52). Empty there? It does not take any."

    def _send(self, content: bytes) -> str:
        """Send OSC 52; answers why not, empty where it was sent."""
        encoded = base64.b64encode(content).decode()
        if len(encoded) > LIMIT_BYTES:
            return f"{size(len(content))} are too much for a terminal's clipboard"
        wrapped = through(f"\x1b]52;c;{encoded}\a", self._abilities.multiplexer)
        return "" if self._write(wrapped) else "there is no terminal to send it to"

    def _through_tmux(self, content: bytes) -> str:
        """Into tmux's own buffer, from which it also fills its client's clipboard.

        `load-buffer -w` works with tmux's default settings, in which it drops the OSC 52 of
        programs; those that let it through get it wrapped as well.
        """
        passes = (self._tell(["show", "-Apv", "allow-passthrough"], b"") or "").strip()
        sent = passes in ("on", "all") and not self._send(content)
        if self._tell(["load-buffer", "-w", "-"], content) is not None:
            also = " and its terminal's clipboard (OSC 52, passed through)" if sent else ""
            client = "" if sent else "; tmux offers it to its terminal's clipboard"
            return f"In tmux's buffer{also}: prefix ] pastes it{client}."
        reason = "" if sent else self._send(content)
        if reason:
            return self._save(content, reason)
        return "Sent through tmux (wrapped OSC 52): it arrives where allow-passthrough is on."

    def _save(self, content: bytes, reason: str) -> str:
        path = self._folder / f"copied-{time.strftime('%Y%m%dT%H%M%S')}.txt"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_bytes(content)
        except OSError as error:
            return f"Not copied: {reason}, and {path} cannot be written ({error.strerror})."
        return f"Saved to {path}: {reason}."


def _tell_tmux(words: list[str], content: bytes) -> str | None:
    try:
        done = subprocess.run(
            ["tmux", *words],
            input=content,
            capture_output=True,
            timeout=_TMUX_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
