"""Reads profiles: the shipped ones, then the operator's, which replace their namesakes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from a40console.errors import UsageError
from a40console.model.document import DocumentError, read_document
from a40console.model.file_name import name_fault
from a40console.model.profile import (
    LIMIT_USD_PER_HOUR,
    LIVE_METHODS,
    ModelFile,
    Placement,
    Profile,
    Speculation,
)
from a40console.model.shape import ModelShape
from a40console.model.toml_text import parse_toml
from a40console.profiles.endpoint import endpoint_faults

SHIPPED = "shipped"
"""Origin of a profile that came with the console."""

MOST_CHARACTERS = 256 * 1024
"""Of a profile's file; what is longer is not even parsed, which takes seconds."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_POSITIVE = (
    "max_model_len",
    "max_running",
    "max_batched_tokens",
    "tensor_parallel",
    "threads",
    "start_timeout_s",
    "stall_after_s",
)


class _NotAProfileError(ValueError):
    """What is wrong with one file, in words."""


@dataclass(frozen=True, slots=True)
class ProfileSet:
    """All profiles that could be read, and why the others could not."""

    profiles: dict[str, Profile]
    origins: dict[str, str]
    """Name to `shipped`, or to the file it was read from."""

    failures: dict[Path, str]

    def find(self, name: str) -> Profile:
        """The profile of that name.

        Raises:
            UsageError: If there is none, and which are nearest; or if its file is broken, and how.
        """
        if (found := self.profiles.get(name)) is not None:
            return found
        if (why := self._broken(name)) is not None:
            raise UsageError(
                f"the profile {name!r} cannot be read",
                evidence=why,
                remedy=f"Mend its file; look at it with: a40console profiles check {name}",
            )
        broken = {path.stem for path in self.failures if path.suffix == ".toml"}
        nearest = get_close_matches(name, {*self.profiles, *broken}, n=3, cutoff=0.5)
        known = nearest or sorted(self.profiles)
        raise UsageError(
            f"there is no profile {name!r}",
            remedy=f"{'Nearest' if nearest else 'There are'}: {', '.join(known)}.",
        )

    def _broken(self, name: str) -> str | None:
        """What is wrong with the file of that name, or with the folder that may hold it."""
        folders = (why for path, why in self.failures.items() if path.suffix != ".toml")
        files = (why for path, why in self.failures.items() if path.name == f"{name}.toml")
        return next(files, None) or next(folders, None)


def load_profiles(user_folder: Path) -> ProfileSet:
    """Read every profile; a file that is wrong is reported and hides no other."""
    result = ProfileSet({}, {}, {})
    for source in _toml_files(files("a40console.profiles").iterdir()):
        _add(result, source, SHIPPED)
    try:
        own = sorted(user_folder.glob("*.toml"))
    except OSError as error:
        result.failures[user_folder] = f"{user_folder} cannot be read: {error.strerror}"
        own = []
    for path in own:
        _add(result, path, str(path))
    return result


def source_text(origin: str, name: str) -> str:
    """The text that a profile was read from.

    Args:
        origin: Where it came from, as `ProfileSet.origins` tells.
        name: Its name.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is not UTF-8.
    """
    if origin != SHIPPED:
        return Path(origin).read_bytes().decode("utf-8")
    return (files("a40console.profiles") / f"{name}.toml").read_text(encoding="utf-8")


def _toml_files(entries: Iterable[Traversable]) -> Iterator[Traversable]:
    yield from sorted(
        (entry for entry in entries if entry.name.endswith(".toml")), key=lambda entry: entry.name
    )


def _add(result: ProfileSet, source: Traversable, origin: str) -> None:
    path = Path(str(source))
    try:
        if path.exists() and not path.is_file():
            raise _NotAProfileError("not a regular file")
        profile = parse_profile(profile_text(source), path.stem)
        taken = result.origins.get(profile.name, SHIPPED)
        if taken != SHIPPED:
            raise _NotAProfileError(f"the name {profile.name!r} is taken by {taken}")
    except (OSError, UnicodeDecodeError) as error:
        result.failures[path] = f"{path}: cannot be read: {error}"
    except _NotAProfileError as error:
        result.failures[path] = f"{path}: {error}"
    else:
        result.profiles[profile.name] = profile
        result.origins[profile.name] = origin


def profile_text(source: Traversable) -> str:
    """A profile's text.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is not UTF-8, or longer than a profile can be.
    """
    with source.open("r", encoding="utf-8") as file:
        text: str = file.read(MOST_CHARACTERS + 1)
    if len(text) > MOST_CHARACTERS:
        raise _NotAProfileError(f"more than {MOST_CHARACTERS // 1024} KiB: no profile is so long")
    return text


def parse_profile(text: str, default_name: str) -> Profile:
    """A profile from its TOML text; the file's stem serves where it has no `name`.

    Raises:
        ValueError: If it is not TOML, a key does not exist or a value does not fit; names key and
            nearest key.
    """
    try:
        document = {"name": default_name, **parse_toml(text)}
    except ValueError as error:
        raise _NotAProfileError(str(error)) from error
    try:
        profile = read_document(Profile, document)
    except DocumentError as error:
        raise _NotAProfileError(str(error)) from error
    if faults := list(_faults(profile)):
        raise _NotAProfileError("; ".join(faults))
    return profile


