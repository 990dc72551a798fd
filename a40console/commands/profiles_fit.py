"""`a40console profiles fit`: whether a profile's model fits, and what would make it fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.number import NumberRange
from a40console.commands.output import note, print_json, printable
from a40console.commands.running import engine_lives
from a40console.commands.table import Column, print_table
from a40console.engines.fit import Fit, MeasuredFit
from a40console.engines.fit_result import gib
from a40console.errors import Exit
from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.profile import Profile
from a40console.operations.fitting import fit_here, smallest_gpu_bytes
from a40console.paths import Paths
from a40console.profiles.loader import load_profiles
from a40console.telemetry.cgroup import Cgroups
from a40console.telemetry.nvml import GpuSampler

GIB = 2**30
NO_GPU = Missing("no GPU is seen here; name its memory with --vram")
_CODES = {"fits": Exit.DONE, "too_large": Exit.CHECK_FAILED, "unknown": Exit.REFUSED}
_VERDICTS = {"fits": "fits", "too_large": "does not fit", "unknown": "cannot be told"}


@dataclass(frozen=True, slots=True)
class Machine:
    """The memory that profiles are held against."""

    vram_bytes: int | Missing
    devices: int
    taken_bytes: int
    host_bytes: int | Missing


@click.command()
@click.argument("name", metavar="[PROFILE]", required=False)
@click.option(
    "--vram",
    "vram_gib",
    type=NumberRange(min=0.1, max=100_000),
    metavar="GIB",
    help="Memory of one GPU, for a machine that is not this one: an A40 has 44.99.",
)
@click.option("--gpus", type=click.IntRange(1, 1024), metavar="N", help="How many of them.")
@json_option
@click.pass_obj
def fit(
    invocation: Invocation,
    *,
    name: str | None,
    vram_gib: float | None,
    gpus: int | None,
    as_json: bool,
) -> None:
    """Whether a model fits: weights, cache, overhead; 6 where not, 5 where it cannot be told.

    Without PROFILE all of them, and the exit code of the worst; simulated and attached ones, which
    hold no model here, do not count. Measured figures of an earlier start are kept apart from those
    worked out (≈).
    """
    found = load_profiles(invocation.paths.profiles)
    machine = machine_here(invocation.paths, vram_gib, gpus)
    if name is None:
        profiles = [found.profiles[key] for key in sorted(found.profiles)]
        fits = [fit_on(profile, invocation.paths, machine) for profile in profiles]
        if as_json:
            print_json({"fits": fits})
        else:
            _print_all(invocation, fits)
        for why in found.failures.values():
            note(why)
        held = {profile.name for profile in profiles if profile.kind not in ("sim", "attached")}
        verdicts = [answer.verdict for answer in fits if answer.profile in held]
        click.get_current_context().exit(max((_CODES[v] for v in verdicts), default=Exit.DONE))
    answer = fit_on(found.find(name), invocation.paths, machine)
    if as_json:
        print_json({"fit": answer})
    else:
        for line in described(answer):
            click.echo(printable(line))
    click.get_current_context().exit(_CODES[answer.verdict])


def described(answer: Fit) -> Iterator[str]:
    """A fit in lines: the verdict, every figure with where it comes from, what would mend it."""
    yield f"{answer.profile} {_VERDICTS[answer.verdict]}: {answer.reason}"
    yield ""
    if isinstance(answer.kv_bytes_per_token, Missing):  # then the model itself is not known
        yield from _measured(answer.measured)
        return
    each = " (each GPU)" if answer.devices > 1 else ""
    yield from _row(f"memory{each}", _size(answer.memory_bytes), _share(answer))
    yield from _row("weights", _size(answer.weights_bytes), answer.weights_origin)
    yield from _row("besides", _size(answer.overhead_bytes), answer.overhead_origin)
    yield from _row("left for the cache", _size(answer.room_bytes), "")
    yield from _row("a token", _bytes(answer.kv_bytes_per_token), "")
    if number(answer.state_bytes_per_sequence):
        state = _size(answer.state_bytes_per_sequence)
        yield from _row("a sequence besides", state, "recurrent states, whatever its length")
    yield from _row("context asked", _tokens(answer.context_tokens), "")
    yield from _row("cache holds", _tokens(answer.capacity_tokens), _at_once(answer))
    yield from _row("longest context", _tokens(answer.longest_tokens), "of one sequence alone")
    yield from _measured(answer.measured)
    for remedy in answer.remedies:
        before = "not set" if remedy.before is None else remedy.before
        change = f"{remedy.setting} = {remedy.after} ({before} now)"
        yield from _row("would fit with", change, remedy.effect)


def _measured(measured: MeasuredFit | Missing) -> Iterator[str]:
    if isinstance(measured, Missing):
        yield from _row("measured", "–", measured.reason)
        return
    same = "with these settings" if measured.same_settings else "with OTHER settings"
    said = [
        f"cache {_tokens(measured.capacity_tokens)}",
        f"{_plain(measured.sequences)} sequences of {_tokens(measured.context_tokens)}",
    ]
    if number(measured.weights_bytes) is not None:
        said.append(f"weights {_size(measured.weights_bytes)}")
    if number(measured.room_bytes) is not None:
        said.append(f"room {_size(measured.room_bytes)}")
    yield from _row("measured", ", ".join(said), f"start {measured.start}, {same}")


def _row(name: str, value: str, origin: str) -> Iterator[str]:
    yield f"{name:<24}{value}{f'   {origin}' if origin else ''}"


def _share(answer: Fit) -> str:
    usable = number(answer.usable_bytes)
    if usable is None or answer.usable_bytes == answer.memory_bytes:
        return "of this machine" if answer.place == "host" else ""
    return f"of which the engine may use {gib(usable)}"


def _at_once(answer: Fit) -> str:
    if number(answer.sequences) is None:
        return ""
    asked = _plain(answer.sequences_asked)
    return f"{_plain(answer.sequences)} sequences of the whole context; {asked} asked"


def _size(figure: Figure) -> str:
    return _in_words(figure, gib)


def _bytes(figure: Figure) -> str:
    return _in_words(figure, lambda value: f"{value:,.0f} bytes of cache")


def _tokens(figure: Figure) -> str:
    return _in_words(figure, lambda value: f"{value:,.0f} tokens")


def _plain(figure: Figure) -> str:
    return _in_words(figure, lambda value: f"{value:,g}")


def _in_words(figure: Figure, words: Callable[[float], str]) -> str:
    value = number(figure)
    if value is None:
        return f"– ({figure.reason})" if isinstance(figure, Missing) else "–"
    return f"{'≈ ' if isinstance(figure, Estimated) else ''}{words(value)}"


def fit_on(profile: Profile, paths: Paths, machine: Machine) -> Fit:
    """The fit of a profile on a machine."""
    return fit_here(
        profile,
        paths,
        os.environ,
        vram_bytes=machine.vram_bytes,
        devices=machine.devices,
        taken_bytes=machine.taken_bytes,
        host_bytes=machine.host_bytes,
    )


def machine_here(paths: Paths, vram_gib: float | None = None, gpus: int | None = None) -> Machine:
    """What was named, else what is here; an engine of ours is not counted as taken."""
    cgroups = Cgroups()
    limit = cgroups.memory().limit_bytes or cgroups.machine_memory_bytes()
    host = Missing("the machine's memory cannot be read") if limit is None else limit
    if vram_gib is not None:
        return Machine(int(vram_gib * GIB), gpus or 1, 0, host)
    sampler = GpuSampler()
    sampler.sample()
    seen = sampler.view()
    vram = smallest_gpu_bytes(seen)
    if isinstance(seen, Missing) or isinstance(vram, Missing):
        return Machine(NO_GPU, gpus or 0, 0, host)
    used = max(int(number(gpu.memory_used_bytes) or 0) for gpu in seen)
    return Machine(vram, gpus or len(seen), 0 if engine_lives(paths) else used, host)


def _print_all(invocation: Invocation, fits: list[Fit]) -> None:
    columns = (
        Column("profile"),
        Column("verdict"),
        Column("weights"),
        Column("cache holds"),
        Column("context asked"),
        Column("by", spare=True),
    )
    rows = [
        (
            answer.profile,
            _VERDICTS[answer.verdict],
            _short(answer.weights_bytes, gib),
            _short(answer.capacity_tokens, lambda value: f"{value:,.0f}"),
            _short(answer.context_tokens, lambda value: f"{value:,.0f}"),
            answer.judged_by,
        )
        for answer in fits
    ]
    print_table(invocation, columns, rows)
    for answer in fits:
        if answer.verdict != "fits":
            text = f"{answer.profile} {_VERDICTS[answer.verdict]}: {answer.reason}"
            click.echo(printable(text))


def _short(figure: Figure, words: Callable[[float], str]) -> str:
    return "–" if isinstance(figure, Missing) else _in_words(figure, words)
