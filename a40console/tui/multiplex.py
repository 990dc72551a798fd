"""Sequences for the terminal behind tmux or screen. Pure."""

from __future__ import annotations

from a40console.tui.abilities import Multiplexer

_SCREEN_CHUNK = 240
"""Bytes that GNU screen passes on in one string; it drops longer ones (256, less room)."""


def through(sequence: str, multiplexer: Multiplexer) -> str:
    """A sequence wrapped so that the multiplexer hands it to the terminal it is shown on.

    tmux does so only where its option `allow-passthrough` is on, and wants escapes doubled.
    """
    if multiplexer == "tmux":
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    if multiplexer == "screen":
        pieces = (
            sequence[start : start + _SCREEN_CHUNK]
            for start in range(0, len(sequence), _SCREEN_CHUNK)
        )
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return sequence
