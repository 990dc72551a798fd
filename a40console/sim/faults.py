"""What can go wrong on demand, and how it is asked for: `NAME` or `NAME=ARGUMENT`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

PHASES = ("starting", "download", "load", "compile", "capture")
METRICS = ("empty", "500", "nan", "html", "cut", "reset")

KINDS = {
    "hang": "no token comes out any more; /health says 200",
    "crash": f"ends in a phase ({', '.join(PHASES)}), or N seconds after it serves",
    "stall": "stays in a phase of the start for ever",
    "nccl": "stays in NCCL's initialisation for ever, unless NCCL_P2P_DISABLE is 1",
    "slow_stop": "takes N seconds to stop",
    "ignore_term": "ignores SIGTERM",
    "orphan": "leaves a process behind that ignores SIGTERM",
    "metrics": f"/metrics answers wrongly: {', '.join(METRICS)}",
    "garble": "every Nth event of a stream is cut",
    "slow_refusal": "what is refused is refused after N seconds",
    "junk": "every answer is gibberish",
    "junk_after_wake": "every answer is gibberish once it has slept",
    "no_messages": "has no Messages API, as older vLLM and vllm.cpp",
}
"""Faults by name, with what each does."""

_NEEDS = frozenset({"crash", "stall", "slow_stop", "slow_refusal", "metrics"})


@dataclass(slots=True)
class Faults:
    """What goes wrong now; changed at run time through the control route."""

    asked: dict[str, str]

    @classmethod
    def parse(cls, words: list[str]) -> Faults:
        """Faults from the command line.

        Raises:
            argparse.ArgumentTypeError: If one is unknown or lacks its argument.
        """
        faults = cls({})
        for word in words:
            name, _, argument = word.partition("=")
            faults.set(name, argument)
        return faults

    def set(self, name: str, argument: str = "") -> None:
        """Let something go wrong.

        Raises:
            argparse.ArgumentTypeError: If it is unknown or lacks its argument.
        """
        if name not in KINDS:
            raise argparse.ArgumentTypeError(f"there is no fault {name!r}: {', '.join(KINDS)}")
        if name in _NEEDS and not argument:
            raise argparse.ArgumentTypeError(f"{name} {KINDS[name]}: say {name}=…")
        if name == "metrics" and argument not in METRICS:
            raise argparse.ArgumentTypeError(f"metrics is one of {', '.join(METRICS)}")
        self.asked[name] = argument

    def clear(self, name: str) -> None:
        """Let it be well again."""
        self.asked.pop(name, None)

    def has(self, name: str, argument: str | None = None) -> bool:
        """Whether a fault is asked for, with that argument where one is named."""
        return name in self.asked and argument in (None, self.asked[name])

    def number(self, name: str, default: float) -> float:
        """A fault's argument as a number."""
        try:
            return float(self.asked.get(name, default))
        except ValueError:
            return default
