"""What the control API answers besides snapshots: who we are, profiles, logs, client settings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from a40console import __version__
from a40console.model.control import ClientEnvironment, Hello, ProfileSummary
from a40console.model.engine import EngineState
from a40console.model.explanation import Explanation
from a40console.model.figures import Figure, Missing
from a40console.model.fix import FixOffer
from a40console.model.profile_change import ProfileDiff
from a40console.model.snapshot import PROTOCOL_VERSION, SCHEMA_VERSION
from a40console.operations.catalogue import summarise
from a40console.operations.edited_profile import diff_of
from a40console.operations.profile_fix import offer_fix
from a40console.operations.status import EngineStatus
from a40console.paths import Paths
from a40console.profiles.loader import load_profiles
from a40console.service.connecting import client_environment
from a40console.service.engine_outputs import EngineOutputs
from a40console.service.gateway_door import GatewayDoor
from a40console.service.journal import Journal
from a40console.service.pod_environment import with_pod

WINDOW_WITHIN_S = 3.0
"""An engine that has just begun to serve tells its window at the first reading, within this."""

_LOOK_EVERY_S = 0.1


class ServiceAnswers:
    """Reads the answers where they lie."""

    def __init__(
        self,
        *,
        paths: Paths,
        journal: Journal,
        door: GatewayDoor,
        read_status: Callable[[], EngineStatus],
        explain: Callable[[], Explanation],
        read_window: Callable[[], Figure],
    ) -> None:
        self._paths = paths
        self._journal = journal
        self._door = door
        self._read_status = read_status
        self._explain = explain
        self._read_window = read_window

    def hello(self) -> Hello:
        """Who answers."""
        return Hello(
            version=__version__,
            schema=SCHEMA_VERSION,
            protocol=PROTOCOL_VERSION,
            pid=os.getpid(),
            gateway_url=self._door.url,
            events_last_id=self._journal.last_id,
        )

    def profiles(self) -> tuple[ProfileSummary, ...]:
        """Every profile that can be read, with whether this machine can run it."""
        found = load_profiles(self._paths.profiles)
        return tuple(
            summarise(profile, found, os.environ, self._paths)
            for _, profile in sorted(found.profiles.items())
        )

    @property
    def outputs(self) -> EngineOutputs:
        """What the engines have written."""
        return EngineOutputs(self._paths, lambda: self._read_status().run)

    def why(self) -> Explanation:
        """What explains the newest snapshot's speed."""
        return self._explain()

    def changes(self, profile: str) -> ProfileDiff:
        """What a profile's file says otherwise than what runs; empty is the running one."""
        return diff_of(self._paths, self._read_status(), profile)

    def fix(self) -> FixOffer:
        """The change of a profile that mends the last failed start."""
        return offer_fix(self._paths, self._read_status())

    async def environment(self) -> ClientEnvironment:
        """What Claude Code and OpenAI clients must set to use the gateway.

        A client that is not told the window assumes its own, so an engine that serves and has not
        told it yet is waited for.
        """
        for _ in range(round(WINDOW_WITHIN_S / _LOOK_EVERY_S)):
            serves = self._read_status().state is EngineState.SERVING
            if not serves or not isinstance(self._read_window(), Missing):
                break
            await asyncio.sleep(_LOOK_EVERY_S)
        run = self._read_status().run
        return client_environment(
            url=self._door.url,
            listens_on=self._door.listens_on,
            token=self._door.client_token,
            served_name=run.profile.public_name if run is not None else None,
            window_tokens=self._read_window() if run is not None else Missing("no engine runs"),
            environment=with_pod(os.environ),
        )
