"""From a profile to a command line, an environment and an address. Pure: nothing is started."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from a40console.engines import attached, llamacpp, sim, vllm, vllm_cpp
from a40console.errors import RefusedError
from a40console.model.engine import Endpoint
from a40console.model.profile import Profile
from a40console.model.secrets import takes_secret

OURS = "A40CONSOLE_"
"""Prefix of our own variables, which no engine inherits."""

DEVELOPER_MODE = "VLLM_SERVER_DEV_MODE"
"""vLLM's raw calls into the engine, which no engine inherits."""

START_DEPTH = "A40CONSOLE_SPECULATION_DEPTH"
"""Where our plugin reads the depth of speculation to begin with."""

API_KEY_VARIABLES = {
    "vllm": "VLLM_API_KEY",
    "llamacpp": "LLAMA_API_KEY",
    "sim": "VLLM_API_KEY",
}
"""Where each engine reads the key that its clients must show."""

_SECRET = re.compile(
    r"_(?:API_KEY|ACCESS_KEY|SECRET_KEY|TOKEN|SECRET|PASSWORD)$|^AWS_SECRET", re.IGNORECASE
)
"""The operator's secrets, an engine's own key included: with that it would lock us out."""

_NEEDED_SECRETS = frozenset({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
"""What an engine fetches gated models with."""

_SECRET_VARIABLES = {
    "--api-key": "VLLM_API_KEY or LLAMA_API_KEY",
    "--hf-token": "HF_TOKEN",
    "-hft": "HF_TOKEN",
}
"""What takes a secret in the place of a flag."""

_ADDRESS_FLAGS = frozenset({"--uds", "--host", "--port", "--headless", "--grpc"})
_ADDRESS_OPTIONS = frozenset({"--uds", "--host", "--port", "--socket"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What this machine and this start add to a profile."""

    python: str
    """Interpreter that has xllamacpp, for the embedded server."""

    embedded_script: Path
    model_path: Path | None = None
    """The model on this disk, where it was fetched or converted; None leaves the profile's."""

    socket_path: Path | None = None
    """A fresh path; needed where the profile listens on a socket."""

    port: int | None = None
    """A free loopback port; needed where the profile listens on loopback."""

    threads: int = 1
    """Threads for llama.cpp where the profile names none."""

    executable: str | None = None
    """Where the profile's program was found."""

    plugin_environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    plugin_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """What to run, where it will answer, and what its environment gains."""

    argv: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)
    """Additions to the inherited environment; may hold secrets, so it is shown nowhere."""

    endpoint: Endpoint
    socket_path: Path | None
    inherits: frozenset[str] = frozenset()
    """Secrets of the service's environment that this one engine is to have."""


def plan(profile: Profile, site: Site) -> LaunchPlan:
    """The launch of a profile on this machine.

    Raises:
        RefusedError: If the profile takes the address into its own hands, puts a secret on the
            command line or asks for vLLM's developer mode; or no address was given.
    """
    _refuse(profile)
    socket_path = site.socket_path if profile.listen == "socket" else None
    if profile.kind == "vllm":
        argv, environment = _vllm(profile, site), vllm.environment()
        environment |= _for_the_plugin(profile, site)
    elif profile.kind == "sim":
        argv = sim.command_line(profile, python=site.python, address=_vllm_address(profile, site))
        environment = {"PYTHONUNBUFFERED": "1", **_for_the_plugin(profile, site)}
    elif profile.kind == "attached":
        argv = attached.command_line(
            profile, python=site.python, address=_vllm_address(profile, site)
        )
        environment = {"PYTHONUNBUFFERED": "1"}
    else:
        argv, environment = _llamacpp(profile, site), {"PYTHONUNBUFFERED": "1"}
    endpoint = Endpoint(
        base_url="http://localhost" if socket_path else f"http://127.0.0.1:{_port(profile, site)}",
        socket_path=str(socket_path) if socket_path else None,
        api_key=profile.environment.get(API_KEY_VARIABLES.get(profile.kind, "")),
        plugin_token=site.plugin_token if profile.speaks_vllm and profile.plugin else None,
    )
    return LaunchPlan(
        argv=tuple(argv),
        environment={**environment, **_own_environment(profile, environment)},
        endpoint=endpoint,
        socket_path=socket_path,
        inherits=frozenset({profile.api_key_variable} if profile.api_key_variable else ()),
    )


def engine_environment(inherited: Mapping[str, str], launch: LaunchPlan) -> dict[str, str]:
    """An engine's whole environment: the service's without its secrets, and the launch's.

    A secret that an engine does need is named in its profile.
    """
    kept = {
        name: value
        for name, value in inherited.items()
        if _is_inherited(name) or name in launch.inherits
    }
    return kept | launch.environment


def _is_inherited(name: str) -> bool:
    if name.startswith(OURS) or name == DEVELOPER_MODE:
        return False
    return name in _NEEDED_SECRETS or not _SECRET.search(name)


def default_threads(quota_vcpu: float | None) -> int:
    """Threads for llama.cpp where the profile names none: all but one vCPU of the quota.

    The last one is for the gateway and its clients.
    """
    return max(1, int(quota_vcpu or 1) - 1)


def argv_digest(argv: tuple[str, ...]) -> str:
    """12 hexadecimal digits that name the settings of a start; its address does not count."""
    words = list(argv)
    for index, word in enumerate(words[:-1]):
        if word in _ADDRESS_OPTIONS:
            words[index + 1] = ""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def printable(argv: tuple[str, ...]) -> str:
    """The command line as a shell takes it."""
    return shlex.join(argv)


def _vllm(profile: Profile, site: Site) -> list[str]:
    address = _vllm_address(profile, site)
    write = vllm_cpp.arguments if profile.is_cpp else vllm.arguments
    words = write(profile, model=str(site.model_path or profile.model), address=address)
    return [site.executable or profile.executable or "vllm", *words]


def _vllm_address(profile: Profile, site: Site) -> list[str]:
    if profile.listen == "socket":
        return ["--uds", str(_socket(site))]
    return ["--host", "127.0.0.1", "--port", str(_port(profile, site))]


def _llamacpp(profile: Profile, site: Site) -> list[str]:
    model = str(site.model_path or profile.model)
    on_socket = profile.listen == "socket"
    if profile.executable is not None:
        # A host that ends in .sock is llama-server's way to say Unix socket.
        address = ["--host", str(_socket(site)) if on_socket else "127.0.0.1"]
        address += [] if on_socket else ["--port", str(_port(profile, site))]
        words = llamacpp.server_arguments(
            profile, model=model, address=address, threads=site.threads
        )
        return [site.executable or profile.executable, *words]
    if profile.arguments:
        raise RefusedError(
            f"the embedded server of {profile.name!r} takes no arguments",
            evidence=printable(profile.arguments),
            remedy="Name a llama-server as the profile's executable, or remove them.",
        )
    address = ["--socket", str(_socket(site))] if on_socket else []
    address += [] if on_socket else ["--port", str(_port(profile, site))]
    words = llamacpp.embedded_arguments(profile, model=model, address=address, threads=site.threads)
    # -P: without it the script's folder comes first on the path, and our modules are found there.
    return [site.python, "-P", str(site.embedded_script), *words]


def _for_the_plugin(profile: Profile, site: Site) -> dict[str, str]:
    """What makes the engine load our plugin, and the depth of speculation to begin with."""
    if not profile.plugin:
        return {}
    environment, asked = dict(site.plugin_environment), profile.speculation
    if asked is not None and profile.turns_live and asked.start_tokens != asked.tokens:
        environment[START_DEPTH] = str(asked.start_tokens)
    return environment


def _own_environment(profile: Profile, given: Mapping[str, str]) -> dict[str, str]:
    """The profile's variables, apart from those that were merged into the plugin's already."""
    merged = {"PYTHONPATH", "VLLM_PLUGINS"} & given.keys()
    return {name: value for name, value in profile.environment.items() if name not in merged}


def _socket(site: Site) -> Path:
    if site.socket_path is None:
        raise RefusedError("this start has no socket path", remedy="Start it through the service.")
    return site.socket_path


def _port(profile: Profile, site: Site) -> int:
    port = profile.port or site.port
    if port is None:
        raise RefusedError("this start has no port", remedy="Set port in the profile.")
    return port


def _refuse(profile: Profile) -> None:
    for word in profile.arguments:
        flag = word.partition("=")[0].replace("_", "-")
        if takes_secret(flag):
            variable = _SECRET_VARIABLES.get(flag, "the engine's variable for it")
            raise RefusedError(
                f"{profile.name!r} puts a secret on the command line",
                evidence=f"arguments hold {flag}, and every process here can read them",
                remedy=f"Set {variable} under [environment] instead.",
            )
        if flag in _ADDRESS_FLAGS:
            raise RefusedError(
                f"{profile.name!r} sets the engine's address itself",
                evidence=f"arguments hold {flag}",
                remedy="Use listen and port in the profile.",
            )
    if profile.environment.get(DEVELOPER_MODE, "0") not in {"", "0"}:
        raise RefusedError(
            f"{profile.name!r} asks for vLLM's developer mode",
            evidence=f"{DEVELOPER_MODE} opens raw calls into the engine to every client",
            remedy="Remove it: the console's plugin offers what it is needed for.",
        )
