"""Where packages come from: uv, and the operator's indexes and wheel folders, pip's included."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

PIP_TIMEOUT_S = 20.0
_PIP_LINE = re.compile(r"^(?:global|install|:env:)\.(?P<key>[\w-]+)=(?P<value>.*)$", re.MULTILINE)
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def find_uv(environment: Mapping[str, str], *folders: Path) -> str | None:
    """Where uv is: beside our interpreter, in one of these folders, or on the PATH."""
    places = (Path(sys.prefix) / "bin", *folders)
    path = os.pathsep.join((*map(str, places), environment.get("PATH", os.defpath)))
    return shutil.which("uv", path=path)


def pip_command(environment: Mapping[str, str]) -> list[str] | None:
    """How pip is called: our own environment's, else the one on the PATH; None without any."""
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    other = shutil.which("pip3", path=environment.get("PATH", os.defpath))
    return [other] if other else None


def pip_settings(pip: Sequence[str] | None, environment: Mapping[str, str]) -> dict[str, str]:
    """What pip is set to here, by files and variables; by variables alone where pip is not here."""
    variables = {
        name.removeprefix("PIP_").lower().replace("_", "-"): value
        for name, value in environment.items()
        if name.startswith("PIP_") and value
    }
    if pip is None:
        return variables
    try:
        listing = subprocess.run(
            [*pip, "config", "list"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PIP_TIMEOUT_S,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return variables
    return parse_pip_settings(listing) | variables


def parse_pip_settings(listing: str) -> dict[str, str]:
    """Keys and values of `pip config list`; what the install section sets wins over global."""
    found: dict[str, str] = {}
    for line in _PIP_LINE.finditer(listing):
        try:
            value = ast.literal_eval(line["value"])
        except (ValueError, SyntaxError):
            continue
        found[line["key"]] = str(value)
    return found


def uv_environment(
    environment: Mapping[str, str], pip: Mapping[str, str], torch_cpu_index: str | None
) -> dict[str, str]:
    """Our environment with what uv needs: pip's indexes and folders, unless uv has its own.

    Everything goes by variables, because an index's address may hold a password.

    Args:
        environment: What it is added to.
        pip: pip's settings.
        torch_cpu_index: Where PyTorch's CPU builds are, an index or a folder; None where they are
            not needed.
    """
    result = dict(environment)
    links = find_links(environment, pip)
    if torch_cpu_index and not any(has_cpu_torch(link) for link in links):
        links.append(torch_location(torch_cpu_index))
    if links:
        result["UV_FIND_LINKS"] = ",".join(links)
    if (main := pip.get("index-url")) and not _has(environment, "UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        result["UV_DEFAULT_INDEX"] = main
    more = pip.get("extra-index-url", "").split()
    if more and not _has(environment, "UV_INDEX", "UV_EXTRA_INDEX_URL"):
        result["UV_INDEX"] = " ".join(more)
        # As pip does: the best version of all indexes, not the first index's.
        result.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    if (certificates := pip.get("cert")) and "SSL_CERT_FILE" not in environment:
        result["SSL_CERT_FILE"] = certificates
    return result


def find_links(environment: Mapping[str, str], pip: Mapping[str, str]) -> list[str]:
    """Folders and pages with wheels: uv's setting where there is one, else pip's."""
    own = environment.get("UV_FIND_LINKS", "")
    return [link for link in re.split(r"[,\s]+", own or pip.get("find-links", "")) if link]


def has_cpu_torch(link: str) -> bool:
    """Whether a local folder holds a CPU build of PyTorch."""
    folder = local_folder(link)
    return folder is not None and any(folder.glob("torch-*+cpu*.whl"))


def torch_location(index: str) -> str:
    """What uv is given to find PyTorch alone there: a folder as it is, an index's page of torch.

    As a page and not as an index: PyTorch's also holds old copies of other packages.
    """
    return index if local_folder(index) is not None else f"{index.rstrip('/')}/torch/"


def local_folder(link: str) -> Path | None:
    """The folder that a path or a `file:` address names, where it is one."""
    parts = urlsplit(link)
    if parts.scheme not in ("", "file"):
        return None
    path = Path(unquote(parts.path) if parts.scheme else link).expanduser()
    return path if path.is_dir() else None


def without_credentials(text: str) -> str:
    """The text with the names and passwords of its addresses left out."""
    return _CREDENTIALS.sub("***@", text)


def _has(environment: Mapping[str, str], *names: str) -> bool:
    return any(environment.get(name) for name in names)
