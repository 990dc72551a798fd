"""An endpoint somewhere else: the command line of the forwarder that stands for it, and its key."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from a40console.model.profile import Profile

MODULE = "a40console.engines.forwarder"
MOST_KEY_BYTES = 4096


class KeyFileError(Exception):
    """A key's file that cannot be used, in words."""


def command_line(profile: Profile, *, python: str, address: Sequence[str]) -> list[str]:
    """What the keeper starts; the key is named, never written.

    `-P`: it is started in its run folder, and nothing there may stand in for a module.
    """
    words = [python, "-P", "-m", MODULE, "--base-url", profile.base_url or ""]
    words += ["--model", profile.model, "--served-model-name", profile.public_name, *address]
    if profile.max_model_len is not None:
        words += ["--max-model-len", str(profile.max_model_len)]
    if profile.api_key_variable is not None:
        words += ["--key-variable", profile.api_key_variable]
    if profile.api_key_file is not None:
        words += ["--key-file", str(Path(profile.api_key_file).expanduser())]
    return words


def key_fault(profile: Profile, environment: Mapping[str, str]) -> str | None:
    """Why the endpoint's key cannot be had; None where it can, or where none is asked for."""
    variable = profile.api_key_variable
    if variable is not None and not (
        environment.get(variable) or profile.environment.get(variable)
    ):
        return f"{variable} is not set: the service needs it in its environment to show its key"
    if profile.api_key_file is not None:
        try:
            read_key_file(Path(profile.api_key_file).expanduser())
        except KeyFileError as error:
            return str(error)
    return None


def read_key_file(path: Path) -> str:
    """The key in a file that only this user may read.

    Raises:
        KeyFileError: If it is not there, anybody else may read it, or nothing is in it.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise KeyFileError(f"{path} is no regular file")
            if status.st_uid != os.getuid() or status.st_mode & 0o077:
                raise KeyFileError(f"{path} may be read by others: chmod 600 {path}")
            key = file.read(MOST_KEY_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFileError(f"the key file {path} cannot be read: {error}") from error
    if not key or any(not "!" <= char <= "~" for char in key):
        raise KeyFileError(f"{path} holds no key: one word of printable characters")
    return key
