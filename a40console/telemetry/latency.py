"""Time to first token at the gateway, and the engine's own latencies."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from a40console.model.figures import Missing
from a40console.model.request import GatewayRow
from a40console.model.snapshot import FirstToken, Latency, Percentiles
from a40console.telemetry.blocks import Source
from a40console.telemetry.reading import HistogramName
from a40console.telemetry.windows import LONG_WINDOW_S, percentiles, sample_percentiles

_KEPT = 2048
_LISTED = 5


class FirstTokens:
    """Times to first token of the gateway's requests: from request received to first content."""

    def __init__(self) -> None:
        self._samples: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def observe(self, rows: Iterable[GatewayRow]) -> None:
        """Take what is new in the gateway's rows."""
        for row in rows:
            if row.first_token_at_s is not None and row.request_id not in self._samples:
                ttft_s = row.first_token_at_s - row.received_at_s
                self._samples[row.request_id] = (row.first_token_at_s, ttft_s)
        while len(self._samples) > _KEPT:
            self._samples.popitem(last=False)

    def block(self, now_s: float, window_s: float = LONG_WINDOW_S) -> FirstToken | None:
        """Quantiles over the window and the last five, oldest first; None before any request."""
        if not self._samples:
            return None
        ordered = sorted(self._samples.values())
        recent = [ttft_s for at_s, ttft_s in ordered if at_s >= now_s - window_s]
        p50, p95 = sample_percentiles(recent)
        return FirstToken(
            p50=p50,
            p95=p95,
            count=len(recent),
            last=tuple(ttft_s for _, ttft_s in ordered[-_LISTED:]),
            origin="gateway",
        )


def latency(source: Source, first_tokens: FirstTokens, now_s: float) -> Latency:
    """Latencies over the last minute; a pass yields several tokens under speculation."""
    return Latency(
        window_s=LONG_WINDOW_S,
        ttft_s=first_tokens.block(now_s) or _engine_ttft(source),
        pass_s=_engine(source, "pass_s"),
        queue_s=_engine(source, "queue_s"),
    )


def _engine(source: Source, name: HistogramName) -> Percentiles | Missing:
    change = source.change()
    if isinstance(change, Missing):
        return change
    if source.name.startswith("llamacpp"):
        return Missing("llama.cpp keeps no histograms")
    return percentiles(change.histogram(name))


def _engine_ttft(source: Source) -> FirstToken | Missing:
    """The engine's own histogram, where no request passes through a gateway of ours."""
    found = _engine(source, "ttft_s")
    if isinstance(found, Missing):
        return found
    return FirstToken(p50=found.p50, p95=found.p95, count=found.count, last=(), origin="engine")
