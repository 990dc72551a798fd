"""The process that owns the engine, the gateway and the telemetry, and how others reach it."""

import sys

# httpx imports a command line of its own where it finds Rich: 3 MB and 30 ms in each process of
# ours. None marks a module as not to be had, and httpx does without.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
