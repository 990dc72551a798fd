"""How far the download of a start is, in the operator's words."""

from __future__ import annotations

from a40console.engines.transfer import TransferRate
from a40console.model.figures import Missing
from a40console.operations.words import transfer_in_words


def test_bytes_and_rate_as_far_as_they_are_known() -> None:
    rate = TransferRate()
    assert transfer_in_words(rate.read(0.0, 2_000_000, 98_000_000)) == "2 of 98 MB"
    assert transfer_in_words(rate.read(2.0, 50_000_000, 98_000_000)) == "50 of 98 MB, 24.0 MB/s"
    assert transfer_in_words(TransferRate().read(0.0, 3_000_000, Missing("?"))) == "3 MB"
