"""What a call over a link puts on the command lines of two machines, and what it does not."""

from __future__ import annotations

import pytest

from a40console.commands.far import off_the_line
from a40console.errors import UsageError


@pytest.mark.parametrize(
    ("words", "without", "told"),
    [
        (["ask", "who am I"], ["ask", "-"], b"who am I"),
        (["ask", "--json", "ä\n'b'"], ["ask", "--json", "-"], "ä\n'b'".encode()),
        (["ask", "5", "--max-tokens", "5"], ["ask", "-", "--max-tokens", "5"], b"5"),
        (["ask", "--max-tokens", "5", "5"], ["ask", "--max-tokens", "5", "-"], b"5"),
        (["ask", "--max-tokens=5", "--", "-x"], ["ask", "--max-tokens=5", "--", "-"], b"-x"),
        (["ask", "-"], ["ask", "-"], None),
        (["ask"], ["ask"], None),
        (["ask", "--help"], ["ask", "--help"], None),
        (["status", "ask"], ["status", "ask"], None),
        ([], [], None),
    ],
)
def test_a_question_goes_by_standard_input(
    words: list[str], without: list[str], told: bytes | None
) -> None:
    assert off_the_line(words) == (without, told)


def test_a_question_without_quotes_goes_nowhere() -> None:
    with pytest.raises(UsageError, match="one text"):
        off_the_line(["ask", "who", "am", "I"])