def _faults(profile: Profile) -> Iterator[str]:
    if not _NAME.fullmatch(profile.name):
        yield f"name {profile.name!r} may hold letters, digits, '.', '_' and '-' only"
    yield from _model_faults(profile)
    yield from _nul_faults(asdict(profile), "")
    yield from _not_positive(profile, _POSITIVE)
    share = profile.gpu_memory_utilization
    if share is not None and not 0 < share <= 1:
        yield "gpu_memory_utilization must be in 0 to 1"
    if profile.port is not None and not 0 < profile.port < 65536:
        yield "port must be in 1 to 65535"
    if profile.usd_per_hour is not None:
        yield from _price_faults(profile.usd_per_hour)
    if profile.kind == "sim" and profile.executable is not None:
        yield "executable: the simulated engine comes with the console and runs no other program"
    yield from endpoint_faults(profile)
    if profile.implementation == "cpp":
        yield from _cpp_faults(profile)
    if profile.speculation is not None:
        yield from _speculation_faults(profile.speculation)
        yield from _start_faults(profile, profile.speculation)
    yield from _table_faults(profile)


def _cpp_faults(profile: Profile) -> Iterator[str]:
    """What vllm.cpp has not: its server ends at the first flag that it does not know."""
    if profile.kind != "vllm" or profile.executable is None:
        yield "implementation cpp is for vLLM, with vllm.cpp's server as the executable"
    if profile.plugin:
        yield "plugin must be false: vllm.cpp loads none"
    if profile.listen != "loopback":
        yield 'listen must be "loopback": vllm.cpp has no Unix socket'
    lacking = ("quantization", "async_scheduling", "enforce_eager", "tensor_parallel")
    for key in lacking:
        if getattr(profile, key) is not None:
            yield f"{key} is not known to vllm.cpp"


def _placement_faults(placement: Placement, place: str) -> Iterator[str]:
    keys = ("max_model_len", "max_running", "max_batched_tokens")
    yield from _not_positive(placement, keys, prefix=f"{place}.")
    share = placement.gpu_memory_utilization
    if share is not None and not 0 < share <= 1:
        yield f"{place}.gpu_memory_utilization must be in 0 to 1"
    if placement == Placement():
        yield f"{place} changes nothing"


def _model_faults(profile: Profile) -> Iterator[str]:
    if profile.public_name.startswith("claude-"):
        key = "name" if profile.served_name is None else "served_name"
        yield f"{key} must not begin with claude-: clients take such a model for one of Anthropic's"
    if profile.model.startswith("-"):
        yield "model must not begin with -: the engine would take it for an option"


def _price_faults(usd_per_hour: Decimal) -> Iterator[str]:
    if usd_per_hour < 0:
        yield "usd_per_hour must not be negative"
    if usd_per_hour >= LIMIT_USD_PER_HOUR:
        yield f"usd_per_hour must be less than {LIMIT_USD_PER_HOUR}"


def _nul_faults(value: object, key: str) -> Iterator[str]:
    """No path, argument or variable can hold one."""
    match value:
        case str():
            if "\0" in value:
                yield f"{key} must not hold a NUL"
        case dict():
            for name, item in value.items():
                place = (f"{key}.{name}" if key else str(name)).replace("\0", "")
                if "\0" in str(name):
                    yield f"{place} must not hold a NUL"
                yield from _nul_faults(item, place)
        case tuple() | list():
            for item in value:
                yield from _nul_faults(item, key)


def _not_positive(table: object, keys: Iterable[str], *, prefix: str = "") -> Iterator[str]:
    for key in keys:
        value = getattr(table, key)
        if value is not None and value <= 0:
            yield f"{prefix}{key} must be more than 0"


def _speculation_faults(asked: Speculation) -> Iterator[str]:
    keys = ("tokens", "prompt_lookup_max", "prompt_lookup_min", "max_batched_tokens")
    yield from _not_positive(asked, keys, prefix="speculation.")
    shortest, longest = asked.prompt_lookup_min, asked.prompt_lookup_max
    if shortest is not None and longest is not None and shortest > longest:
        yield "speculation.prompt_lookup_min must not exceed prompt_lookup_max"


def _start_faults(profile: Profile, asked: Speculation) -> Iterator[str]:
    """What is wrong with how speculation begins; only our plugin begins it otherwise than on."""
    start = asked.start
    if start is None:
        return
    if not isinstance(start, str) and not 0 < start <= asked.tokens:
        yield f"speculation.start must be on, off or a depth from 1 to {asked.tokens}"
    if start == "off" and asked.enabled:
        yield 'speculation.start is "off" and enabled is true: leave one of them out'
    if start == "on" or profile.turns_live:
        return
    needs = "vLLM with our plugin" if asked.method in LIVE_METHODS else 'the method "ngram"'
    yield f"speculation.start needs {needs}: nothing else turns speculation while the engine runs"


def _table_faults(profile: Profile) -> Iterator[str]:
    for number, placement in enumerate(profile.placements, 1):
        yield from _placement_faults(placement, f"placements.{number}")
    if profile.file is not None:
        yield from _file_faults(profile, profile.file)
    if profile.shape is not None:
        yield from _shape_faults(profile.shape)


def _shape_faults(shape: ModelShape) -> Iterator[str]:
    yield from _not_positive(shape, ("layers", "attention_layers"), prefix="shape.")
    for key, value in asdict(shape).items():
        if isinstance(value, int | float) and value < 0:
            yield f"shape.{key} must not be negative"
    if not shape.latent_dim and not (shape.kv_heads and shape.head_dim):
        yield "shape.kv_heads and head_dim, or latent_dim, must say what a token takes"


def _file_faults(profile: Profile, file: ModelFile) -> Iterator[str]:
    if profile.kind != "llamacpp":
        yield "file: only llama.cpp reads a single model file"
    if (fault := name_fault(file.file)) is not None:
        yield f"file.file {fault}"
    if not _SHA256.fullmatch(file.sha256):
        yield "file.sha256 must be 64 hexadecimal digits in lower case"
    if file.size_bytes <= 0:
        yield "file.size_bytes must be more than 0"
    if Path(profile.model).name != profile.model:
        yield "model must be a plain file name where file is set"
