"""One line of an engine's output: its text, its level, and whether it goes on from the one before.

Reads the forms of vLLM and its Rust front end, uvicorn, llama.cpp (plain and JSON), Python's
warnings and tracebacks, torch, NCCL, and logging's own. Pure.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

LONGEST_CHARS = 4096
"""A longer line is cut, and says by how much: memory stays bounded whatever is written."""


class Level(IntEnum):
    """How much a line matters."""

    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40


class LogLine(NamedTuple):
    """A line as it can be shown."""

    text: str
    level: Level = Level.INFO
    continues: bool = False
    """Whether it belongs to the line before: the rest of a traceback, of a warning."""


ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links, the clipboard
    r"|[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|[ -/]*[0-~])?"
)
"""A sequence that a terminal obeys."""


def plain(raw: str) -> str:
    """One line of output as printable text; of a progress bar, its last state."""
    if raw.isprintable():
        text = raw
    else:
        text = ESCAPE.sub("", raw).rstrip("\r").rsplit("\r", 1)[-1].expandtabs(4)
        if not text.isprintable():
            text = "".join(sign if sign.isprintable() else " " for sign in text)
    over = len(text) - LONGEST_CHARS
    return text if over <= 0 else f"{text[:LONGEST_CHARS]}… ({over} characters more)"


_PROCESS = r"(?:\[\d+\] ?)?(?:\((?P<process>[\w.-]+) pid=\d+\) ?)?"
"""llama.cpp's router names the port of its child, vLLM the process."""

_STATED = re.compile(
    _PROCESS + r"(?:"
    r"(?P<vllm>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)"
    r" \d\d-\d\d \d\d:\d\d:\d\d(?: \[[^\]]*\])? ?"
    r"|(?P<uvicorn>TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL):\s+"
    r"|\d+\.\d\d\.\d{3}\.\d{3} (?P<llama>[A-Z]) "
    r"|(?:\[rank\d+\]: ?)?\[?(?P<glog>[IWEF])\d{4} \d\d:\d\d:\d\d\S* "
    r"|\{\"type\": ?\"log\".{0,40}?\"level\": ?\"(?P<json>\w+)\""
    r"|\S+:\d+:\d+ \[\d+\] (?:[\d: .-]+)?NCCL (?P<nccl>[A-Z]+) "
    r"|\[?\d{4}-\d\d-\d\d[ T][\d:,.]+\]?[ -]{1,4}(?:\S{1,60}[ -]+)?"
    r"(?P<logging>DEBUG|INFO|WARNING|ERROR|CRITICAL)\b[ :-]*"
    r")?"
)

_NAMES = {
    "T": Level.DEBUG,
    "D": Level.DEBUG,
    "I": Level.INFO,
    "W": Level.WARN,
    "E": Level.ERROR,
    "F": Level.ERROR,
    "C": Level.ERROR,
}
"""By first letter: TRACE, DEBUG, INFO, WARN(ING), ERROR, FATAL, CRITICAL, in any case."""

_TRACEBACK = "Traceback (most recent call last)"
_BETWEEN = (
    "During handling of the above exception",
    "The above exception was the direct cause",
)
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b(?::|$)")
_MORE_BELOW = re.compile(r"validation errors? for |:$")
"""The first line of an exception whose message goes on without indentation."""

_BAD = re.compile(
    r"(?:[\w./ -]{0,40}: )?error: |error while handling |fatal|GGML_ASSERT|terminate called"
    r"|Segmentation fault|Bus error|Illegal instruction|Aborted|Killed$|Fatal |CUDA error"
    r"|thread '.*' panicked|.{0,120}: (?:assertion failed|Assertion `|GGML_ASSERT)"
    r"|embedded: .*(?:not installed|there is no|exists already)"
)
_WARNS = re.compile(r"(?:\S+:\d+: )?\w*Warning: |warning: |WARNING|nanobind: ")
_ACCESS = re.compile(r"HTTP/[\d.]+\" (5\d\d)\b")

