"""Serves one model file by llama.cpp's own server, from its Python wheel.

Run by path, `python -P embedded.py --model FILE (--socket PATH | --port N) …`, in a process of its
own. Standard library and xllamacpp only, and imported by nobody.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any

EXIT_NO_SERVER = 1
EXIT_NOT_INSTALLED = 69  # EX_UNAVAILABLE of sysexits.h

SHORTEST_DRAFT = 1
POLLING_THREADS = 32
PROMPT_CACHE_MIB = 512
"""Prompts that llama.cpp keeps in memory beside the slots; its own default is 8 GiB."""


def parse(words: list[str]) -> argparse.Namespace:
    """The server's settings; ends the process with code 2 where they make no sense."""
    parser = argparse.ArgumentParser(description="llama.cpp's server, embedded", allow_abbrev=False)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--alias", required=True, help="the name that clients use")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", type=Path, help="a path that does not exist yet")
    where.add_argument("--port", type=int, help="on loopback")
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--context-tokens", type=int, default=0, help="shared out among the slots")
    parser.add_argument("--draft-tokens", type=int, default=0, help="0: no speculation")
    parser.add_argument("--match-tokens", type=int, default=4, help="n-gram that a draft follows")
    return parser.parse_args(words)


def say(message: str) -> None:
    """One line into the engine's output."""
    sys.stderr.write(f"embedded: {message}\n")
    sys.stderr.flush()


def configure(xllamacpp: Any, settings: argparse.Namespace) -> Any:
    """The server's parameters, as xllamacpp takes them."""
    params = xllamacpp.CommonParams()
    params.model.path = str(settings.model)
    params.model_alias = {settings.alias}
    params.hostnames = [str(settings.socket or "127.0.0.1")]
    params.port = settings.port or 0
    params.n_parallel = settings.slots
    params.n_ctx = settings.context_tokens
    params.n_threads_http = settings.slots + POLLING_THREADS
    params.cpuparams.n_threads = settings.threads
    params.cpuparams_batch.n_threads = settings.threads
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.ui = False
    if settings.draft_tokens:
        kinds = xllamacpp.common_speculative_type
        params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_MOD]
        ngram = params.speculative.ngram_mod
        ngram.n_max = settings.draft_tokens
        ngram.n_min = min(SHORTEST_DRAFT, settings.draft_tokens)
        ngram.n_match = settings.match_tokens
    return params


def refusal(settings: argparse.Namespace) -> str | None:
    """What llama.cpp would report in words that say nothing."""
    if not settings.model.is_file():
        return f"there is no model file {settings.model}"
    if settings.socket is not None and settings.socket.exists():
        return f"{settings.socket} exists already; every start needs a fresh path"
    return None


def main(words: list[str]) -> int:
    """Serves until a signal ends the process; returns only when no server could be had."""
    settings = parse(words)
    # Python's handler would destroy the server object, which hangs while a stream is in flight.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.umask(0o077)  # the socket is for this user alone
    try:
        import xllamacpp
    except ImportError as error:
        say(
            f"xllamacpp is not installed in {sys.prefix} ({error}): "
            "pip install 'a40console[embedded]'"
        )
        return EXIT_NOT_INSTALLED
    if (reason := refusal(settings)) is not None:
        say(reason)
        return EXIT_NO_SERVER
    try:
        server = xllamacpp.Server(configure(xllamacpp, settings))
    except RuntimeError as error:
        say(f"llama.cpp's server did not start; the lines above say why ({error})")
        return EXIT_NO_SERVER
    say(f"ready on {server.listening_address}")
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
