"""The part of the control API that says what a switch or a change of speculation would cost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response

from a40console.errors import NoServiceError
from a40console.model.profile import Profile
from a40console.model.snapshot import Snapshot
from a40console.model.turning import TurningWay, last_start_s
from a40console.operations.live_speculation import Way
from a40console.operations.operator import EngineOperator
from a40console.operations.past_starts import KEPT_STARTS, PastStarts
from a40console.operations.switch_cost import Known, switch_cost
from a40console.paths import Paths
from a40console.profiles.loader import load_profiles
from a40console.service.asked_seconds import MOST_DRAIN_S, asked_seconds
from a40console.service.board import Board
from a40console.service.query import as_json

Endpoint = Callable[[Request], Awaitable[Response]]


def switch_reads(
    paths: Paths,
    board: Board,
    starts: PastStarts,
    operator: EngineOperator,
    drain_s: float,
) -> Mapping[str, Endpoint]:
    """The routes of a running service."""
    routes = SwitchRoutes(
        find_profile=lambda name: load_profiles(paths.profiles).find(name),
        read_snapshot=lambda: board.snapshot,
        starts=starts,
        foresee=operator.foresee,
        find_way=operator.speculation_way,
        drain_s=drain_s,
    )
    return routes.reads()


class SwitchRoutes:
    """Answers what it would cost to let another profile serve, or to turn speculation.

    Args:
        find_profile: By its name; raises UsageError where there is none.
        read_snapshot: The newest one; None before the first.
        starts: The engine starts.
        foresee: Raises ConsoleError where a switch to a profile cannot succeed.
        find_way: How speculation would be turned now; raises ConsoleError where it would not.
        drain_s: How long running requests may take to end.
    """

    def __init__(
        self,
        *,
        find_profile: Callable[[str], Profile],
        read_snapshot: Callable[[], Snapshot | None],
        starts: PastStarts,
        foresee: Callable[[Profile], Awaitable[None]],
        find_way: Callable[[str], Awaitable[Way]],
        drain_s: float,
    ) -> None:
        self._find_profile = find_profile
        self._read_snapshot = read_snapshot
        self._starts = starts
        self._foresee = foresee
        self._find_way = find_way
        self._drain_s = drain_s

    def reads(self) -> Mapping[str, Endpoint]:
        """Path to what answers a GET."""
        return {"/v1/switch-cost": self._cost, "/v1/speculation-way": self._way}

    async def _cost(self, request: Request) -> Response:
        name = request.query_params.get("profile", "")
        profile = await asyncio.to_thread(self._find_profile, name)
        await self._foresee(profile)
        asked_s = asked_seconds(request.query_params, "drain_s", most=MOST_DRAIN_S)
        drain_s = self._drain_s if asked_s is None else asked_s
        known = Known(drain_s=drain_s, starts=self._starts.of(profile.name))
        snapshot = self._read_snapshot()
        if snapshot is None:
            raise NoServiceError("The service has not looked yet", remedy="Ask again in a second.")
        return as_json(switch_cost(profile, snapshot, known))

    async def _way(self, request: Request) -> Response:
        way = await self._find_way(request.query_params.get("mode", ""))
        took_s = last_start_s(self._starts.list(KEPT_STARTS), way.profile.name)
        known = way.profile.known_issues
        told = TurningWay(
            how=way.how,
            tokens=way.tokens,
            why=way.why,
            last_start_s=took_s,
            issues=tuple(issue.reason for issue in known if issue.setting == "speculation"),
        )
        return as_json(told)
