"""Finds out, once for each run of an engine, how it wants to be asked in the Messages API."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Literal

from a40console.gateway.dialect import Dialect
from a40console.gateway.probe import PassingError, Probe
from a40console.gateway.upstream import SessionFactory, Upstream, open_session
from a40console.model.engine import MESSAGES_SOURCE
from a40console.model.figures import Missing
from a40console.model.snapshot import SourceStatus

_REPEAT_S = 2.0
_PATIENCE_S = 30.0

log = logging.getLogger(__name__)


class Dialects:
    """Keeps what was found out about the engine that serves now; a former run's is forgotten.

    A start waits for none of it: the first look begins when the engine serves, and a request that
    comes meanwhile waits for the same look.
    """

    def __init__(
        self,
        *,
        session_factory: SessionFactory = open_session,
        clock: Callable[[], float] = time.monotonic,
        on_found: Callable[[Dialect], None] = lambda dialect: None,
    ) -> None:
        self.on_found = on_found
        self._session_factory = session_factory
        self._clock = clock
        self._upstream: Upstream | None = None
        self._looking: asyncio.Task[Dialect] | None = None
        self._found: Dialect | None = None
        self._trouble = ""
        self._not_before_s = 0.0

    async def of(self, upstream: Upstream) -> Dialect:
        """The dialect of this run.

        Where the engine could not be asked yet, the request is served in the way that every
        engine understands, and the next one asks again.
        """
        self.look(upstream)
        if self._found is not None:
            return self._found
        looking = self._looking
        if looking is not None:
            await asyncio.wait((looking,), timeout=_PATIENCE_S)
            if looking.done() and not looking.cancelled() and looking.exception() is None:
                return looking.result()
        return without_answer(upstream, self._trouble or "it does not answer")

    def look(self, upstream: Upstream | None) -> None:
        """Begin to find out, where that is not known, not under way and not just tried."""
        if upstream is None:
            return
        if self._upstream is None or not _same_run(self._upstream, upstream):
            self.forget()
            self._upstream = upstream
        waiting = self._looking is not None or self._clock() < self._not_before_s
        if self._found is None and not waiting:
            self._looking = asyncio.create_task(self._find(upstream), name="dialect")
            self._looking.add_done_callback(_read_error)

    def forget(self) -> None:
        """End what is under way and begin anew."""
        if self._looking is not None:
            self._looking.cancel()
        self._upstream = self._looking = self._found = None
        self._trouble, self._not_before_s = "", 0.0

    def known(self, upstream: Upstream | None) -> Dialect | None:
        """What was found out about this run; None before that."""
        if upstream is None or self._upstream is None:
            return None
        return self._found if _same_run(self._upstream, upstream) else None

    def status(self, upstream: Upstream | None) -> SourceStatus:
        """The route and what it was chosen by, among the sources of what is shown."""
        if upstream is None:
            return _source("absent", Missing("no engine serves"), None)
        found = self.known(upstream)
        if found is None:
            why = self._trouble or "the engine is being asked"
            return _source("absent", Missing("not known yet"), why)
        told = " ".join((f"{found.says()}:", *found.evidence))
        return _source("ok", Missing("asked once for each run of an engine"), told)

    async def _find(self, upstream: Upstream) -> Dialect:
        try:
            async with self._session_factory(upstream.endpoint) as session:
                found = await Probe(session, upstream).dialect()
        except PassingError as error:
            self._trouble = str(error)
            raise
        finally:
            if self._looking is asyncio.current_task():
                self._looking = None
                self._not_before_s = self._clock() + _REPEAT_S
        self._found, self._trouble = found, ""
        self.on_found(found)
        return found


def without_answer(upstream: Upstream, why: str) -> Dialect:
    """What every engine understands: chat completions, and nothing that it may refuse."""
    native = upstream.messages_route == "native"
    return Dialect(
        route="native" if native else "translated",
        system_turns="fold",
        images=False,
        counting="none",
        served_name=upstream.served_name,
        max_model_len=None,
        evidence=(f"The engine could not be asked yet: {why}.",),
        running_usage=upstream.kind in ("vllm", "sim"),
    )


def _source(state: Literal["ok", "absent"], age_s: Missing, reason: str | None) -> SourceStatus:
    return SourceStatus(name=MESSAGES_SOURCE, state=state, age_s=age_s, reason=reason)


def _same_run(one: Upstream, other: Upstream) -> bool:
    return (one.run_id, one.messages_route) == (other.run_id, other.messages_route)


def _read_error(task: asyncio.Task[Dialect]) -> None:
    """A look that nobody waits for may fail: it is repeated, and its trouble is shown."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, PassingError):
        log.error("the engine could not be asked for its dialect", exc_info=error)
