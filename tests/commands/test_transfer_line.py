"""What a transfer's line says: ≈ before every guess, and what the bytes are."""

from __future__ import annotations

from a40console.commands.transfer import in_words
from a40console.engines.transfer import Transfer, TransferRate
from a40console.model.figures import Estimated, Figure, Missing


def moment(total_bytes: Figure) -> Transfer:
    rate = TransferRate()
    rate.read(0.0, 0, total_bytes)
    return rate.read(4.0, 1_200_000_000, total_bytes)


def test_what_is_guessed_says_so_and_what_is_known_does_not() -> None:
    assert in_words(moment(2_400_000_000)) == "1.2 GB of 2.4 GB, 300.0 MB/s, ≈4 s left"
    guessed = in_words(moment(Estimated(2_400_000_000)), "unpacked")
    assert guessed == "1.2 GB of ≈2.4 GB unpacked, 300.0 MB/s, ≈4 s left"


def test_without_a_total_nothing_is_said_of_what_is_left() -> None:
    assert in_words(moment(Missing("more than estimated"))) == "1.2 GB, 300.0 MB/s"
    assert in_words(moment(1_200_000_000)).endswith("0 s left")
