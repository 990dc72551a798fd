"""Our load client beside `vllm bench serve`: the same workload on the same server, in one run.

    python -m tests.bench.load_generator --url URL --model NAME --peer VLLM --tokenizer PATH
    python -m tests.bench.load_generator --sim --peer VLLM --tokenizer PATH

The two take turns (ours, theirs, theirs, ours, …), each round with prompts of its own, so that none
is served from a cache. Prints throughput, time to first token, time between pieces and the client's
CPU per 1,000 tokens of each, the ratio pair by pair with its interval, and what the engine itself
counted; exit code 1 where a figure is more than 3 % apart beyond noise, or our CPU is higher. With
`--sim` a simulated engine serves 64 streams at 1,200 tok/s, and then at multiples of it: where a
client's figures leave the engine's, it distorts.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

from a40console.model.run_result import Interval
from a40console.model.statistics import paired_ratio
from a40console.sim.sheets import SHEETS
from tests.bench.gateway_load import free_port
from tests.bench.gateway_peers import started
from tests.bench.load_rounds import TIMED, Peer, Round, Workload, alternate

SIM_MODEL = "kimi-linear-48b"
SIM_STREAMS = 64
SIM_TOKENS_PER_S = 1200.0
SIM_TIMES = (1, 2, 4)
AGREEMENT = 0.03
CPU = "CPU s per 1,000 tokens"
PLAIN, MARKDOWN = "{:24} {:>10} {:>10}   {}", "| {} | {} | {} | {} |"


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def figures(rounds: Sequence[Round]) -> dict[str, float]:
    """All rounds of one client together, times in milliseconds."""
    ttfts = [value * 1000 for each in rounds for value in each.ttfts_s]
    gaps = [value * 1000 for each in rounds for value in each.gaps_s]
    tokens = sum(each.tokens for each in rounds)
    return {
        "tok/s": tokens / sum(each.seconds for each in rounds),
        "TTFT p50 ms": median(ttfts),
        "TTFT mean ms": fmean(ttfts),
        "between p50 ms": median(gaps),
        "between mean ms": fmean(gaps),
        "between p99 ms": percentile(gaps, 0.99),
        CPU: sum(each.cpu_s for each in rounds) / tokens * 1000,
    }


def engine_mean_ms(rounds: Sequence[Round], name: str) -> float:
    total_s = sum(each.engine.get(f"{name}_sum", 0.0) for each in rounds)
    count = sum(each.engine.get(f"{name}_count", 0.0) for each in rounds)
    return total_s / count * 1000 if count else float("nan")


def agrees(name: str, pairs: Interval) -> bool:
    """Whether a figure of both may be the same within 3 %; ours may take less CPU."""
    if name == CPU:
        return pairs.low <= 1
    return pairs.low <= 1 + AGREEMENT and pairs.high >= 1 - AGREEMENT


def tell(seen: dict[str, list[Round]], *, markdown: bool) -> list[str]:
    """Print the table; the figures that do not agree."""
    apart = []
    ours, theirs = figures(seen["ours"]), figures(seen["theirs"])
    layout = MARKDOWN if markdown else PLAIN
    print(layout.format("", "ours", "vllm bench", "ratio, pair by pair"))
    if markdown:
        print("|---|--:|--:|--:|")
    for name, value in ours.items():
        left, right = ([figures([each])[name] for each in seen[who]] for who in ("theirs", "ours"))
        pairs = paired_ratio(left, right)
        told = f"{value / theirs[name]:.3f} in all"
        if isinstance(pairs, Interval):
            told = f"{pairs.value:.3f} ({pairs.low:.3f} … {pairs.high:.3f})"
            apart += [] if agrees(name, pairs) else [name]
        print(layout.format(name, f"{value:.3f}", f"{theirs[name]:.3f}", told))
    return apart


def tell_more(seen: dict[str, list[Round]]) -> None:
    """Print what the engine and the clients say of themselves."""
    for name, metric in zip(("TTFT", "between"), TIMED, strict=True):
        parts = []
        for who, rounds in seen.items():
            true_ms = engine_mean_ms(rounds, metric)
            told_ms = figures(rounds)[f"{name} mean ms"]
            parts.append(f"{who} {told_ms - true_ms:+.3f} ms on {true_ms:.3f}")
        print(f"mean {name}, client less engine: {'; '.join(parts)}")
    for who, rounds in seen.items():
        cores = sum(each.cpu_s for each in rounds) / sum(each.seconds for each in rounds)
        read = fmean(each.prompt_tokens for each in rounds)
        print(f"{who}: {cores:.2f} of a core, {read:.0f} prompt tokens a round")
    lag = fmean(each.lag_mean_s for each in seen["ours"]) * 1000
    late = max(each.lag_p99_s for each in seen["ours"]) * 1000
    print(f"our loop's lag: mean {lag:.3f} ms, p99 at most {late:.3f} ms")


@contextmanager
def simulated(times: float) -> Iterator[str]:
    """The address of a simulated engine that makes so many times 1,200 tok/s at 64 streams."""
    a, b, c = SHEETS[SIM_MODEL].pass_s
    pass_s = a + b * SIM_STREAMS**0.5 + c * SIM_STREAMS
    speed = times * SIM_TOKENS_PER_S / (SIM_STREAMS / pass_s)
    port = free_port()
    words = [
        *(sys.executable, "-m", "a40console.sim", "serve", f"x/{SIM_MODEL}", "--port", str(port)),
        *("--served-model-name", SIM_MODEL, "--max-num-seqs", "128", "--start-s", "0.1"),
        *("--speed", str(speed)),
    ]
    with started(words, port):
        time.sleep(1)
        yield f"http://127.0.0.1:{port}"


def compare(work: Workload, peer: Peer, given: argparse.Namespace) -> list[str]:
    """Measure one workload and print it."""
    alternate(work, peer, 1, given.seed - 1)  # what is lazy is loaded
    seen = alternate(work, peer, given.rounds, given.seed)
    apart = tell(seen, markdown=given.markdown)
    tell_more(seen)
    return apart


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument(
        "--peer", type=Path, required=True, help="a `vllm` with its environment around it"
    )
    parser.add_argument("--tokenizer", required=True, help="the model's folder, for the peer")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--requests", type=int, default=16, help="a round")
    parser.add_argument("--input-tokens", type=int, default=64)
    parser.add_argument("--output-tokens", type=int, default=64)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--sim", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Run and print."""
    given = arguments()
    work = Workload(
        url=given.url,
        model=given.model,
        tokenizer=given.tokenizer,
        streams=given.streams,
        requests=given.requests,
        input_tokens=given.input_tokens,
        output_tokens=given.output_tokens,
        simulated=given.sim,
    )
    with closing(Peer(given.peer)) as peer:
        if not given.sim:
            apart = compare(work, peer, given)
            sys.exit(f"they do not agree: {', '.join(apart)}" if apart else 0)
        for times in SIM_TIMES:
            with simulated(times) as url:
                print(f"\n{SIM_STREAMS} streams at {times * SIM_TOKENS_PER_S:.0f} tok/s")
                many = replace(work, streams=SIM_STREAMS, requests=2 * SIM_STREAMS)
                compare(replace(many, url=url, model=SIM_MODEL), peer, given)


if __name__ == "__main__":
    main()
