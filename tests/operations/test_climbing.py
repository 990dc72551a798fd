"""Which rung of a ladder is tried after one that failed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from a40console.engines.diagnosis import StartFailureKind
from a40console.errors import CheckFailedError, ConsoleError, RefusedError, TimedOutError
from a40console.model.profile import Placement, Profile
from a40console.operations.climbing import Climber
from a40console.operations.ending import FailedStartError
from a40console.operations.life import Wanted
from a40console.operations.memory import GpuTakenError
from a40console.operations.status import EngineStatus

SHORT = Placement(max_model_len=4096)
OTHER_WORDS = Placement(arguments=("--b",))
TALL = Profile(
    name="tall",
    kind="vllm",
    model="m",
    arguments=("--a",),
    placements=(SHORT, Placement(max_model_len=2048), OTHER_WORDS),
)


@dataclass
class FailingLife:
    """A life whose starts fail as a test says, by their rung; all others serve."""

    failures: dict[int, ConsoleError]
    tried: list[int] = field(default_factory=list)
    status: EngineStatus = field(default_factory=EngineStatus)

    async def bring_up(self, wanted: Wanted) -> None:
        self.tried.append(wanted.rung)
        if wanted.rung in self.failures:
            raise self.failures[wanted.rung]


def failed(kind: StartFailureKind, code: str) -> FailedStartError:
    error = FailedStartError(f"tall did not start: {code}")
    error.kind, error.code = kind, code
    return error


async def climb(
    failures: dict[int, ConsoleError], profile: Profile = TALL, rung: int = 0
) -> tuple[list[int], list[str]]:
    """The rungs that were tried, and what was told."""
    life, told = FailingLife(failures), []

    def note(kind: str, text: str, *rest: object) -> None:
        told.append(f"{kind} {text}")

    climber = Climber(life, note)  # type: ignore[arg-type]
    try:
        await climber.climb(Wanted(profile, rung))
    except ConsoleError as error:
        told.append(f"raised {error.message}")
    return life.tried, told


@pytest.mark.parametrize(
    "error",
    [
        failed("out_of_memory", "kv-cache-too-small"),
        failed("out_of_memory", "cuda-oom"),
        failed("rejected", "context-beyond-model"),
        failed("rejected", "settings-refused"),
    ],
)
async def test_what_a_placement_may_mend_goes_on(error: ConsoleError) -> None:
    tried, told = await climb({0: error})
    assert tried == [0, 1]
    assert len(told) == 1
    assert "no other placement" not in told[0]


@pytest.mark.parametrize(
    "error",
    [
        failed("other", "disk-full"),
        failed("other", "address-in-use"),
        failed("other", "model-gated"),
        failed("other", "model-unknown"),
        failed("other", "program-missing"),
        failed("other", "driver-mismatch"),
        RefusedError("tall cannot run here"),
        RefusedError("The port of tall is taken"),
        TimedOutError("tall: it does not serve in 4 h"),
        CheckFailedError("tall serves, but does not stand the canary"),
        ConsoleError("tall could not be started: No space left on device"),
    ],
)
@pytest.mark.parametrize("rung", [0, 1])
async def test_what_no_placement_mends_ends_the_climb(error: ConsoleError, rung: int) -> None:
    tried, told = await climb({rung: error}, rung=rung)
    assert tried == [rung]
    assert "no other placement mends that" in told[0]
    assert told[1:] == [f"raised {error.message}"]


@pytest.mark.parametrize("code", ["unknown-flag", "speculation-key", "too-few-gpus"])
async def test_what_other_arguments_alone_mend_goes_on_with_those(code: str) -> None:
    refused = failed("rejected", code)
    assert (await climb({0: refused}))[0] == [0, 3]
    alike = replace(TALL, placements=(SHORT, Placement(arguments=("--a",))))
    tried, told = await climb({0: refused}, alike)
    assert tried == [0]
    assert told[-1] == f"raised tall did not start: {code}"


async def test_a_gpu_that_is_taken_is_waited_for_again_only_by_what_asks_for_less() -> None:
    taken = GpuTakenError("tall needs 90% of the GPU's memory, and it is not free")
    tried, told = await climb({0: taken})
    assert tried == [0]
    assert "no other placement mends that" in told[0]
    shares = (
        Placement(max_running=4),
        Placement(gpu_memory_utilization=0.95),
        Placement(arguments=("--gpu-memory-utilization", "0.5")),
        Placement(gpu_memory_utilization=0.4),
    )
    ladder = replace(TALL, gpu_memory_utilization=0.9, placements=shares)
    assert (await climb({0: taken}, ladder))[0] == [0, 3]
    assert (await climb({0: taken, 3: taken}, ladder))[0] == [0, 3, 4]


async def test_the_last_rungs_failure_is_raised() -> None:
    full = failed("out_of_memory", "cuda-oom")
    tried, told = await climb(dict.fromkeys(range(4), full))
    assert tried == [0, 1, 2, 3]
    assert [each.partition(" ")[0] for each in told] == ["engine.placement_failed"] * 4 + ["raised"]
    assert not any("no other placement" in each for each in told)


async def test_without_a_ladder_there_is_one_try_and_nothing_is_told_of_rungs() -> None:
    full = failed("out_of_memory", "cuda-oom")
    tried, told = await climb({0: full}, replace(TALL, placements=()))
    assert (tried, told) == ([0], ["raised tall did not start: cuda-oom"])
