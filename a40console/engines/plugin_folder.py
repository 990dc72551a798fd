"""Puts the vLLM plugin on an engine's path: its folder, and the environment that loads it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path

from a40console import __version__

DISTRIBUTION = "a40console-vllm"
PACKAGE = "a40console_vllm"
PLUGIN_NAME = "a40console"
WORKER_EXTENSION = f"{PACKAGE}.depth.DepthWorker"
"""What vLLM's worker is extended with, so that the depth of speculation can be changed."""

PLUGIN_VERSIONS = ((0, 27), (0, 33))
"""The releases of vLLM that our plugin was tested in, the first and the last."""

TOKEN_FILE_VARIABLE = "A40CONSOLE_PLUGIN_TOKEN_FILE"  # noqa: S105 - the name of a variable
LISTING_TIMEOUT_S = 30.0

_ENTRY_POINTS = f"""\
[vllm.endpoint_plugins]
{PLUGIN_NAME} = {PACKAGE}.endpoint:ConsoleEndpoint

[vllm.stat_logger_plugins]
{PLUGIN_NAME} = {PACKAGE}.stat_logger:ConsoleStatLogger
"""

# vLLM loads an endpoint plugin only where it is named, because it opens routes: naming ours is
# no reason to open another's, so that group is left out.
_LIST_ENTRY_POINTS = """\
import json
from importlib.metadata import distributions
print(json.dumps(sorted({
    point.name
    for distribution in distributions()
    for point in distribution.entry_points
    if point.group.startswith("vllm.") and point.group != "vllm.endpoint_plugins"
})))
"""

_ENV_SHEBANG = re.compile(r"^#!\s*/usr/bin/env(?:\s+-S)?\s+(?P<name>python[\d.]*)\s*$")
_SHEBANG = re.compile(r"^#!\s*(?P<path>/.*?python[\d.]*)(?:\s+-\S+)*\s*$")
_EXEC_LINE = re.compile(r"""^'''exec' ["']?(?P<path>/[^"']+?)["']? "\$0" "\$@"$""")


class EngineEnvironmentError(Exception):
    """The engine's Python environment cannot be found or asked; the text says what to do."""


def write_plugin_folder(target: Path) -> Path:
    """Puts the plugin and its metadata, and nothing else, into a folder below ``target``.

    The folder is named after its content, so another version of the console writes another one
    and an engine that runs keeps its own. It appears in one move, complete.

    Returns:
        The folder to put on the engine's PYTHONPATH.
    """
    contents = plugin_files(_plugin_sources(), __version__)
    folder = target / f"vllm-plugin-{content_digest(contents)}"
    if _holds(folder, contents):
        return folder
    target.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=target, prefix=".making-"))
    try:
        for name, content in contents.items():
            (made / name).parent.mkdir(exist_ok=True)
            (made / name).write_bytes(content)
        made.chmod(0o755)
        _move_into_place(made, folder, contents)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def plugin_files(sources: Mapping[str, bytes], version: str) -> dict[str, bytes]:
    """Every file of the plugin folder by its path: the modules, and a wheel's metadata."""
    metadata = f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {version}\n"
    dist_info = f"{PACKAGE}-{version}.dist-info"
    contents = {f"{PACKAGE}/{name}": content for name, content in sorted(sources.items())}
    contents |= {
        f"{dist_info}/METADATA": metadata.encode(),
        f"{dist_info}/entry_points.txt": _ENTRY_POINTS.encode(),
        f"{dist_info}/INSTALLER": b"a40console\n",
    }
    lines = [f"{name},{_record_hash(content)}" for name, content in contents.items()]
    lines.append(f"{dist_info}/RECORD,,")
    contents[f"{dist_info}/RECORD"] = ("\n".join(lines) + "\n").encode()
    return contents


def content_digest(contents: Mapping[str, bytes]) -> str:
    """Twelve hexadecimal digits that name these files."""
    digest = hashlib.sha256()
    for name, content in sorted(contents.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]


def engine_python(executable: Path) -> Path:
    """The interpreter that runs an engine's script: its first line's, or the one beside it.

    Raises:
        EngineEnvironmentError: There is none.
    """
    found = executable if executable.is_absolute() else _on_path(executable)
    if found.name.startswith("python"):
        return found
    try:
        with found.open("rb") as script:
            head = [script.readline(4096).decode(errors="replace") for _ in range(2)]
    except OSError as error:
        raise EngineEnvironmentError(
            f"{executable} cannot be read ({error.strerror}): correct the profile's executable"
        ) from error
    named = interpreter_named(head)
    candidates = [Path(named)] if named and named.startswith("/") else []
    for folder in dict.fromkeys((found.parent, found.resolve().parent)):
        candidates += [folder / "python", folder / "python3"]
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    on_path = shutil.which(named) if named else None
    if on_path is not None:
        return Path(on_path)
    raise EngineEnvironmentError(
        f"no Python was found for {executable}: its first line is {head[0].strip()!r} and no "
        "python lies beside it. Point the profile's executable at the vllm of its environment"
    )


