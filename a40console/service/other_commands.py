"""The commands that neither start nor stop an engine, each with what carries it out."""

from __future__ import annotations

from collections.abc import Callable

from a40console.operations.roles import Recorder
from a40console.operations.status import EngineStatus
from a40console.paths import Paths
from a40console.service.capturing import capture_handler
from a40console.service.examination import doctor_handler
from a40console.service.fixing import fix_handler
from a40console.service.sessions import Sessions
from a40console.service.tasks import Handler


def other_handlers(
    paths: Paths,
    read_status: Callable[[], EngineStatus],
    sessions: Sessions,
    record: Recorder,
) -> dict[str, Handler]:
    """Command id to what does it."""
    return {
        "doctor.run": doctor_handler(paths),
        "profile.fix": fix_handler(paths, read_status, record),
        "sessions.capture": capture_handler(sessions, record),
    }
