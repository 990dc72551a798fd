"""The console and its service: folders, sockets, ports."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import suppress

from a40console.engines.ports import describe, who_holds
from a40console.errors import ConsoleError
from a40console.files import holder_told, lock_holder
from a40console.model.check import Check, CheckState
from a40console.operations.checks.asked import Asked
from a40console.operations.gateway_address import gateway_address
from a40console.paths import Paths

GROUP = "console"
SOCKET_PATH_BYTES = 107
"""What AF_UNIX takes, without the closing zero."""

ANSWER_TIMEOUT_S = 1.0


def console_checks(asked: Asked) -> Iterator[Check]:
    """Everything about the console itself."""
    holder = lock_holder(asked.paths.service_lock)
    yield _folders(asked.paths)
    yield from _settings(asked)
    yield _socket_path(asked.paths)
    yield _service(asked.paths, holder)
    yield _port(asked, holder)


def _check(name: str, state: CheckState, text: str, mend: str = "") -> Check:
    return Check(group=GROUP, name=name, state=state, text=text, mend=mend)


def _folders(paths: Paths) -> Check:
    for folder in (paths.config, paths.state, paths.data, paths.runtime):
        existing = next(each for each in (folder, *folder.parents) if each.exists())
        if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
            return _check(
                "home",
                "missing",
                f"{folder} cannot be written",
                "export A40CONSOLE_HOME=DIR, a folder that you may write to",
            )
    return _check("home", "ok", f"{paths.home} can be written")


def _settings(asked: Asked) -> Iterator[Check]:
    file = asked.paths.config_file
    for problem in asked.problems:
        state: CheckState = "missing" if problem.refused else "warn"
        yield _check("settings", state, str(problem), f"Mend it in {file}, or remove it there")
    if not asked.problems:
        told = f"{file} can be used" if file.exists() else f"all defaults: there is no {file}"
        yield _check("settings", "ok", told)


def _socket_path(paths: Paths) -> Check:
    length = max(
        len(os.fsencode(path)) for path in (paths.control_socket, paths.engine_socket("any"))
    )
    text = f"{length} of {SOCKET_PATH_BYTES} bytes"
    if length <= SOCKET_PATH_BYTES:
        return _check("socket path", "ok", text)
    return _check("socket path", "missing", text, "export TMPDIR=/tmp")


def _service(paths: Paths, holder: int | None) -> Check:
    if holder is None:
        return _check("service", "ok", "none runs; the console starts it")
    named = f"runs, {holder_told(paths.service_lock)}"
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
        probe.settimeout(ANSWER_TIMEOUT_S)
        probe.connect(str(paths.control_socket))
        return _check("service", "ok", named)
    return _check(
        "service",
        "missing",
        f"{named}, but does not answer on {paths.control_socket}",
        "a40console stop, then the command that you wanted; the engine keeps running",
    )


def _port(asked: Asked, holder: int | None) -> Check:
    gateway = asked.settings.gateway
    place = f"{gateway.host}:{gateway.port}"
    if gateway.port == 0:
        return _check("gateway port", "ok", "a free one is taken at each start")
    if holder is not None:
        return _check("gateway port", "ok", f"{place}, the running service's")
    try:
        family, address = gateway_address(gateway.host, gateway.port)
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except ConsoleError as error:
        return _check("gateway port", "missing", f"{error.message}: {error.evidence}", error.remedy)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            mend = "Set another in config.toml: [gateway] port = 8081"
            text = describe(gateway.port, who_holds(gateway.port))
            return _check("gateway port", "missing", text, mend)
        mend = "Set host and port under [gateway] in config.toml"
        return _check("gateway port", "missing", f"{place}: {error.strerror}", mend)
    return _check("gateway port", "ok", f"{place} is free")
