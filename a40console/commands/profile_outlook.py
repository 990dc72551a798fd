"""Whether each profile would run on this machine, and every reason why it would not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from a40console.commands.profiles_fit import Machine, fit_on, machine_here
from a40console.engines.capability import needs_gpu, obstacles
from a40console.errors import ConsoleError
from a40console.model.figures import Missing
from a40console.model.profile import Profile
from a40console.model.wording import size
from a40console.operations.flag_check import NOT_HERE, NOT_VLLM, known_flags, unknown_flags
from a40console.operations.ladder import placed, rungs
from a40console.operations.models import ModelStore
from a40console.paths import Paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What this machine has to say of one profile."""

    name: str
    ready: bool
    why_not: tuple[str, ...]
    """Everything that is in the way."""

    notes: tuple[str, ...]
    """What is not, and is worth knowing before a start."""

    def in_words(self) -> str:
        """One line."""
        if self.ready:
            return "; ".join((f"{self.name} runs here", *self.notes))
        return f"{self.name} does not run here: {'; '.join((*self.why_not, *self.notes))}"


def outlooks(
    profiles: Sequence[Profile],
    paths: Paths,
    environment: Mapping[str, str],
    *,
    ask_engines: bool = False,
) -> tuple[Outlook, ...]:
    """The outlook of each profile.

    Args:
        profiles: To be looked at.
        paths: Where models, engines and earlier starts lie.
        environment: Where programs and the hub's cache are looked for.
        ask_engines: Run each installed vLLM for its help where its flags are not known yet.
    """
    machine = machine_here(paths)
    found = []
    for profile in profiles:
        why_not = [
            *obstacles(profile, environment, environments=paths.environments),
            *_flags(profile, paths, environment, ask_engines=ask_engines),
            *_memory(profile, paths, machine),
        ]
        lacking, notes = _model(profile, paths, environment)
        if not profile.served:
            notes.append("nobody has seen it serve yet")
        why_not += lacking
        found.append(
            Outlook(
                name=profile.name, ready=not why_not, why_not=tuple(why_not), notes=tuple(notes)
            )
        )
    return tuple(found)


def _flags(
    profile: Profile, paths: Paths, environment: Mapping[str, str], *, ask_engines: bool
) -> Iterator[str]:
    """Flags that the installed vLLM does not take, as far as that is known."""
    known = known_flags(profile, paths, environment, ask=ask_engines)
    if isinstance(known, Missing):
        if ask_engines and known not in (NOT_VLLM, NOT_HERE):
            yield known.reason
    elif (why := unknown_flags(profile, known, paths, environment)) is not None:
        yield why


def _memory(profile: Profile, paths: Paths, machine: Machine) -> Iterator[str]:
    """Why no rung of its ladder fits; the first one's reason."""
    if needs_gpu(profile) and isinstance(machine.vram_bytes, Missing):
        return
    fits = [fit_on(placed(profile, rung), paths, machine) for rung in range(rungs(profile))]
    if all(fit.verdict == "too_large" for fit in fits):
        yield fits[0].reason


def _model(
    profile: Profile, paths: Paths, environment: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """What is in the way of its model, and what a start would fetch first."""
    weights = profile.shape.weights_bytes if profile.shape else 0
    told = f" ({size(weights)})" if weights else ""
    if profile.kind in ("sim", "attached"):
        return [], []
    if profile.fetched_by_engine:
        return [], [f"llama-server fetches {profile.model}{told} where it has it not"]
    store = ModelStore(paths, {profile.name: profile}, {**environment, **profile.environment})
    try:
        model = store.find(profile.name)
    except ConsoleError as error:
        return [error.message], []
    if model.state == "damaged":
        return [f"its model {model.path} is damaged: a40console models fetch {profile.name}"], []
    if model.state not in ("missing", "partial"):
        return [], []
    if model.kind == "local":
        return [f"its model {model.path} is not here"], []
    return [], [f"its model is not here yet and is fetched first{told}"]
