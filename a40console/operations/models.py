"""The models of the profiles on this disk: which are here and right, fetching, removing."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from a40console.engines import snapshots, weights
from a40console.engines.installing.environments import size_on_disk
from a40console.errors import CheckFailedError, RefusedError, UsageError
from a40console.model.profile import ModelFile, Profile
from a40console.operations.running import living_runs
from a40console.paths import Paths, make_private

SHORT_HASH = 12
"""Digits of a hash that tell one file from another of its name."""

ModelKind = Literal["file", "snapshot", "local"]
ModelState = Literal["verified", "here", "partial", "damaged", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """A model that profiles name, and what is on the disk of it."""

    name: str
    """The file's name, the hub's repository, or a path; more of it where two have the same."""

    kind: ModelKind
    profiles: tuple[str, ...]
    path: str
    state: ModelState
    detail: str
    """What the state means here; empty where the word says it."""

    here_bytes: int
    expected_bytes: int | None
    """None where only the hub knows."""

    in_use_by: str | None
    """The profile of a running engine that uses it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells one model from every other."""

    kind: ModelKind
    name: str
    content: str
    """The pinned hash, or the cache that the hub's files are kept in; empty for a place."""

    origin: str = field(compare=False)
    """Where it comes from, as a profile names it."""

    def called(self, longer: int) -> str:
        """Its name, longer where that does not tell it from another: 0 to 3."""
        content = self.content or self.kind
        if longer == 2 and self.kind == "file":
            content = content[:SHORT_HASH]
        return (self.name, self.origin, *[f"{self.origin} ({content})"] * 2)[longer]


class ModelStore:
    """The models of a set of profiles.

    Args:
        paths: Where our own files lie.
        profiles: All profiles that could be read.
        environment: Names the hub, its cache and its token.
    """

    def __init__(
        self, paths: Paths, profiles: Mapping[str, Profile], environment: Mapping[str, str]
    ) -> None:
        self._paths = paths
        self._profiles = profiles
        self._environment = environment

    def models(self, *, verify: bool = False) -> tuple[StoredModel, ...]:
        """Every model; `verify` hashes what was not hashed before."""
        users = self._users()
        names = _names(users)
        runs = living_runs(self._paths)
        running = {self._identity(run.profile): run.profile.name for run in runs}
        return tuple(
            self._stored(names[identity], users[identity], running.get(identity), verify=verify)
            for identity in sorted(users, key=lambda identity: names[identity])
        )

    def _users(self) -> dict[Identity, list[Profile]]:
        users: dict[Identity, list[Profile]] = {}
        for _, profile in sorted(self._profiles.items()):
            # A simulated engine has no model; what llama-server fetches is its own affair.
            if profile.kind in ("vllm", "llamacpp") and not profile.fetched_by_engine:
                users.setdefault(self._identity(profile), []).append(profile)
        return users

    def _identity(self, profile: Profile) -> Identity:
        """What makes it the same model: its content and its place."""
        kind, file = _kind(profile), profile.file
        if file is not None:
            return Identity(kind, Path(file.file).name, file.sha256, f"{file.repo}/{file.file}")
        place = str(self._cache(profile)) if kind == "snapshot" else ""
        return Identity(kind, profile.model, place, profile.model)

    def find(self, name: str) -> StoredModel:
        """The model of that name, or of the profile of that name.

        Raises:
            UsageError: If no profile names it.
        """
        models = self.models()
        for model in models:
            if name in model.profiles or (model.name == name and name not in self._profiles):
                return model
        several = any(identity.name == name for identity in self._users())
        raise UsageError(
            f"Several models are called {name!r}"
            if several
            else f"No profile uses a model {name!r}",
            remedy="There are: " + ", ".join(model.name for model in models),
        )

    async def fetch(self, model: StoredModel, progress: weights.Progress) -> StoredModel:
        """Bring a model here and check it; one that is here and right is left alone.

        Raises:
            RefusedError: If it does not come.
            CheckFailedError: If it is not what it should be; that is moved aside.
        """
        profile = self._user(model)
        if model.kind == "local":
            raise RefusedError(
                f"{model.name} is no model of the hub",
                evidence="the profile names a place on this disk"
                + ("" if Path(model.path).exists() else ", where nothing is"),
                remedy="Put it there, or name a repository of the hub in the profile.",
            )
        if profile.file is not None:
            await weights.ensure_file(profile.file, make_private(self._paths.models), progress)
        else:
            cache, environment = self._cache(profile), self._for(profile)
            marks = snapshots.marks_file(make_private(self._paths.models), profile.model, cache)
            found = await snapshots.fetch_snapshot(
                profile.model, cache, environment, progress, marks=marks
            )
            # What was here before and never hashed is hashed now, which may take minutes.
            await asyncio.to_thread(_demand_right, model, found, marks)
        return self.find(model.name)

    def demand_deletable(self, model: StoredModel) -> None:
        """See that a model may be removed.

        Raises:
            RefusedError: If a running engine uses it, it is not ours to remove, or not here.
        """
        if model.in_use_by is not None:
            raise RefusedError(
                f"{model.name} is in use",
                evidence=f"the engine of {model.in_use_by} runs with it",
                remedy="Stop it first: a40console engine stop",
            )
        if model.kind == "local":
            raise RefusedError(
                f"{model.name} was not fetched by us",
                remedy="Remove it yourself, where it is not needed.",
            )
        file = self._user(model).file
        if file is not None and weights.is_fetching(file, self._paths.models):
            raise RefusedError(
                f"{model.name} is being fetched", remedy="Wait for it, or end that fetch."
            )
        if not any(map(_size, self._files_of(model))):
            raise RefusedError(f"Nothing of {model.name} is here", evidence=model.path)

    def delete(self, model: StoredModel) -> int:
        """Remove what is here of a model; the bytes freed.

        Raises:
            RefusedError: If it may not be removed, or the disk does not let go of it.
        """
        self.demand_deletable(model)
        freed = sum(map(_size, self._files_of(model)))
        try:
            self._remove(model)
        except OSError as error:
            raise RefusedError(
                f"{model.name} could not be removed whole", evidence=str(error)
            ) from error
        return freed

    def _remove(self, model: StoredModel) -> None:
        if model.kind == "file":
            for path in self._files_of(model):
                weights.remove(path, self._paths.models)
            return
        repository, cache = self._user(model).model, Path(model.path).parent
        found = snapshots.read_snapshot(repository, cache)
        if found is not None:
            marks = snapshots.marks_file(self._paths.models, repository, cache)
            snapshots.remove_snapshot(found, marks)

    def _files_of(self, model: StoredModel) -> list[Path]:
        file = self._user(model).file
        if file is None:
            return [Path(model.path)]
        files = weights.files_of(file, self._paths.models)
        if self._owner(file) is None:
            return files
        return [path for path in files if path.name.startswith(weights.SCRATCH)]

    def _owner(self, file: ModelFile) -> Profile | None:
        """Whose file lies in this one's place, where it is another of the same name."""
        for owner, *_ in self._users().values():
            other = owner.file
            if other is None or other.sha256 == file.sha256 or not _same_name(other, file):
                continue
            with suppress(RefusedError):
                place = weights.place(other, self._paths.models)
                if weights.look(place, other, verify=False) == "verified":
                    return owner
        return None

    def _user(self, model: StoredModel) -> Profile:
        return self._profiles[model.profiles[0]]

    def _for(self, profile: Profile) -> dict[str, str]:
        """The variables that the profile's engine will have: they may move the hub's cache."""
        return {**self._environment, **profile.environment}

    def _cache(self, profile: Profile) -> Path:
        return snapshots.hub_cache(self._for(profile))

    def _stored(
        self, name: str, profiles: list[Profile], in_use_by: str | None, *, verify: bool
    ) -> StoredModel:
        kind = _kind(profiles[0])
        if kind == "file" and profiles[0].file is not None:
            state, detail, here, path = self._file(profiles[0].file, verify=verify)
        elif kind == "snapshot":
            state, detail, here, path = self._snapshot(profiles[0], verify=verify)
        else:
            state, detail, here, path = _local(profiles[0].model)
        file = profiles[0].file
        return StoredModel(
            name=name,
            kind=kind,
            profiles=tuple(profile.name for profile in profiles),
            path=str(path),
            state=state,
            detail=detail,
            here_bytes=here,
            expected_bytes=file.size_bytes if file else None,
            in_use_by=in_use_by,
        )

    def _file(self, file: ModelFile, *, verify: bool) -> tuple[ModelState, str, int, Path]:
        try:
            target = weights.place(file, self._paths.models)
        except RefusedError as error:
            return "missing", error.evidence, 0, self._paths.models
        owner = self._owner(file)
        here = "missing" if owner else weights.look(target, file, verify=verify)
        if here == "missing":
            partial = weights.partial_bytes(file, self._paths.models)
            if partial:
                return "partial", "a fetch did not end", partial, target
            return "missing", f"in its place lies that of {owner.name}" if owner else "", 0, target
        detail = "not the pinned file" if here == "damaged" else ""
        return here, detail, _size(target), target

    def _snapshot(self, profile: Profile, *, verify: bool) -> tuple[ModelState, str, int, Path]:
        name, cache = profile.model, self._cache(profile)
        path = snapshots.repository_folder(name, cache)
        found = snapshots.read_snapshot(name, cache)
        if found is None:
            return "missing", "", 0, path
        if found.missing is not None:
            return "partial", f"without {found.missing}", found.size_bytes, path
        marks = snapshots.marks_file(self._paths.models, name, cache)
        if verify and (wrong := snapshots.verify(found, marks)):
            return "damaged", f"{len(wrong)} files changed", found.size_bytes, path
        checked = snapshots.is_verified(found, marks)
        return ("verified" if checked else "here"), "", found.size_bytes, path


