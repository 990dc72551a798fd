"""Operations in words. Pure."""

from __future__ import annotations

from a40console.engines.transfer import Transfer
from a40console.model.figures import number


def transfer_in_words(moment: Transfer) -> str:
    """How far a download is and how fast it goes."""
    words = f"{moment.done_bytes / 1e6:.0f}"
    if (whole := number(moment.total_bytes)) is not None:
        words += f" of {whole / 1e6:.0f}"
    rate = number(moment.bytes_per_s)
    return f"{words} MB" if rate is None else f"{words} MB, {rate / 1e6:.1f} MB/s"
