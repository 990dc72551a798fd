"""The figures that rules judge by, as plain numbers: None where one is missing or too old."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from a40console.advisor.evidence import Evidence, Stalls, Trends
from a40console.advisor.wording import brief, duration
from a40console.model.engine import EngineState
from a40console.model.figures import Figure, Missing, is_estimate, number
from a40console.model.snapshot import Gpu, Slot, Snapshot

STALE_AFTER_S = 10.0
"""A block that is older judges nothing."""

ROOM_RATIO = 0.90
"""Below this share of its capacity a resource is no limit."""

KV_FULL_RATIO = 0.95
THROTTLED_MS_PER_S = 100.0
"""From here on the quota is felt; the kernel adds up the time of all cores."""

PREFILL_COVERED_RATIO = 0.8
"""A mean over a window says how fast prompts are computed where prefill filled this share of it."""

WORKING_PHASES = frozenset({"held", "queued", "prefill", "decode"})


def is_fresh(age_s: Figure) -> bool:
    """Whether a block of this age may be judged by."""
    age = number(age_s)
    return age is not None and age <= STALE_AFTER_S


def fresh(age_s: Figure, figure: Figure) -> float | None:
    """The number of a figure whose block is fresh."""
    return number(figure) if is_fresh(age_s) else None


def shown(figure: Figure, form: Callable[[float], str]) -> str:
    """A figure as a text names it: ≈ before an estimate, empty where it is missing."""
    value = number(figure)
    if value is None:
        return ""
    return f"≈ {form(value)}" if is_estimate(figure) else form(value)


@dataclass(frozen=True, slots=True)
class Readings:
    """One snapshot with ages applied, and the short past beside it."""

    snapshot: Snapshot
    extra: Evidence = field(default_factory=Evidence)

    @property
    def trends(self) -> Trends:
        """The short past."""
        return self.extra.trends

    @property
    def stalls(self) -> Stalls:
        """What the kernel says of waiting."""
        return self.extra.stalls

    @property
    def serving(self) -> bool:
        """Whether requests are being worked on as far as the engine's state goes."""
        engine = self.snapshot.engine
        return engine.state is EngineState.SERVING and engine.paused is not True

    @property
    def held(self) -> int:
        """Requests at our own gate: always known."""
        return self.snapshot.requests.held

    @property
    def waiting(self) -> float | None:
        """Requests in the engine's queue."""
        return fresh(self.snapshot.requests.age_s, self.snapshot.requests.waiting)

    @property
    def running(self) -> float | None:
        """Requests that the engine works on."""
        return fresh(self.snapshot.requests.age_s, self.snapshot.requests.running)

    @property
    def max_running(self) -> float | None:
        """How many requests the engine works on at most; a setting, so its age does not count.

        Where the engine does not tell, what was asked of it.
        """
        return number(self.most_running)

    @property
    def most_running(self) -> Figure:
        """`max_running` as a figure."""
        told = self.snapshot.requests.max_running
        return self.extra.asked_max_running if isinstance(told, Missing) else told

    @property
    def generation_tokens_per_s(self) -> float | None:
        """Speed over the window."""
        block = self.snapshot.throughput
        return fresh(block.age_s, block.generation_tokens_per_s)

    @property
    def prefill_tokens_per_s(self) -> float | None:
        """Computed prompt tokens a second over the window."""
        block = self.snapshot.throughput
        return fresh(block.age_s, block.prefill_tokens_per_s)

    @property
    def prefill_speed(self) -> Figure:
        """Prompt tokens computed a second of prefill, where prefills filled most of the window.

        A live request counts as in prefill from its arrival to its first token: too long rather
        than too short, so the speed is too low rather than too high.
        """
        block = self.snapshot.throughput
        if not self.prefill_tokens_per_s:
            return Missing("no prompt computed in the window")
        spans = sorted(
            (max(0.0, age_s - ttft_s), min(age_s, block.window_s))
            for slot in self.slots or ()
            if (age_s := number(slot.age_s)) is not None
            and (ttft_s := age_s if slot.phase == "prefill" else number(slot.ttft_s)) is not None
            and slot.phase in ("prefill", "decode")
        )
        covered_s = end_s = 0.0
        for newest_s, oldest_s in spans:  # both are ages
            covered_s += max(0.0, oldest_s - max(newest_s, end_s))
            end_s = max(end_s, oldest_s)
        if covered_s < PREFILL_COVERED_RATIO * block.window_s:
            return Missing("mostly no prefill in the window")
        return block.prefill_tokens_per_s

    @property
    def passes_per_s(self) -> float | None:
        """Engine steps a second over the window."""
        return fresh(self.snapshot.throughput.age_s, self.snapshot.throughput.passes_per_s)

    @property
    def speed_window(self) -> str:
        """The window of the three rates, as evidence names it."""
        return f"({duration(self.snapshot.throughput.window_s)})"

    @property
    def kv_held_ratio(self) -> float | None:
        """Share of the KV cache that running requests hold."""
        return fresh(self.snapshot.kv_cache.age_s, self.snapshot.kv_cache.held_ratio)

    @property
    def throttled_ms_per_s(self) -> float | None:
        """How long the quota stopped us, a second: its mean over the last seconds where known.

        One second alone flickers: the kernel counts by periods of 100 ms, and work comes in bursts.
        """
        host = self.snapshot.host
        if not is_fresh(host.age_s) or isinstance(host.throttled_ms_per_s, Missing):
            return None
        return number(self._throttled)

    @property
    def _throttled(self) -> Figure:
        mean = self.trends.throttled_ms_per_s
        return self.snapshot.host.throttled_ms_per_s if isinstance(mean, Missing) else mean

    @property
    def throttled_rate(self) -> str:
        """The throttling as evidence names it."""
        return shown(self._throttled, lambda rate: f"{brief(rate)} ms/s")

    @property
    def throttled_window(self) -> str:
        """What the throttling was averaged over."""
        known = number(self.trends.throttled_ms_per_s) is not None
        return f"({duration(self.trends.short_s)})" if known else ""

    @property
    def vcpu_used(self) -> float | None:
        """CPU time in use, in vCPU."""
        return fresh(self.snapshot.host.age_s, self.snapshot.host.cpu_used_vcpu)

    @property
    def vcpu_quota(self) -> float | None:
        """How many vCPU may be used."""
        return number(self.snapshot.host.cpu_quota_vcpu)

    @property
    def vcpu_use(self) -> str:
        """Use and quota as evidence names them."""
        host = self.snapshot.host
        return (
            f"{shown(host.cpu_used_vcpu, brief)} of {shown(host.cpu_quota_vcpu, brief)} vCPU used"
        )

    @property
    def unlimited(self) -> bool:
        """Whether no quota is set, so that nothing could count throttling."""
        return self.snapshot.host.quota_origin in ("affinity", "host")

    @property
    def slots(self) -> tuple[Slot, ...] | None:
        """Live requests in any phase but idle."""
        slots = self.snapshot.slots
        if isinstance(slots, Missing):
            return None
        return tuple(slot for slot in slots if slot.phase in WORKING_PHASES)

    @property
    def fresh_gpus(self) -> tuple[Gpu, ...]:
        """GPUs that were read lately."""
        gpus = () if isinstance(self.snapshot.gpus, Missing) else self.snapshot.gpus
        return tuple(gpu for gpu in gpus if is_fresh(gpu.age_s))

    @property
    def throttle_words(self) -> tuple[str, ...] | None:
        """What holds clocks down, over all GPUs; None unless every GPU told."""
        words: list[str] = []
        for gpu in self.fresh_gpus:
            if isinstance(gpu.throttle_reasons, Missing):
                return None
            words += [f"GPU {gpu.index}: {reason}" for reason in gpu.throttle_reasons]
        return tuple(words) if self.fresh_gpus else None

    @property
    def works(self) -> bool:
        """Whether anything is seen to be worked on, or to wait."""
        signs = (self.running, self.waiting, self.held, self.generation_tokens_per_s)
        return any(signs) or bool(self.slots)

    @property
    def is_idle(self) -> bool:
        """Whether it is known that no request is anywhere."""
        return self.running == 0 and self.waiting == 0 and not self.held and not self.slots