READY = re.compile(
    r"Application startup complete\.|server is ready to accept requests"
    r"|(?:llama_server|main): (?:model loaded|server is listening|listening on )"
)
"""Lines with which an engine says that it serves."""


class LevelReader:
    """Gives each line its level, in the order in which they were written."""

    def __init__(self) -> None:
        self._blocks: dict[str, _Block] = {}
        self.ready_seen = False
        """Whether a line has said that the engine serves."""

    def read(self, raw: str) -> LogLine:
        """The next line."""
        text = plain(raw)
        match = _STATED.match(text)
        if match is None:  # every part of the pattern is optional
            return LogLine(text)
        message = text[match.end() :]
        kind = match.lastgroup
        stated = None if kind in (None, "process") else _NAMES.get(match[str(kind)][0].upper())
        process = match["process"] or ""
        block = self._blocks.get(process)
        prefix = text[: match.end()]
        if block is not None and block.takes(message, prefix if stated else ""):
            return LogLine(text, block.level, continues=True)
        level = _level(message, stated, kind)
        self._open(process, level, message, prefix if stated else "")
        if not self.ready_seen and READY.search(message):
            self.ready_seen = True
        return LogLine(text, level)

    def _open(self, process: str, level: Level, message: str, stamp: str) -> None:
        """Lines may go on from a warning or an error; nothing goes on from others."""
        if level >= Level.WARN or message.startswith(_TRACEBACK):
            self._blocks[process] = _Block(level, stamp, message)
        else:
            self._blocks.pop(process, None)


class _Block:
    """A warning or an error whose lines go on, of one process."""

    def __init__(self, level: Level, stamp: str, message: str) -> None:
        self.level = level
        self._stamp = stamp
        self._in_traceback = message.startswith(_TRACEBACK)
        self._raised = False
        self._chained = False
        self._open_ended = bool(_MORE_BELOW.search(message)) and not self._in_traceback

    def takes(self, message: str, stamp: str) -> bool:
        """Whether a line of the same process goes on from here.

        A logger that writes several lines repeats its stamp on each, its level included.
        """
        if stamp != self._stamp:
            return False
        if not message:  # before what led to another exception a line is empty
            return self._in_traceback or self._raised or self._chained or bool(stamp)
        if message.startswith(_TRACEBACK):
            goes_on = not self._raised
            self._in_traceback, self._raised, self._chained = True, False, False
            return goes_on
        if message[:1].isspace():
            return True
        if message.startswith(_BETWEEN):
            self._raised, self._chained = False, True
            return True
        if self._in_traceback:
            self._in_traceback, self._raised = False, True
            self._open_ended = bool(_MORE_BELOW.search(message))
            return True
        return self._open_ended and not (_BAD.match(message) or _WARNS.match(message))


def _level(message: str, stated: Level | None, kind: str | None) -> Level:
    if stated is not None:
        if kind == "uvicorn" and (answer := _ACCESS.search(message)) is not None:
            return Level.ERROR if answer[1] == "500" else Level.WARN
        return stated
    if message.startswith(_TRACEBACK) or _EXCEPTION.match(message) or _BAD.match(message):
        return Level.ERROR
    return Level.WARN if _WARNS.match(message) else Level.INFO


_TIME = re.compile(r" \d\d-\d\d (\d\d:\d\d:\d\d)")


def split_stamp(text: str, *, short: bool = False) -> tuple[str, str]:
    """What the logger put before a line, and the message itself.

    Args:
        text: The line.
        short: Reduce the stamp of vLLM to time and process, for narrow windows.
    """
    match = _STATED.match(text)
    if match is None or match.lastgroup == "json":
        return "", text
    stamp, message = text[: match.end()], text[match.end() :]
    if short and match.lastgroup in ("process", "vllm"):
        time = _TIME.search(stamp)
        parts = (time[1] if time else "", match["process"] or "")
        stamp = "".join(f"{part} " for part in parts if part)
    return stamp, message
