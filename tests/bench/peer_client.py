"""`vllm bench serve`, kept loaded between rounds: run by the peer's Python, not by ours.

    PYTHON tests/bench/peer_client.py

Reads one JSON list of its arguments a line, runs that benchmark with the peer's own code, and
writes the path of a JSON file with what came of it. The CPU is taken from its first request to its
last answer, so neither imports nor the making of prompts are in it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

from vllm.benchmarks import serve
from vllm.utils.argparse_utils import FlexibleArgumentParser

BACKEND = "openai"


class Watch:
    """The process's clocks around all requests of a round."""

    def __init__(self, asking: Callable[..., Awaitable[Any]]) -> None:
        self._asking = asking
        self.cpu_began_s = self.cpu_ended_s = self.began_s = self.ended_s = 0.0

    async def ask(self, *words: Any, **named: Any) -> Any:
        if not self.began_s:
            self.cpu_began_s, self.began_s = time.process_time(), time.perf_counter()
        answer = await self._asking(*words, **named)
        self.cpu_ended_s, self.ended_s = time.process_time(), time.perf_counter()
        return answer


def measured(words: list[str], asking: Callable[..., Awaitable[Any]]) -> dict[str, Any]:
    parser = FlexibleArgumentParser()
    serve.add_cli_args(parser)
    watch = Watch(asking)
    serve.ASYNC_REQUEST_FUNCS[BACKEND] = watch.ask
    told = serve.main(parser.parse_args(words))
    return {
        "seconds": watch.ended_s - watch.began_s,
        "cpu_s": watch.cpu_ended_s - watch.cpu_began_s,
        "tokens": told["total_output_tokens"],
        "prompt_tokens": told["total_input_tokens"],
        "answered": told["completed"],
        "ttfts_s": told["ttfts"],
        "gaps_s": [gap for gaps in told["itls"] for gap in gaps],
    }


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the benchmark prints is not for us
    asking = serve.ASYNC_REQUEST_FUNCS[BACKEND]
    print("ready", file=answers)
    for line in sys.stdin:
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump(measured(json.loads(line), asking), file)
        print(file.name, file=answers)


if __name__ == "__main__":
    main()
