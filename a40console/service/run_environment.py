"""What a run runs on, taken the moment before it starts: everything that a comparison must know."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from a40console import __version__
from a40console.engines.gpu_driver import read_driver
from a40console.errors import RefusedError
from a40console.experiments.server_address import without_key
from a40console.ledger.asked_settings import asked_settings
from a40console.model.engine import Endpoint, is_simulated
from a40console.model.figures import Figure, Missing, Text, number
from a40console.model.profile import Profile
from a40console.model.run import NO_GPU, RunEnvironment, RunTarget
from a40console.model.secrets import covered
from a40console.model.snapshot import Gpu, Snapshot
from a40console.operations.record import RunRecord
from a40console.service.run_place import server_root
from a40console.telemetry.fetch import EngineHttp, SourceError
from a40console.telemetry.sim import SERVER as SIMULATED_SERVER
from a40console.telemetry.vllm import Identity, read_identity, read_models

ELSEWHERE = Missing("the engine runs on another machine")
NOT_OURS = Missing("not our engine")
SIMULATED = Missing("the model is simulated")
UNPRICED = Missing("what a URL costs is not known")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SETTINGS = (
    "block_size",
    "cache_dtype",
    "enable_prefix_caching",
    "prefix_caching_hash_algo",
    "gpu_memory_utilization",
    "sliding_window",
    "kv_cache_dtype",
)
"""Of what vLLM says of its cache: what is set, not what came out anew at this start."""

_LISTED_BYTES = 1024 * 1024
"""A model folder's file up to this size counts with its content, a larger one with its size."""

Settings = Mapping[str, str | int | float | bool]


async def own_environment(run: RunRecord, snapshot: Snapshot, settings: Settings) -> RunEnvironment:
    """Of a run on our engine, behind the gateway or past it.

    Args:
        run: The engine start that serves.
        snapshot: The newest one.
        settings: What the engine says is in force.
    """
    profile, simulated = run.profile, snapshot.simulated
    effective = _effective(profile, snapshot, settings)
    name, count, driver = await _card(snapshot.gpus, simulated=simulated)
    return RunEnvironment(
        console=__version__,
        simulated=simulated,
        engine_kind=profile.kind,
        engine_version=snapshot.engine.version,
        model=profile.model,
        model_digest=SIMULATED if simulated else await asyncio.to_thread(model_digest, profile),
        config_digest=config_digest(run, effective),
        profile=profile.name,
        argv=covered(run.argv),
        effective=effective,
        gpu=name,
        gpu_count=count,
        driver=driver,
        vcpu_quota=snapshot.host.cpu_quota_vcpu,
        usd_per_h=snapshot.cost.usd_per_hour,
        host=machine_digest(),
    )


@dataclass(frozen=True, slots=True)
class UrlServer:
    """What answers at a URL, in its own words."""

    server: str
    """Its `Server` header."""

    identity: Identity

    @property
    def simulated(self) -> bool:
        """Whether it says that it is a simulation."""
        return SIMULATED_SERVER in self.server or is_simulated(self.identity.version)

    @property
    def kind(self) -> str:
        """What it is, as far as it says."""
        if self.simulated:
            return "sim"
        if "llama.cpp" in self.server:
            return "llamacpp"
        return "unknown" if isinstance(self.identity.version, Missing) else "vllm"


async def window_at(target: RunTarget) -> Figure:
    """Tokens that a request to a URL may hold; `/version`, which may hang, is not asked for it.

    Raises:
        RefusedError: If nothing well answers there.
    """
    async with _server(target, "") as (http, _):
        try:
            models = await read_models(http)
        except SourceError as error:
            return Missing(error.reason)
    told: list[Figure] = [each["max_model_len"] for each in models if each.get("max_model_len")]
    return told[0] if told else Missing("/v1/models does not tell it")


async def look_at(target: RunTarget, token: str = "") -> UrlServer:
    """Ask who answers at a URL.

    Raises:
        RefusedError: If nothing well does.
    """
    async with _server(target, token) as (http, server):
        return UrlServer(server, await _identity(http))


@asynccontextmanager
async def _server(target: RunTarget, token: str) -> AsyncIterator[tuple[EngineHttp, str]]:
    """The server at a URL, which answers, and its `Server` header."""
    endpoint = Endpoint(server_root(target.url), api_key=token or None)
    http = EngineHttp(endpoint, clock=time.monotonic)
    try:
        answer = await http.get("/v1/models", timeout_s=10.0)
        if answer.status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise RefusedError(
                f"The server at {target.url} is not well",
                evidence=f"/v1/models answers HTTP {answer.status}",
                remedy="See what it says of itself, and measure it once it serves.",
            )
        yield http, answer.server
    except SourceError as error:
        raise RefusedError(
            f"Nothing answers at {target.url}",
            evidence=error.reason,
            remedy="See that the server runs; its address is what stands before /v1.",
        ) from error
    finally:
        await http.aclose()