def interpreter_named(head: list[str]) -> str | None:
    """The interpreter that the first two lines of a script name, if they name a Python.

    Paths too long for a first line are put in the second by pip, behind ``/bin/sh``.
    """
    lines = [*(line.rstrip("\n") for line in head), "", ""]
    for pattern, line in ((_ENV_SHEBANG, lines[0]), (_EXEC_LINE, lines[1]), (_SHEBANG, lines[0])):
        match = pattern.match(line)
        if match is not None:
            return next(iter(match.groupdict().values()))
    return None


def engine_entry_points(python: Path, pythonpath: str | None = None) -> list[str]:
    """The vLLM plugins of an engine's environment that would load without being named.

    Args:
        python: The environment's interpreter.
        pythonpath: The PYTHONPATH that the engine is started with, apart from our folder.

    Raises:
        EngineEnvironmentError: The interpreter cannot be run, or does not answer in 30 s.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if pythonpath:
        environment["PYTHONPATH"] = pythonpath
    try:
        listing = subprocess.run(
            [python, "-c", _LIST_ENTRY_POINTS],
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=LISTING_TIMEOUT_S,
            check=True,
        )
        names: list[str] = json.loads(listing.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired as error:
        raise EngineEnvironmentError(
            f"{python} did not list its plugins in {LISTING_TIMEOUT_S:.0f} s: is its disk there?"
        ) from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise EngineEnvironmentError(
            f"{python} could not list its plugins (exit code {error.returncode}): {last}. "
            "Repair the engine's environment, or point the profile at another"
        ) from error
    except (OSError, ValueError, IndexError) as error:
        raise EngineEnvironmentError(
            f"{python} could not list its plugins ({error}): point the profile's executable at "
            "an environment that holds vLLM"
        ) from error
    return names


def plugin_environment(
    python: Path,
    folder: Path,
    token_file: Path,
    user_plugins: str | None,
    pythonpath: str | None = None,
) -> dict[str, str]:
    """The variables that make an engine load the plugin, and all else that it loaded before.

    Args:
        python: The interpreter of the engine's environment.
        folder: What ``write_plugin_folder`` returned.
        token_file: The file that holds the plugin's token; it must exist when the engine starts.
        user_plugins: VLLM_PLUGINS as the user set it, if he did.
        pythonpath: PYTHONPATH as the user set it, if he did.

    Raises:
        EngineEnvironmentError: The environment could not be asked for its plugins.
    """
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), pythonpath))),
        "VLLM_PLUGINS": plugin_names(engine_entry_points(python, pythonpath), user_plugins),
        TOKEN_FILE_VARIABLE: str(token_file),
    }


def plugin_names(existing: Iterable[str], user_plugins: str | None) -> str:
    """VLLM_PLUGINS with every name once: the environment's, ours, the user's.

    vLLM filters all groups of plugins by this variable, platforms included, so naming only ours
    would turn the others off.
    """
    users = (name.strip() for name in (user_plugins or "").split(","))
    return ",".join(dict.fromkeys(name for name in (*existing, PLUGIN_NAME, *users) if name))


def _plugin_sources() -> dict[str, bytes]:
    return {
        source.name: source.read_bytes()
        for source in (files("a40console") / "vllm_plugin").iterdir()
        if source.name.endswith(".py")
    }


def _record_hash(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest},{len(content)}"


def _holds(folder: Path, contents: Mapping[str, bytes]) -> bool:
    """Whether a folder holds these files unchanged; compiled modules beside them do not count."""
    try:
        return all((folder / name).read_bytes() == content for name, content in contents.items())
    except OSError:
        return False


def _move_into_place(made: Path, folder: Path, contents: Mapping[str, bytes]) -> None:
    if folder.exists() and not _holds(folder, contents):
        # Damaged, by a cleaner of temporary files perhaps: nothing in it is worth keeping.
        damaged = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".damaged-"))
        folder.rename(damaged / folder.name)
        shutil.rmtree(damaged, ignore_errors=True)
    try:
        made.rename(folder)
    except OSError:
        # Another process was first.
        if not _holds(folder, contents):
            raise


def _on_path(executable: Path) -> Path:
    found = shutil.which(str(executable))
    if found is None:
        raise EngineEnvironmentError(
            f"{executable} is not on the PATH: give the profile's executable as a full path, or "
            "install the engine"
        )
    return Path(found)
