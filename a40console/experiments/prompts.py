"""Prompts of a given kind and length, from a seed: no two begin alike, so none is cached. Pure."""

from __future__ import annotations

from hashlib import blake2s
from random import Random

TOKENS_PER_WORD = 1.3
"""Of the filler, where no tokenizer tells."""

PROSE_TEMPERATURE = 0.8
"""Greedy prose of small models goes round in circles, which decodes cheaply: drafts of a circle are
always right."""

FILE_CHARS_PER_OUTPUT_TOKEN = 5.6
"""Code has three to four characters a token: such a file is longer than the answer, which can then
be a copy from its first token to its last."""

FILE_TOKENS_PER_OUTPUT_TOKEN = 1.9
"""≈ what that is in tokens."""

_SENTENCE_WORDS = 11
_WORDS = (
    *("river", "ledger", "harbour", "signal", "copper", "window", "garden", "engine", "winter"),
    *("letter", "market", "bridge", "lantern", "village", "summer", "paper", "stone", "travel"),
    *("measure", "evening", "morning", "silver", "answer", "question", "mountain", "valley"),
    *("number", "season", "corner", "station", "shadow", "island", "machine", "promise", "record"),
    *("carries", "follows", "remembers", "measures", "crosses", "repeats", "opens", "counts"),
    *("slowly", "never", "often", "almost", "quietly", "without", "between", "beyond", "under"),
)
_TOPICS = (
    "how a lighthouse keeper learned to read the weather",
    "why a small town kept its old railway station",
    "what a cartographer finds in a valley that no map shows",
    "how bread is made in a house without a clock",
    "what the tide leaves behind on a winter morning",
    "how two rivers came to share one name",
    "why an engineer distrusts a bridge that never moves",
    "what a librarian does with a letter that came too late",
)
_SUBJECTS = ("order", "sensor", "parcel", "account", "reading", "ticket", "payment", "route")
_VERBS = ("load", "merge", "scale", "check", "format", "rank", "split", "total")


def nonce(*parts: object) -> str:
    """A word that is the same for the same parts, and another for any others."""
    return blake2s(" ".join(map(str, parts)).encode(), digest_size=6).hexdigest()


def filler(words: int, seed: int) -> str:
    """So many words in sentences that mean nothing."""
    dice = Random(seed)  # noqa: S311 - prompts are to be repeatable
    drawn = [dice.choice(_WORDS) for _ in range(words)]
    lines = (
        " ".join(drawn[at : at + _SENTENCE_WORDS]).capitalize() + "."
        for at in range(0, words, _SENTENCE_WORDS)
    )
    return " ".join(lines)


def prose(mark: str, seed: int, *, words: int = 0) -> str:
    """A question whose answer its prompt does not hold, behind so many words of filler."""
    topic = _TOPICS[seed % len(_TOPICS)]
    notes = f"{filler(words, seed)}\n\n" if words > 0 else ""
    ask = f"Write a long essay on {topic}. Use many paragraphs, and repeat nothing."
    return f"[{mark}] {notes}{ask}"


def code_edit(mark: str, seed: int, *, output_tokens: int) -> str:
    """A file to be given back whole with one name changed: the answer repeats the prompt."""
    code = module(seed, characters=int(output_tokens * FILE_CHARS_PER_OUTPUT_TOKEN))
    return (
        f"[{mark}] Rename the parameter `factor` to `ratio` in this file. Answer with the whole "
        f"file in one code block and nothing else.\n\n```python\n{code}```"
    )


def module(seed: int, *, characters: int) -> str:
    """A Python file of at least so many characters, of plain functions."""
    dice = Random(seed)  # noqa: S311 - prompts are to be repeatable
    parts: list[str] = []
    while sum(map(len, parts)) < characters:
        name = f"{dice.choice(_VERBS)}_{dice.choice(_SUBJECTS)}_{len(parts) + 1}"
        limit = dice.randint(2, 99)
        parts.append(
            f"def {name}(values, factor={dice.randint(1, 9)}):\n"
            f"    kept = [value for value in values if value > {limit}]\n"
            f"    total = sum(value * factor for value in kept)\n"
            f'    return {{"name": "{name}", "count": len(kept), "total": total}}\n\n\n'
        )
    return "".join(parts)


def looped_share(text: str) -> float:
    """Share (0 … 1) of a text's words that stand in a run of eight seen earlier in it.

    A model that goes round in circles decodes cheaply, and drafts of it are always right: a figure
    measured on such a text is none of text worth having.
    """
    words = text.split()
    length = 8
    seen: set[tuple[str, ...]] = set()
    looped = [False] * len(words)
    for at in range(len(words) - length + 1):
        run = tuple(words[at : at + length])
        if run in seen:
            looped[at : at + length] = [True] * length
        seen.add(run)
    return sum(looped) / len(words) if words else 0.0
