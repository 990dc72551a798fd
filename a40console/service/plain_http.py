"""Has aiohttp imported without TLS, which the way to the engine never uses.

It would make two contexts with every certificate authority of the system: 2.5 MB. To be imported
before anything that imports aiohttp; what imports `ssl` later finds it as ever.
"""

from __future__ import annotations

import asyncio  # noqa: F401
import http.client  # noqa: F401
import ssl
import sys
import urllib.request  # noqa: F401

# Those above are imported first, since they keep TLS: aiohttp imports them too.
sys.modules["ssl"] = None  # type: ignore[assignment]
try:
    import aiohttp  # noqa: F401
finally:
    sys.modules["ssl"] = ssl
