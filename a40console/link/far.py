"""What a console knows of the machine that its service is on: how to reach it, and why not."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

from a40console.errors import NoServiceError
from a40console.link.place import LinkPlace, LinkRecord
from a40console.link.target import parse_target
from a40console.model.control import ClientEnvironment, Trouble
from a40console.paths import Paths

_STATES = {
    "connecting": "is being made",
    "down": "is down",
    "refused": "needs your login",
    "ended": "has ended",
}


class Far:
    """The other end of a link, by what its holder writes down."""

    def __init__(self, place: LinkPlace) -> None:
        self._place = place

    @property
    def words(self) -> tuple[str, str]:
        """What to call the service in a sentence, and how to call a command for it."""
        target = self._place.target
        return f"service on {target}", f"a40console --ssh {target}"

    def address(self, url: str) -> str:
        """An address of the gateway over there, as this machine reaches it.

        Raises:
            NoServiceError: If the gateway is not forwarded.
        """
        record = self._place.record()
        if record is None or not record.gateway_port:
            raise NoServiceError(
                f"The gateway of {self._place.target} is not forwarded",
                remedy=f"Open the link anew: a40console --ssh {self._place.target}",
            )
        parts = urlsplit(url)
        return urlunsplit(parts._replace(netloc=f"127.0.0.1:{record.gateway_port}"))

    def environment(self, there: ClientEnvironment) -> ClientEnvironment:
        """A client's environment over there, for a client of this machine."""
        here = {
            name: self.address(value) if name.endswith("_URL") else value
            for name, value in there.variables.items()
        }
        ways = tuple(
            replace(way, kind="link", url=self.address(way.url), text="through the link, from here")
            if way.kind == "loopback"
            else way
            for way in there.addresses
            if way.kind != "tunnel"  # the link is one
        )
        return replace(there, variables=here, addresses=ways)

    def trouble(self, seen: str) -> Trouble:
        """Why the service does not answer: the link, or the service behind it."""
        target, record = self._place.target, self._place.record()
        anew = f"Open it anew: a40console --ssh {target}"
        if record is None or not self._place.is_held():
            return Trouble(message=f"There is no link to {target}", evidence=seen, remedy=anew)
        if record.state == "up":
            return Trouble(
                message=f"No service answers on {target}",
                evidence=f"the link is up; {seen}",
                remedy=f"Start it there: a40console --ssh {target} endpoint --start",
            )
        waits = record.state == "down"
        return Trouble(
            message=f"The link to {target} {_STATES[record.state]}",
            evidence=f"since {record.since}{_because(record)}",
            remedy="It is tried again by itself; the service and the engine go on."
            if waits
            else anew,
        )


def far_of(paths: Paths) -> Far | None:
    """The other machine that these paths lead to; None where they are this machine's own."""
    return Far(LinkPlace(paths, parse_target(paths.remote))) if paths.remote else None


def _because(record: LinkRecord) -> str:
    return f": {record.reason}" if record.reason else ""


def is_held(paths: Paths, record: LinkRecord) -> bool:
    """Whether a process keeps this link."""
    return LinkPlace(paths, parse_target(record.target)).is_held()
