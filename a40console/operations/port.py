"""The engine's fixed port: refused where somebody listens on it, waited for where nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from a40console.engines.ports import PortHolder, PortUse, describe, who_holds
from a40console.errors import RefusedError
from a40console.model.profile import Profile

LONGEST_WAIT_S = 65.0
"""The kernel forgets a closed connection after 60 s (TCP_TIMEWAIT_LEN, include/net/tcp.h)."""


def refuse_taken_port(profile: Profile) -> None:
    """See that nobody listens where the engine is to listen.

    Raises:
        RefusedError: If somebody does; it names him.
    """
    holder = _holder(profile)
    if holder is not None and holder.use is PortUse.LISTEN:
        raise RefusedError(
            f"The port of {profile.name} is taken",
            evidence=describe(holder.port, holder),
            remedy="With listen = 'socket' in the profile the engine needs no port.",
        )


class PortWait:
    """Waits until closed connections on a port are forgotten.

    An engine that binds with SO_REUSEADDR need not wait, so this comes after a start that failed.
    """

    def __init__(self, *, period_s: float = 0.5, longest_s: float = LONGEST_WAIT_S) -> None:
        self._period_s = period_s
        self._longest_s = longest_s

    async def until_free(self, profile: Profile, tell: Callable[[PortHolder], None]) -> bool:
        """Whether closed connections alone held the profile's port; they are gone afterwards.

        Args:
            profile: Whose port.
            tell: Takes what still holds it, again and again.
        """
        waited_s = 0.0
        while (holder := _holder(profile)) is not None and holder.use is PortUse.TIME_WAIT:
            if waited_s >= self._longest_s:
                return False
            tell(holder)
            await asyncio.sleep(self._period_s)
            waited_s += self._period_s
        return waited_s > 0


def _holder(profile: Profile) -> PortHolder | None:
    if profile.listen != "loopback" or profile.port is None:
        return None
    return who_holds(profile.port)
