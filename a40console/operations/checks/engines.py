"""The engines: what can be run here, with what, and with which models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from a40console.engines import capability
from a40console.engines.capability import EMBEDDED_MODULE, INSTALL_EMBEDDED, Program, find_program
from a40console.engines.distributions import cuda_of, version_of
from a40console.engines.gpu_driver import caution, why_not
from a40console.engines.installing.environments import unfinished
from a40console.engines.plugin_folder import (
    PLUGIN_VERSIONS,
    EngineEnvironmentError,
    engine_python,
)
from a40console.engines.snapshots import hub_token_file, is_repository
from a40console.model.check import Check, CheckState
from a40console.model.figures import Missing
from a40console.model.profile import Profile
from a40console.operations.checks.asked import Asked
from a40console.operations.models import ModelStore

GROUP = "engines"


def engine_checks(asked: Asked) -> Iterator[Check]:
    """Everything about engines, profiles and models."""
    yield _profiles(asked)
    yield from _broken_profiles(asked)
    yield _embedded()
    yield from _vllm(asked)
    for folder in unfinished(asked.paths.environments):
        yield _check(
            folder.name,
            "warn",
            "its installation did not end",
            f"a40console engine install, or a40console engine uninstall {folder.name}",
        )
    yield _models(asked)
    yield _token(asked)


def _check(name: str, state: CheckState, text: str, mend: str = "") -> Check:
    return Check(group=GROUP, name=name, state=state, text=text, mend=mend)


def _real(asked: Asked) -> dict[str, Profile]:
    """The profiles of engines that are not simulated."""
    found = asked.profiles.profiles
    return {name: profile for name, profile in found.items() if profile.kind != "sim"}


def _profiles(asked: Asked) -> Check:
    """Whether anything can be run at all."""
    named = asked.settings.profile
    if named is not None and named not in asked.profiles.profiles:
        mend = "Name another as profile in config.toml; there are: a40console profiles list"
        return _check("profiles", "missing", f"the default, {named}, does not exist", mend)
    able, why = [], ""
    for name, profile in sorted(_real(asked).items()):
        can = capability.check(profile, asked.environment, environments=asked.paths.environments)
        if can.ready:
            able.append(name)
        elif name == named:
            return _check(
                "profiles", "missing", f"the default, {name}, does not run here", can.why_not or ""
            )
        else:
            why = can.why_not or why
    if not able:
        return _check("profiles", "missing", "none of them runs here", INSTALL_EMBEDDED)
    real = f"{len(able)} of {len(_real(asked))} run here, simulated ones aside"
    return _check("profiles", "ok", f"{real}: {', '.join(able)}")


def _broken_profiles(asked: Asked) -> Iterator[Check]:
    for file in asked.profiles.failures:
        yield _check(file.name, "warn", "cannot be read", f"a40console profiles check {file}")


def _embedded() -> Check:
    try:
        return _check("llama.cpp", "ok", f"{EMBEDDED_MODULE} {version(EMBEDDED_MODULE)}, embedded")
    except PackageNotFoundError:
        text = f"{EMBEDDED_MODULE} is not installed: no embedded engine"
        return _check("llama.cpp", "warn", text, INSTALL_EMBEDDED)


def _vllm(asked: Asked) -> Iterator[Check]:
    """Each vLLM that profiles would run, once."""
    found: dict[Program, list[Profile]] = {}
    without: list[Profile] = []
    for _, profile in sorted(_real(asked).items()):
        if profile.kind == "vllm" and not profile.is_cpp:
            program = find_program(profile, asked.environment, asked.paths.environments)
            if program is None:
                without.append(profile)
            else:
                found.setdefault(program, []).append(profile)
    for program, profiles in found.items():
        yield from _program(asked, program, profiles)
    for build in sorted({capability.build_for(profile) for profile in without}):
        names = [each.name for each in without if capability.build_for(each) == build]
        yield _without_vllm(asked, build, names)


def _without_vllm(asked: Asked, build: str, names: list[str]) -> Check:
    text = f"none for {', '.join(names)}"
    if build == "gpu" and isinstance(asked.driver, Missing):
        return _check("vLLM, GPU", "unchecked", f"{text}: no GPU to run it on")
    name = "vLLM, GPU" if build == "gpu" else "vLLM, CPU"
    if build == "cpu" and not isinstance(asked.driver, Missing):
        return _check(name, "unchecked", f"{text}: not needed beside a GPU")
    return _check(name, "warn", text, f"a40console engine install --{build}")


def _program(asked: Asked, program: Program, profiles: list[Profile]) -> Iterator[Check]:
    on_gpu = any(map(capability.needs_gpu, profiles))
    name = "vLLM, GPU" if on_gpu else "vLLM, CPU"
    try:
        python = engine_python(Path(program.path))
    except EngineEnvironmentError as error:
        yield _check(name, "warn", str(error))
        return
    release = version_of(python, "vllm")
    where = f"{program.path} ({program.origin})"
    if release is None:
        yield _check(name, "unchecked", f"{where}: its metadata is not where it should be")
        return
    yield _check(name, "ok", f"{release}, {where}")
    if on_gpu:
        yield _cuda(asked, python)
    yield _plugin(name, release)


def _cuda(asked: Asked, python: Path) -> Check:
    cuda = cuda_of(python)
    if isinstance(asked.driver, Missing):
        return _check("CUDA", "unchecked", f"no driver to compare with: {asked.driver.reason}")
    if cuda is None:
        return _check("CUDA", "unchecked", f"nothing below {python.parent} says which it is")
    if (reason := why_not(cuda, asked.driver)) is not None:
        mend = "a40console engine install --gpu names the release that fits"
        return _check("CUDA", "missing", reason, mend)
    if (warning := caution(cuda, asked.driver)) is not None:
        return _check("CUDA", "warn", warning)
    return _check("CUDA", "ok", f"built for {cuda}, the driver runs {asked.driver.cuda}")


def _plugin(name: str, release: str) -> Check:
    numbers = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    first, last = (".".join(map(str, each)) for each in PLUGIN_VERSIONS)
    label = f"plugin, {name.removeprefix('vLLM, ')}"
    if PLUGIN_VERSIONS[0] <= numbers <= PLUGIN_VERSIONS[1]:
        return _check(label, "ok", f"made for vLLM {first} to {last}")
    return _check(
        label,
        "warn",
        f"made for vLLM {first} to {last}: slots may be metered at the gateway instead",
        f"a40console engine install --version V, with a V from {first} to {last}",
    )


def _models(asked: Asked) -> Check:
    models = ModelStore(asked.paths, _real(asked), asked.environment).models()
    here = [model for model in models if model.state in ("verified", "here")]
    damaged = [model.name for model in models if model.state == "damaged"]
    if damaged:
        mend = f"a40console models delete {damaged[0]}, then a40console models fetch {damaged[0]}"
        return _check("models", "warn", f"damaged: {', '.join(damaged)}", mend)
    return _check(
        "models",
        "ok",
        f"{len(here)} of {len(models)} are here; others are fetched when they are needed",
    )


def _token(asked: Asked) -> Check:
    """Whether there is a token of the hub's; what it is stays where it is."""
    repositories = [
        profile.model for profile in _real(asked).values() if is_repository(profile.model)
    ]
    if not repositories:
        return _check("hub token", "ok", "no profile takes a model from the hub")
    for variable in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        if asked.environment.get(variable):
            return _check("hub token", "ok", f"{variable} is set")
    place = hub_token_file(asked.environment)
    if place.is_file():
        return _check("hub token", "ok", f"in {place}")
    text = "none is set; whether a model is gated, only the hub knows"
    return _check("hub token", "unchecked", text, "export HF_TOKEN=…, for a gated model")
