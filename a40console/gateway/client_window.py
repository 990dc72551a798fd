"""How much room a client believes to have, from what its requests show. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from a40console.gateway.session_records import Record
from a40console.model.figures import Estimated, Figure, Missing, ratio
from a40console.model.session import ClientWindow

CLAUDE_CODE = "claude-code"
DEFAULT_OUTPUT_TOKENS = frozenset({32_000, 64_000, 128_000})
"""What Claude Code asks for where nobody told it otherwise."""

KNOWN_MODEL_TOKENS = 200_000
"""Its window for ids that begin with `claude-`."""

UNKNOWN_MODEL_TOKENS = 1_000_000
"""Its window for ids that it does not know."""

SUMMARY_TOKENS = 20_000
"""What it keeps free for its summary, at the most: less where its output limit is lower."""

BUFFER_TOKENS = 13_000
"""What it keeps free besides: it compacts once a context reaches what is left."""

NEARLY_FULL_RATIO = 0.90


@dataclass(frozen=True, slots=True)
class Assumption:
    """What a client takes for its window, and what shows it."""

    tokens: Figure
    evidence: str
    wrong: bool = False
    """Whether it is known to be more than there is."""

    told: bool = False
    """Whether the console's lines told it, which its requests show; else this is a guess."""


def assumed(record: Record, true_tokens: float | None, told_output: int | None) -> Assumption:
    """What the client takes for its window; only Claude Code's ways are known.

    Args:
        record: The session.
        true_tokens: The engine's window.
        told_output: The output limit that a client with the console's lines asks for.
    """
    if record.client != CLAUDE_CODE:
        return Assumption(Missing("only Claude Code's window can be told"), "")
    model, limit = record.model or "", record.max_tokens
    full = _overrun(record, true_tokens)
    if model.startswith("claude-"):
        said = f"it asks for {model}, whose window it takes for {KNOWN_MODEL_TOKENS:,} tokens"
        return _against(KNOWN_MODEL_TOKENS, said, true_tokens, full)
    if limit in DEFAULT_OUTPUT_TOKENS and (record.billed or limit != told_output):
        said = (
            f"it asks for max_tokens {limit:,}, its own default: it was not told the window, and "
            f"takes an unknown model's for {UNKNOWN_MODEL_TOKENS:,} tokens"
        )
        return _against(UNKNOWN_MODEL_TOKENS, said, true_tokens, full)
    if full:
        return Assumption(Missing("it does not say, and went beyond the true one"), full, True)
    if true_tokens is None:
        return Assumption(Missing("nothing in its requests tells"), "")
    return _of_settings(record, true_tokens, told_output)


def _of_settings(record: Record, true_tokens: float, told_output: int | None) -> Assumption:
    """What a client has that was given settings: the console's own lines, or others."""
    limit, hints = record.max_tokens, record.hinted and not record.billed
    ours = limit == told_output and (hints or limit not in DEFAULT_OUTPUT_TOKENS)
    if ours and limit is not None:
        said = f"it asks for max_tokens {limit:,}, as the lines from here set it"
        if hints:
            said += ", and sends its hints and no billing line"
        if free_tokens(limit) >= true_tokens:
            left_out = "its settings are from here, which leave so small a window out"
            return Assumption(Missing(left_out), said)
        return Assumption(true_tokens, said, told=True)
    if hints:
        said = "it sends its hints and no billing line: it has its settings from here"
        return Assumption(Estimated(true_tokens), said)
    if limit is None or limit in DEFAULT_OUTPUT_TOKENS:
        return Assumption(Missing("nothing in its requests tells"), "")
    said = f"it asks for max_tokens {limit:,}, not its default: it was given settings, the window"
    return Assumption(Estimated(true_tokens), f"{said} probably with them")


def _against(tokens: int, said: str, true_tokens: float | None, full: str) -> Assumption:
    wrong = true_tokens is not None and tokens > true_tokens
    return Assumption(Estimated(tokens), f"{said}; {full}" if full else said, wrong)


def _overrun(record: Record, true_tokens: float | None) -> str:
    """What shows that it goes on where it should have summed its history up."""
    if record.overfull:
        times = "once" if record.overflows == 1 else f"{record.overflows} times"
        return f"a prompt of it did not fit and was refused, {times}"
    high = record.highest_context_tokens
    if true_tokens and high > NEARLY_FULL_RATIO * true_tokens:
        return f"its context went to {high:,} of {true_tokens:,.0f} tokens without a summary"
    return ""


def client_window(
    record: Record, context: Figure, true_window: Figure, told_output: int | None
) -> ClientWindow:
    """The window's part of a session's detail."""
    known = None if isinstance(true_window, Missing) else true_window
    true_tokens = known.value if isinstance(known, Estimated) else known
    found = assumed(record, true_tokens, told_output)
    return ClientWindow(
        true_tokens=true_window,
        used_ratio=ratio(context, true_window),
        assumed_tokens=found.tokens,
        compacts_at_tokens=_compacts_at(record, found),
        compactions=record.compactions,
        overflows=record.overflows,
        evidence=found.evidence,
        told=found.told,
    )


def free_tokens(output_tokens: int | None) -> int:
    """What Claude Code keeps free of its window; None for an output limit that is not known."""
    return min(output_tokens or SUMMARY_TOKENS, SUMMARY_TOKENS) + BUFFER_TOKENS


def _compacts_at(record: Record, found: Assumption) -> Figure:
    """By its rule for the window that it assumes, else by when it did so last."""
    if isinstance(found.tokens, Missing):
        last = record.compacted_at_tokens
        return found.tokens if last is None else Estimated(last)
    free = free_tokens(record.max_tokens)
    whole = found.tokens.value if isinstance(found.tokens, Estimated) else found.tokens
    if whole <= free:
        return Missing(f"its window is smaller than the {free:,} tokens that it keeps free")
    return Estimated(whole - free)
