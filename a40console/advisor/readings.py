"""The figures that rules judge by, as plain numbers: None where one is missing or too old."""

from __future__ import annotations

from dataclasses import dataclass

from a40console.model.engine import EngineState
from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import (
    EngineInfo,
    Gpu,
    Host,
    KvCache,
    Requests,
    Slot,
    Snapshot,
    Throughput,
)

STALE_AFTER_S = 10.0
"""A block that is older judges nothing."""

KV_FULL_RATIO = 0.95
THROTTLED_MS_PER_S = 100.0
"""From here on the quota is felt; the kernel adds up the time of all cores."""

WORKING_PHASES = frozenset({"held", "queued", "prefill", "decode"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitEvidence:
    """The blocks of a snapshot that the limit is read from."""

    engine: EngineInfo
    throughput: Throughput
    requests: Requests
    slots: tuple[Slot, ...] | Missing
    kv_cache: KvCache
    gpus: tuple[Gpu, ...] | Missing
    host: Host

    @classmethod
    def of(cls, snapshot: Snapshot) -> LimitEvidence:
        """The evidence that a snapshot holds."""
        return cls(
            engine=snapshot.engine,
            throughput=snapshot.throughput,
            requests=snapshot.requests,
            slots=snapshot.slots,
            kv_cache=snapshot.kv_cache,
            gpus=snapshot.gpus,
            host=snapshot.host,
        )


def is_fresh(age_s: Figure) -> bool:
    """Whether a block of this age may be judged by."""
    age = number(age_s)
    return age is not None and age <= STALE_AFTER_S


def fresh(age_s: Figure, figure: Figure) -> float | None:
    """The number of a figure whose block is fresh."""
    return number(figure) if is_fresh(age_s) else None


@dataclass(frozen=True, slots=True)
class Readings:
    """One `LimitEvidence` with ages applied."""

    evidence: LimitEvidence

    @property
    def serving(self) -> bool:
        """Whether requests are being worked on as far as the engine's state goes."""
        engine = self.evidence.engine
        return engine.state is EngineState.SERVING and engine.paused is not True

    @property
    def held(self) -> int:
        """Requests at our own gate: always known."""
        return self.evidence.requests.held

    @property
    def waiting(self) -> float | None:
        """Requests in the engine's queue."""
        return fresh(self.evidence.requests.age_s, self.evidence.requests.waiting)

    @property
    def running(self) -> float | None:
        """Requests that the engine works on."""
        return fresh(self.evidence.requests.age_s, self.evidence.requests.running)

    @property
    def max_running(self) -> float | None:
        """How many requests the engine works on at most; a setting, so its age does not count."""
        return number(self.evidence.requests.max_running)

    @property
    def generation_tokens_per_s(self) -> float | None:
        """Speed over the window."""
        block = self.evidence.throughput
        return fresh(block.age_s, block.generation_tokens_per_s)

    @property
    def prefill_tokens_per_s(self) -> float | None:
        """Computed prompt tokens a second over the window."""
        block = self.evidence.throughput
        return fresh(block.age_s, block.prefill_tokens_per_s)

    @property
    def passes_per_s(self) -> float | None:
        """Engine steps a second over the window."""
        return fresh(self.evidence.throughput.age_s, self.evidence.throughput.passes_per_s)

    @property
    def kv_held_ratio(self) -> float | None:
        """Share of the KV cache that running requests hold."""
        return fresh(self.evidence.kv_cache.age_s, self.evidence.kv_cache.held_ratio)

    @property
    def throttled_ms_per_s(self) -> float | None:
        """How long the quota stopped us, a second."""
        return fresh(self.evidence.host.age_s, self.evidence.host.throttled_ms_per_s)

    @property
    def vcpu_used(self) -> float | None:
        """CPU time in use, in vCPU."""
        return fresh(self.evidence.host.age_s, self.evidence.host.cpu_used_vcpu)

    @property
    def vcpu_quota(self) -> float | None:
        """How many vCPU may be used."""
        return number(self.evidence.host.cpu_quota_vcpu)

    @property
    def working_slots(self) -> tuple[Slot, ...] | None:
        """Live requests in any phase but idle."""
        slots = self.evidence.slots
        if isinstance(slots, Missing):
            return None
        return tuple(slot for slot in slots if slot.phase in WORKING_PHASES)

    @property
    def fresh_gpus(self) -> tuple[Gpu, ...]:
        """GPUs that were read lately."""
        gpus = () if isinstance(self.evidence.gpus, Missing) else self.evidence.gpus
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
