"""The process that owns the engine, the gateway and the telemetry, and how others reach it."""

import sys

# None marks a module as not to be had: the libraries that try them do without, and each process
# of ours is spared what it never uses. httpx would import a command line of its own where it finds
# Rich (3 MB, 30 ms), its transport another event loop (2 MB), and uvicorn what watches source code.
for _spared in ("httpx._main", "trio", "watchfiles"):
    sys.modules.setdefault(_spared, None)  # type: ignore[arg-type]