def _demand_right(model: StoredModel, found: snapshots.CachedRepository, marks: Path) -> None:
    if not (wrong := snapshots.verify(found, marks)):
        return
    asides = [snapshots.set_aside(found, name) for name in wrong]
    raise CheckFailedError(
        f"{len(wrong)} files of {model.name} are not what the hub names",
        evidence=f"moved aside: {', '.join(map(str, asides))}",
        remedy="Remove them; the same command fetches them again.",
    )


def _names(identities: Iterable[Identity]) -> dict[Identity, str]:
    """What each is called: no more of its identity than tells it from the others."""
    names = {identity: identity.name for identity in identities}
    for longer in (1, 2, 3):
        count = Counter(names.values())
        names |= {one: one.called(longer) for one, name in names.items() if count[name] > 1}
    return names


def _same_name(one: ModelFile, other: ModelFile) -> bool:
    return Path(one.file).name == Path(other.file).name


def _kind(profile: Profile) -> ModelKind:
    if profile.file is not None:
        return "file"
    if profile.kind == "vllm" and snapshots.is_repository(profile.model):
        return "snapshot"
    return "local"


def _local(name: str) -> tuple[ModelState, str, int, Path]:
    path = Path(os.path.expanduser(name))  # noqa: PTH111 - raises nothing for an unknown user
    here = os.path.exists(path)  # noqa: PTH110 - nor for a name that no disk takes
    return ("here" if here else "missing"), "on this disk", _size(path), path


def _size(path: Path) -> int:
    with suppress(OSError, ValueError):
        return size_on_disk(path) if path.is_dir() else path.stat().st_size
    return 0
