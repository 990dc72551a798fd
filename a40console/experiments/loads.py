"""Several streams at once, each asking one request after the other: a closed loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from a40console.experiments.asking import Asking, Place, gone
from a40console.experiments.bench import ArmFailedError, ArmRepeat, Bench, Reply, Request
from a40console.experiments.prompts import looped_share, nonce
from a40console.experiments.rates import failed, failures
from a40console.model.run_record import Sample
from a40console.model.run_result import Doubt

FAILED_SHARE_THAT_INVALIDATES = 0.05
LOOPED_SHARE_THAT_IS_TOLD = 0.5

_REPEAT_STRIDE = 1009
"""Between the seeds of one repeat and the next: more than a repeat has requests, mostly."""

Writer: TypeAlias = Callable[[str, int], str]
"""A prompt from a mark that no other begins with, and a seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """So many streams of so many requests each, all of one kind."""

    arm: str
    streams: int
    requests: int
    """Measured ones of each stream; one more warms up before the arm begins."""

    output_tokens: int
    temperature: float
    text: Writer

    @property
    def total(self) -> int:
        """Requests of one repeat, warm-ups among them."""
        return self.streams * (self.requests + 1)


async def run_load(bench: Bench, asking: Asking, load: Load, repeat: int) -> None:
    """One repeat of an arm; what came of it is in the bench's samples.

    Raises:
        ArmFailedError: Where not one request was answered, or none is any more.
        RunStoppedError: Where the run is to end.
    """
    streams = [
        [_request(bench, asking, load, place) for place in _places(load, stream, repeat)]
        for stream in range(load.streams)
    ]
    replies = [*await bench.client.closed([stream[:1] for stream in streams])]
    async with bench.arm(load.arm, repeat):
        replies += await bench.client.closed([stream[1:] for stream in streams])
    told = failures(reply.sample for reply in replies)
    if told and (all(reply.sample.error for reply in replies) or await gone(bench, asking)):
        raise ArmFailedError(f"{load.arm}: {told}")
    if load.temperature > 0 and not bench.simulated:
        _doubt_loops(bench, replies)


def doubted_failures(
    samples: Iterable[Sample], cut: ArmRepeat | None = None
) -> tuple[str, list[Doubt]]:
    """What failed in a whole run.

    Args:
        samples: Of the whole run.
        cut: The arm's repeat in which the target went away, if it did: what was measured before
            stands.

    Returns:
        Why nothing of the run stands, empty where too little failed for that; and the doubt.
    """
    listed = list(samples)
    told = failures(listed)
    if not told:
        return "", []
    before = [sample for sample in listed if (sample.arm, sample.repeat) != cut]
    share = sum(map(failed, before)) / len(before) if before else 0.0
    invalid = share >= FAILED_SHARE_THAT_INVALIDATES
    return (told if invalid else ""), [Doubt(code="errors", text=told, invalidates=invalid)]


def _doubt_loops(bench: Bench, replies: Sequence[Reply]) -> None:
    """Tell once that answers go round in circles."""
    shares = [looped_share(reply.text) for reply in replies if reply.text]
    if shares and sum(shares) / len(shares) > LOOPED_SHARE_THAT_IS_TOLD:
        text = "more than half of the words go round in circles, which decodes cheaply"
        bench.doubt(Doubt(code="looped-text", text=text, invalidates=False))


def _places(load: Load, stream: int, repeat: int) -> Iterable[Place]:
    """A stream's requests in order; the first warms up."""
    for number in range(load.requests + 1):
        index = number * load.streams + stream
        yield Place(arm=load.arm, repeat=repeat, index=index, warm_up=number == 0)


def _request(bench: Bench, asking: Asking, load: Load, place: Place) -> Request:
    mark = nonce(asking.run_mark, load.arm, place.repeat, place.index)
    seed = bench.seed + _REPEAT_STRIDE * place.repeat + place.index
    return asking.request(
        [{"role": "user", "content": load.text(mark, seed)}],
        place,
        output_tokens=load.output_tokens,
        temperature=load.temperature,
        seed=seed,
    )
