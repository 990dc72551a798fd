"""What a single passage of an engine's output means, by the tables of the diagnosis. Pure."""

from __future__ import annotations

from a40console.engines import known_lines, llamacpp, llamacpp_faults, vllm, vllm_faults
from a40console.engines.logs import strip_escapes
from a40console.engines.memory_asked import more_room
from a40console.engines.nearest import found_words
from a40console.model.engine_log import LogMeaning


def explain_passage(text: str, *, vllm_lines: bool, starting: bool) -> LogMeaning | None:
    """The meaning of a line or of the lines of a traceback; None where it is not known.

    Args:
        text: The lines as they were written.
        vllm_lines: Whether the engine writes as vLLM does; else as llama.cpp.
        starting: Whether it was written before the engine served: what ends a start is then but a
            client's mistake.
    """
    message = "\n".join(_message(line, vllm_lines=vllm_lines) for line in text.splitlines())
    for fault in (vllm_faults if vllm_lines else llamacpp_faults).FAULTS:
        if fault.only_starting and not starting:
            continue
        if (match := fault.regex.search(message)) is not None:
            words = found_words(fault.code, match) | {"room": more_room(None)}
            cause, remedy = fault.cause.format(**words), fault.remedy.format(**words)
            return LogMeaning(cause=cause, remedy=remedy)
    for known in known_lines.VLLM if vllm_lines else known_lines.LLAMACPP:
        if (match := known.regex.search(message)) is not None:
            meaning = known.meaning.format(**_groups(match.groupdict()))
            return LogMeaning(cause=meaning, remedy=known.advice, harmless=known.harmless)
    return None


def _message(line: str, *, vllm_lines: bool) -> str:
    line = strip_escapes(line).rstrip()
    return vllm.split_prefix(line)[1] if vllm_lines else llamacpp.strip_prefix(line)


def _groups(found: dict[str, str | None]) -> dict[str, str]:
    return {name: value or "" for name, value in found.items()}
