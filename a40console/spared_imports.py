"""What processes of ours do without: libraries that others would import and we never use.

Each is called before anything is imported that would: by the entry of a process, and nobody else.
"""

from __future__ import annotations

import sys

_SPARED = ("httpx._main", "trio", "watchfiles")


def spare_unused() -> None:
    """Mark modules as not to be had; the libraries that try them do without.

    httpx would import a command line of its own where it finds Rich, its transport another event
    loop, and uvicorn what watches source code. Measured: 3 MB of a worker, and of `status` 5 MB
    and 0.05 s.
    """
    for name in _SPARED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def import_aiohttp_without_tls() -> None:
    """Import aiohttp without TLS, which the way to the engine never uses.

    It would make two contexts with every certificate authority of the system: 2.5 MB. What imports
    `ssl` later finds it as ever.
    """
    # These are imported first, since they keep TLS: aiohttp imports them too.
    import asyncio  # noqa: F401
    import http.client  # noqa: F401
    import ssl
    import urllib.request  # noqa: F401

    sys.modules["ssl"] = None  # type: ignore[assignment]
    try:
        import aiohttp  # noqa: F401
    finally:
        sys.modules["ssl"] = ssl
