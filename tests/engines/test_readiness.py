"""Starts as real engines log them: phases, progress, stalls, an estimate, and the door opening."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines.phases import ORDER
from a40console.engines.readiness import HealthProbe, PhaseTracker, eta_s, wait_ready
from a40console.errors import NotServingError, TimedOutError
from a40console.model.engine import Endpoint
from a40console.model.figures import Estimated, Missing

DATA = Path(__file__).parents[1] / "data" / "engine_logs"
CLOCK = re.compile(r"\d\d-\d\d (\d\d):(\d\d):(\d\d)")


def tracker(kind: Literal["vllm", "llamacpp"] = "vllm", stall_after_s: float = 120) -> PhaseTracker:
    return PhaseTracker(kind, started_s=0, stall_after_s=stall_after_s)


def replay(name: str, kind: Literal["vllm", "llamacpp"] = "vllm") -> list[tuple[str, str]]:
    """Phases and words in the order in which a recorded start shows them."""
    followed, shown, now_s, first_s = tracker(kind), [("starting", "")], 0.0, None
    for line in (DATA / name).read_text(errors="replace").splitlines():
        if (match := CLOCK.search(line)) is not None:
            hours, minutes, seconds = map(int, match.groups())
            at_s = hours * 3600 + minutes * 60 + seconds
            first_s = at_s if first_s is None else first_s
            now_s = at_s - first_s
        followed.feed(line, now_s)
        assert followed.stall(now_s) is None
        if shown[-1] != (followed.phase, followed.progress):
            shown.append((followed.phase, followed.progress))
    return shown


def test_a_compiled_start_of_vllm() -> None:
    assert replay("startup-quiet-compiled.log") == [
        ("starting", ""),
        ("starting", "LlamaForCausalLM"),
        ("starting", "engine core"),
        ("starting", "workers (1)"),
        ("load", ""),
        ("load", "weights 0/1"),
        ("load", "weights 1/1"),
        ("load", "weights loaded in 0.21 s"),
        ("compile", ""),
        ("compile", "compiled"),
        ("compile", "profiled in 2.28 s"),
        ("ready", ""),
    ]


@pytest.mark.parametrize("name", ["startup-ngram.log", "serve-0.27.1.log", "startup-033rust.log"])
def test_other_releases_and_the_rust_front_end_go_through_the_phases(name: str) -> None:
    phases = [phase for phase, _ in replay(name)]
    assert phases == sorted(phases, key=ORDER.index)
    assert {"starting", "load", "ready"} <= set(phases)


def test_a_start_of_llama_server() -> None:
    shown = replay("llama-log_startup_np4.txt", "llamacpp")
    assert shown == [
        ("starting", ""),
        ("load", ""),
        ("load", "weights loaded"),
        ("load", "4 slots of 2048 tokens"),
        ("ready", ""),
    ]


DOWNLOAD = "model-00002-of-00004.safetensors:  31%|███   | 1.52G/4.90G [00:12<00:27, 123MB/s]"
FILES = "Fetching 8 files:  25%|██▌       | 2/8 [00:05<00:15,  2.5s/it]"
WEIGHTS = "(Worker pid=1) Loading safetensors checkpoint shards:  38% Completed | 3/8 [00:09<00:15]"
GRAPHS = "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  12%|█▏ | 8/67 [00:01<00:10]"
COMPILED = "INFO [backends.py:399] Compiling a graph for compile range (1, 2048) takes 21.40 s"
CACHED = "INFO [decorators.py:320] [backbone] Directly load AOT compilation from path /root/x"
KEPT = "INFO [backends.py:383] Cache the graph of compile range (1, 2048) for later use"
TUNING = "INFO [autotuner.py:258] flashinfer.jit: [Autotuner]: Autotuning process starts ..."
NO_RATE = "model-00002-of-00004.safetensors:  31%|███   | 1.52G/4.90G [00:12<?, ?B/s]"
HUB = "Downloading (incomplete total...):  45%|████▌     | 3.1G/6.9G [00:26<00:32, 118MB/s]"
FETCHED = "INFO [weight_utils.py:533] Time spent downloading weights for a/b: 41.500000 seconds"
AHEAD = "INFO [weight_utils.py:1043] Prefetching checkpoint files: 20% (2/8)"
DRAFT = "INFO [gpu_model_runner.py:5071] Loading drafter model..."
LOADED = "INFO [gpu_model_runner.py:5150] Model loading took 16.9 GiB memory and 21.123456 seconds"
DECODE_GRAPHS = "Capturing decode CUDA graphs (FULL):  16%|█▌  | 3/19 [00:00<00:03,  4.9it/s]"
ENCODER_GRAPHS = "INFO [encoder_cudagraph.py:253] Capturing 12 encoder CUDA graphs; capture axes"
CAPTURED = "INFO [gpu_model_runner.py:6582] Graph capturing finished in 12 secs, took 0.61 GiB"


@pytest.mark.parametrize(
    ("line", "phase", "words"),
    [
        (DOWNLOAD, "download", "1.52G of 4.90G of a file, 123MB/s"),
        (NO_RATE, "download", "1.52G of 4.90G of a file"),
        (HUB, "download", "3.1G of 6.9G, 118MB/s"),
        (FILES, "download", "file 2 of 8"),
        (FETCHED, "load", "fetched in 41 s"),
        (AHEAD, "load", "read ahead 2/8"),
        (WEIGHTS, "load", "weights 3/8"),
        (DRAFT, "load", "the draft model"),
        (LOADED, "load", "weights loaded, 16.9 GiB"),
        (COMPILED, "compile", "range (1, 2048) compiled"),
        (CACHED, "compile", "from the cache"),
        (KEPT, "compile", "range (1, 2048) kept"),
        (TUNING, "compile", "tuning kernels"),
        (GRAPHS, "capture", "graphs 8/67"),
        (DECODE_GRAPHS, "capture", "graphs 3/19"),
        (ENCODER_GRAPHS, "capture", ""),
        (CAPTURED, "capture", "graphs captured in 12 s"),
    ],
)
def test_progress_on_a_gpu(line: str, phase: str, words: str) -> None:
    followed = tracker()
    assert followed.feed(line, 1.0)
    assert (followed.phase, followed.progress) == (phase, words)


def test_the_same_progress_twice_is_no_progress() -> None:
    followed = tracker()
    line = "Loading safetensors checkpoint shards:  38% Completed | 3/8 [00:09<00:15]"
    assert followed.feed(line, 1.0)
    assert not followed.feed(line, 2.0)
    assert followed.feed(line.replace("3/8", "4/8"), 3.0)


def test_waiting_for_the_engine_core_for_ever_is_a_stall() -> None:
    followed = tracker()
    followed.feed("(APIServer pid=1) INFO 11-29 13:00:00 [core.py:133] Initializing a V1 LLM", 1.0)
    for second in range(10, 300, 10):
        line = f"DEBUG 11-29 13:00:{second % 60:02} [utils.py:1407] Waiting for 1 local, 0 remote "
        assert not followed.feed(line + "core engine proc(s) to start.", second)
    assert followed.stall(100) is None
    stall = followed.stall(290)
    assert stall is not None
    assert stall.for_s == pytest.approx(289)
    assert stall.cause == "the engine core does not answer"
    assert "Waiting for 1 local" in stall.evidence
    assert stall.remedy


def test_the_older_words_for_waiting_are_known_too() -> None:
    followed = tracker()
    assert not followed.feed("INFO 05-01 10:00:00 Waiting for 1 core engine proc(s) to start", 130)
    assert followed.stall(130) is not None


def test_a_hang_in_nccl_is_named() -> None:
    followed = tracker()
    followed.feed(
        "(Worker pid=9) INFO 11-29 13:00:00 [pynccl.py:111] vLLM is using nccl==2.27.5", 5
    )
    stall = followed.stall(130)
    assert stall is not None
    assert stall.cause == "stuck in NCCL initialisation"
    assert "NCCL_DEBUG=INFO" in stall.remedy


def test_workers_that_do_not_answer_are_told_from_those_that_load() -> None:
    followed = tracker()
    followed.feed("Loading safetensors checkpoint shards: 100% Completed | 8/8 [00:09<00:00]", 10)
    for second in (70, 130, 190):
        line = "No available shared memory broadcast block found in 60 seconds. This typically"
        assert not followed.feed(line, second)
    stall = followed.stall(190)
    assert stall is not None
    assert "workers do not answer" in stall.cause


@pytest.mark.parametrize(
    ("line", "cause", "remedy"),
    [
        (DOWNLOAD, "the download stands still", "network"),
        (WEIGHTS, "no more weights are loaded", "local copy"),
        (COMPILED, "the compiling says nothing new", "enforce_eager"),
        (GRAPHS, "no more graphs are captured", "max_running"),
        ("Resolved architecture: LlamaForCausalLM", "nothing new in phase starting", "last lines"),
    ],
)
def test_a_standstill_is_told_by_its_phase(line: str, cause: str, remedy: str) -> None:
    followed = tracker()
    followed.feed(line, 1.0)
    stall = followed.stall(130)
    assert stall is not None
    assert stall.cause == cause
    assert remedy in stall.remedy
    assert stall.evidence == line.strip()


def test_a_ready_engine_never_stalls() -> None:
    followed = tracker()
    followed.feed("INFO:     Application startup complete.", 30)
    assert followed.stall(10_000) is None
    assert followed.durations_s == {"starting": 30}


def test_an_engine_that_answers_is_ready_whatever_it_wrote() -> None:
    followed = tracker()
    followed.feed("Starting to load model x...", 20)
    followed.serve(25)
    assert followed.phase == "ready"
    assert followed.durations_s == {"starting": 20, "load": 5}


@given(st.lists(st.text(max_size=40), max_size=30))
def test_no_line_breaks_the_tracker(lines: list[str]) -> None:
    followed = tracker()
    for at_s, line in enumerate(lines):
        followed.feed(line, at_s)
    assert followed.phase in ORDER


PAST = [
    {"starting": 30.0, "load": 10.0, "compile": 60.0},
    {"starting": 34.0, "load": 12.0, "compile": 50.0},
    {"starting": 38.0, "load": 14.0, "compile": 40.0},
]


def test_the_estimate_is_what_is_left_of_the_median_and_the_phases_to_come() -> None:
    assert eta_s("starting", 10, PAST) == Estimated(24 + 12 + 50)
    assert eta_s("compile", 45, PAST) == Estimated(5)


def test_between_the_median_and_the_longest_only_what_comes_counts() -> None:
    assert eta_s("starting", 36, PAST) == Estimated(62)


def test_longer_than_ever_promises_nothing() -> None:
    assert eta_s("load", 20, PAST) == Missing("longer than any earlier start")


@pytest.mark.parametrize(("phase", "history"), [("load", []), ("download", PAST), ("?", PAST)])
def test_nothing_to_compare_with_is_no_estimate(phase: str, history: Any) -> None:
    assert isinstance(eta_s(phase, 1, history), Missing)


@given(
    st.sampled_from(ORDER[:-1]),
    st.floats(0, 1e4),
    st.lists(st.dictionaries(st.sampled_from(ORDER[:-1]), st.floats(0, 1e4)), max_size=5),
)
def test_an_estimate_is_never_negative(
    phase: str, phase_s: float, history: list[dict[str, float]]
) -> None:
    eta = eta_s(phase, phase_s, history)
    assert isinstance(eta, Missing) or (isinstance(eta, Estimated) and eta.value >= 0)


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def probe(*answers: httpx.Response | Exception) -> HealthProbe:
    """Answers in turn, the last one for ever."""
    left = list(answers)

    def answer(_: httpx.Request) -> httpx.Response:
        now = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(now, Exception):
            raise now
        return now

    return HealthProbe(Endpoint("http://localhost"), transport=httpx.MockTransport(answer))


REFUSED = httpx.ConnectError("refused")
LOADING = httpx.Response(503, json={"error": {"message": "Loading model"}})
READY = httpx.Response(200)


async def test_refused_then_loading_then_ready() -> None:
    clock = Clock()
    door = probe(REFUSED, REFUSED, LOADING, READY)
    assert [(await door.ask()).state for _ in range(4)] == [
        "refused",
        "refused",
        "loading",
        "ready",
    ]
    took_s = await wait_ready(
        probe(REFUSED, LOADING, READY), lambda: True, timeout_s=9, clock=clock, sleep=clock.sleep
    )
    assert took_s == 0.5


async def test_the_other_answers_are_told_apart() -> None:
    dead, silent = probe(httpx.Response(503)), probe(httpx.ReadTimeout("slow"))
    assert (await dead.ask()).state == "failing"
    assert (await silent.ask()).state == "silent"


async def test_an_engine_that_ended_is_not_waited_for() -> None:
    with pytest.raises(NotServingError):
        await wait_ready(probe(REFUSED), lambda: False, timeout_s=9)


async def test_another_program_that_answers_in_its_place_is_not_it() -> None:
    with pytest.raises(NotServingError):
        await wait_ready(probe(READY), lambda: False, timeout_s=9)


async def test_it_is_not_waited_for_for_ever() -> None:
    clock = Clock()
    with pytest.raises(TimedOutError) as late:
        await wait_ready(probe(LOADING), lambda: True, timeout_s=60, clock=clock, sleep=clock.sleep)
    assert clock.now_s == pytest.approx(60, abs=0.3)
    assert "503" in late.value.evidence
