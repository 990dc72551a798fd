"""Runs a target under atheris: `python -m tests.fuzz.run_atheris TARGET_MODULE [libFuzzer's…]`."""

from __future__ import annotations

import importlib
import sys
from typing import Any


def main() -> None:
    """Fuzz the target's `once` until the bounds that the arguments set."""
    fuzzer: Any = importlib.import_module("atheris")  # not installed everywhere
    with fuzzer.instrument_imports(include=["a40console.gateway"]):
        target = importlib.import_module(sys.argv[1])
    fuzzer.Setup([sys.argv[0], *sys.argv[2:]], target.once)
    fuzzer.Fuzz()


if __name__ == "__main__":
    main()