async def url_environment(
    target: RunTarget, token: str, rent_usd_per_h: Figure, vcpu: Figure
) -> RunEnvironment:
    """Of a run against a URL: what its server says of itself, and of this machine if it is here.

    Raises:
        RefusedError: If nothing answers there.
    """
    found = await look_at(target, token)
    identity, here = found.identity, is_here(target)
    window = number(identity.max_model_len)
    return RunEnvironment(
        console=__version__,
        simulated=found.simulated,
        engine_kind=found.kind,
        engine_version=identity.version,
        model=target.model
        or (without_key(identity.served_names[0], token) if identity.served_names else NOT_OURS),
        model_digest=SIMULATED if found.simulated else NOT_OURS,
        config_digest=NOT_OURS,
        profile=NOT_OURS,
        effective={} if window is None else {"max_model_len": f"{window:.0f}"},
        gpu=NOT_OURS if here else ELSEWHERE,
        driver=NOT_OURS if here else ELSEWHERE,
        vcpu_quota=vcpu if here else ELSEWHERE,
        usd_per_h=rent_usd_per_h if here else UNPRICED,
        host=machine_digest() if here else ELSEWHERE,
    )


def is_here(target: RunTarget) -> bool:
    """Whether a URL leads to this machine."""
    return urlsplit(target.url).hostname in LOOPBACK


async def _identity(http: EngineHttp) -> Identity:
    """Who answers; a server that has no `/version` is somebody all the same."""
    try:
        return await read_identity(http)
    except SourceError as error:
        why = Missing(error.reason)
        return Identity(why, (), why)


def _effective(profile: Profile, snapshot: Snapshot, settings: Settings) -> dict[str, str]:
    """What is in force by the engine's word; what was asked stands in the command line."""
    found = {name: str(settings[name]) for name in _SETTINGS if name in settings}
    window, slots = snapshot.engine.max_model_len, snapshot.requests.max_running
    for name, figure in (("max_model_len", window), ("max_running", slots)):
        if (value := number(figure)) is not None:
            found[name] = f"{value:.0f}"
    differences = snapshot.engine.effective
    for each in () if isinstance(differences, Missing) else differences:
        if not isinstance(each.effective, Missing):
            found[each.setting] = str(each.effective)
    return found | {"speculation": _speculation(profile, snapshot)}


def _speculation(profile: Profile, snapshot: Snapshot) -> str:
    """`off`, `off, 24 ready`, or `ngram 24`."""
    asked, now = profile.speculation, snapshot.speculation
    if asked is None or not asked.ready:
        return "off"
    if now.mode == "off":
        return f"off, {asked.tokens} ready"
    depth = now.depth if isinstance(now.depth, int | float) else asked.start_tokens
    return f"{asked.method} {depth:g}"


async def _card(gpus: tuple[Gpu, ...] | Missing, *, simulated: bool) -> tuple[Text, int, Text]:
    """Name, number and driver of the GPUs."""
    if isinstance(gpus, Missing) or not gpus:
        return NO_GPU, 0, NO_GPU
    names = sorted({gpu.name for gpu in gpus if isinstance(gpu.name, str)})
    driver = SIMULATED if simulated else await asyncio.to_thread(read_driver)
    version: Text = driver if isinstance(driver, Missing) else driver.version
    return ", ".join(names) or Missing("its name is not told"), len(gpus), version


def machine_digest() -> str:
    """A name for this machine that is no name: the same for all runs on it."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/etc/machine-id").read_text(encoding="ascii").strip())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def config_digest(run: RunRecord, effective: Mapping[str, str]) -> str:
    """What tells a configuration from others: all that reaches the engine and could change it.

    Neither the profile's title nor its price does, nor where this start listens, nor a key.
    """
    variables = sorted(run.profile.environment.items())
    asked = {
        "flags": asked_settings(run.argv),
        "variables": covered(f"--{name}={value}" for name, value in variables),
        "effective": dict(effective),
    }
    return _digest(json.dumps(asked, sort_keys=True).encode())


def model_digest(profile: Profile) -> Text:
    """What tells the model's files from others: the file's own digest, else a listing's.

    A folder's weights are known by name and size; reading them whole would take minutes.
    """
    if profile.file is not None:
        return profile.file.sha256
    folder = Path(profile.model).expanduser()
    if folder.is_file():
        return _digest(f"{folder.name} {folder.stat().st_size}".encode())
    if folder.is_dir():
        return _digest(b"\n".join(_listed(path) for path in sorted(folder.iterdir())))
    if (commit := _hub_commit(profile)) is not None:
        return commit
    return Missing("the engine fetched it: which commit is not known")


def _listed(path: Path) -> bytes:
    with suppress(OSError):
        size = path.stat().st_size
        if path.is_file() and size <= _LISTED_BYTES:
            return path.name.encode() + b" " + hashlib.sha256(path.read_bytes()).digest()
        return f"{path.name} {size}".encode()
    return path.name.encode()


def _hub_commit(profile: Profile) -> str | None:
    """The commit of a hub's model that is in the local cache."""
    environment = {**os.environ, **profile.environment}
    home = environment.get("HF_HOME", "~/.cache/huggingface")
    cache = Path(environment.get("HF_HUB_CACHE") or f"{home}/hub").expanduser()
    name = "models--" + profile.model.replace("/", "--")
    with suppress(OSError, ValueError):
        return (cache / name / "refs" / "main").read_text(encoding="ascii").strip() or None
    return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
