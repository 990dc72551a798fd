"""Time to first token at the gateway, and the engine's own latencies."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from a40console.model.figures import Missing
from a40console.model.latency import FirstToken, Latency, Percentiles
from a40console.model.request import GatewayRow
from a40console.telemetry.blocks import Source
from a40console.telemetry.reading import HistogramName
from a40console.telemetry.windows import LONG_WINDOW_S, percentiles, sample_percentiles

_KEPT = 1024
"""More than a minute's, and than the gateway's rows: what is forgotten must not come again."""

_LISTED = 5


@dataclass(frozen=True, slots=True, order=True)
class _Sample:
    at_s: float
    ttft_s: float
    route: str


class FirstTokens:
    """Times to first token of one engine's requests: from request received to first content.

    Args:
        since_s: When the engine was there; what the gateway received before went to another one.
    """

    def __init__(self, *, since_s: float) -> None:
        self._since_s = since_s
        self._samples: OrderedDict[str, _Sample] = OrderedDict()

    def begin_again(self, since_s: float) -> None:
        """The engine was restarted: what was measured is its former life's."""
        self._since_s = since_s
        self._samples.clear()

    def observe(self, rows: Iterable[GatewayRow]) -> None:
        """Take what is new in the gateway's rows."""
        for row in rows:
            if row.received_at_s < self._since_s or row.first_token_at_s is None:
                continue
            if row.request_id not in self._samples:
                ttft_s = row.first_token_at_s - row.received_at_s
                sample = _Sample(row.first_token_at_s, ttft_s, row.route)
                self._samples[row.request_id] = sample
        while len(self._samples) > _KEPT:
            self._samples.popitem(last=False)

    def block(self, now_s: float, window_s: float = LONG_WINDOW_S) -> FirstToken | None:
        """Quantiles over the window and the last five, oldest first; None before any request.

        Of one route: each has its own first content (an agent's may be a thought, a completion's
        a letter). It is the one with most requests in the window, else the one used last.
        """
        if not self._samples:
            return None
        known = sorted(self._samples.values())
        used = Counter(sample.route for sample in known if sample.at_s >= now_s - window_s)
        route = used.most_common(1)[0][0] if used else known[-1].route
        ordered = [(one.at_s, one.ttft_s) for one in known if one.route == route]
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
