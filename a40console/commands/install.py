"""`a40console engine install` and `engine uninstall`: environments of their own for vLLM."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from a40console.commands.asking import confirm, yes_option
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import note, print_json, printable
from a40console.commands.table import Column, print_table
from a40console.commands.transfer import TransferLine
from a40console.engines.capability import gpu_present
from a40console.engines.installing.environments import (
    Build,
    EngineEnvironment,
    installed,
    unfinished,
)
from a40console.engines.installing.exclusive import alone
from a40console.engines.installing.installer import Installer
from a40console.engines.installing.plan import (
    Installation,
    InstallPlan,
    Request,
    check_version_text,
)
from a40console.engines.installing.step import Report, Step
from a40console.engines.transfer import TransferRate
from a40console.errors import RefusedError, UsageError
from a40console.model.wording import size
from a40console.operations.environments import Removal
from a40console.operations.environments import uninstall as remove_environment
from a40console.paths import make_private

_PHASES = {
    "uv": "getting",
    "resolve": "resolving",
    "environment": "making",
    "download": "downloading",
    "install": "installing",
    "verify": "verifying",
}


@click.command()
@click.option("--version", metavar="V", help="This release, and not the newest.")
@click.option("--cpu", "build", flag_value="cpu", help="The build for the CPU.")
@click.option("--gpu", "build", flag_value="gpu", help="The build for NVIDIA GPUs.")
@click.option("--into", type=click.Path(path_type=Path), metavar="DIR", help="On another disk.")
@click.option("--list", "listing", is_flag=True, help="List what is installed.")
@yes_option
@json_option
@click.pass_obj
def install(
    invocation: Invocation,
    *,
    version: str | None,
    build: Build | None,
    into: Path | None,
    listing: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Install vLLM into an environment of its own; profiles without `executable` use it.

    Without --cpu or --gpu it is the one that this machine can run. What it takes is told first.
    Interrupted, the same command goes on.
    """
    paths = invocation.paths
    if listing:
        _list(invocation, as_json=as_json)
        return
    if version and (why := check_version_text(version)):
        raise UsageError(f"{version!r} is no version", evidence=why)
    engines = make_private(paths.environments)
    request = Request(
        build=build or ("gpu" if gpu_present() else "cpu"),
        version=version,
        engines=engines,
        into=into.expanduser().absolute() if into else engines,
        plugin=paths.engine_plugin,
        torch_cpu_index=invocation.settings().install.torch_cpu_index,
    )
    with ExitStack() as locks:
        # Ours always: the same environment is not installed and removed at once.
        for folder in dict.fromkeys((engines.resolve(), request.into.resolve())):
            locks.enter_context(alone(folder))
        asyncio.run(_install(request, yes=yes, as_json=as_json))


async def _install(request: Request, *, yes: bool, as_json: bool) -> None:
    with TransferLine(quiet=as_json) as line:
        installer = Installer(request, os.environ, _reporter(line))
        try:
            plan = await installer.plan()
            line.clear()
            present = installer.present(plan)
            if present is None:
                if not as_json:
                    for text in _plan_lines(plan):
                        note(text)
                confirm("Install it?", yes=yes)
        except (click.Abort, RefusedError, UsageError):
            installer.forget()
            raise
        if present is not None:
            installer.forget()
            _tell_present(present, as_json=as_json)
            return
        installation = await installer.carry_out(plan)
    _tell(installation, as_json=as_json)


@click.command()
@click.argument("version")
@yes_option
@json_option
@click.pass_obj
def uninstall(invocation: Invocation, *, version: str, yes: bool, as_json: bool) -> None:
    """Remove the environment VERSION, such as 0.32.0, or a name that `install --list` shows."""
    paths = invocation.paths
    with alone(make_private(paths.environments)):
        target = remove_environment(paths, version)
        confirm(_removal_question(target), yes=yes)
        with TransferLine(quiet=as_json) as line:
            line.show(f"removing {target.folder}")
            freed = target.remove()
    if as_json:
        stays = str(target.stays) if target.stays else None
        print_json({"removed": target.name, "freed_bytes": freed, "stays": stays})
    elif target.stays is None:
        click.echo(f"{target.name} is removed; {size(freed)} are free again.")
    else:
        click.echo(printable(f"The link {target.name} is removed; {target.stays} stays."))
        if target.stays.exists():
            note(f"To free its disk: rm -r {shlex.quote(str(target.stays))}")


def _removal_question(target: Removal) -> str:
    """What is about to go, by its real place."""
    if target.stays is None:
        return f"Remove {target.folder}, {size(target.size_bytes)}?"
    return f"Remove the link {target.folder}? {target.stays}, to which it leads, stays."


def _reporter(line: TransferLine) -> Report:
    rate = TransferRate()

    def report(step: Step) -> None:
        label = " ".join(filter(None, (_PHASES[step.phase], step.detail)))
        if step.written_bytes is None:
            line.show(label)
            return
        moment = rate.read(time.monotonic(), step.written_bytes, step.total_bytes)
        line.show(label, moment, measures="unpacked")  # uv unpacks each wheel as it comes

    return report


def _plan_lines(plan: InstallPlan) -> list[str]:
    what = "the CPU" if plan.build == "cpu" else f"CUDA {plan.resolution.cuda or 'unknown'}"
    unsized = plan.resolution.unsized
    more = f", and {unsized} packages whose size the index does not say" if unsized else ""
    what_and_where = (
        f"vLLM {plan.version} for {what}, {len(plan.resolution.packages)} packages, "
        f"into {plan.folder}"
    )
    sizes = (
        f"{size(plan.download_bytes)} to download{more}; about {size(plan.disk_bytes)} on the "
        f"disk, where {size(plan.free_bytes)} are free"
    )
    return [what_and_where, sizes, *plan.cautions]


def _tell_present(environment: EngineEnvironment, *, as_json: bool) -> None:
    if as_json:
        print_json({"environment": _row(environment), "installed_now": False})
    else:
        click.echo(f"vLLM {environment.stamp.version} is installed already: {environment.folder}")


def _tell(installation: Installation, *, as_json: bool) -> None:
    environment = installation.environment
    if as_json:
        print_json(
            {
                "environment": _row(environment),
                "installed_now": True,
                "says": installation.says,
                "plugin": "usable" if installation.plugin_trouble is None else "not usable",
                "plugin_trouble": installation.plugin_trouble,
            }
        )
        return
    stamp = environment.stamp
    click.echo(f"vLLM {installation.says} is installed: {size(stamp.size_bytes)} on the disk.")
    if installation.plugin_trouble is None:
        click.echo("Our plugin can be loaded in it.")
    else:
        note(f"Our plugin cannot be loaded in it: {printable(installation.plugin_trouble)}")
        note("Slots are then metered at the gateway: set plugin = false in the profile.")
    kind = "the CPU" if stamp.build == "cpu" else "the GPU"
    click.echo(
        f"vllm profiles for {kind} that name no executable use it from now on; others name\n"
        f"  executable = {str(environment.executable)!r}"
    )


def _row(environment: EngineEnvironment) -> dict[str, Any]:
    stamp = environment.stamp
    return {
        "name": environment.name,
        "version": stamp.version,
        "build": stamp.build,
        "cuda": stamp.cuda,
        "torch": stamp.torch,
        "python": stamp.python,
        "size_bytes": stamp.size_bytes,
        "installed_at": stamp.installed_at,
        "executable": str(environment.executable),
        "folder": str(environment.folder.resolve()),
    }


def _list(invocation: Invocation, *, as_json: bool) -> None:
    engines = invocation.paths.environments
    found, halves = installed(engines), unfinished(engines)
    if as_json:
        print_json(
            {"environments": list(map(_row, found)), "unfinished": [str(half) for half in halves]}
        )
        return
    if not found:
        click.echo("No vLLM is installed here; install one with: a40console engine install")
    else:
        _print_table(invocation, found)
    for half in halves:
        note(f"{half} is not complete: install it again, or remove it with engine uninstall")


def _print_table(invocation: Invocation, found: tuple[EngineEnvironment, ...]) -> None:
    names = ("name", "for", "torch", "size", "installed", "folder")
    columns = [Column(name, spare=name == "folder") for name in names]
    rows = []
    for each in found:
        stamp = each.stamp
        built = "CPU" if stamp.build == "cpu" else f"CUDA {stamp.cuda or 'unknown'}"
        cells = (each.name, built, stamp.torch, size(stamp.size_bytes), stamp.installed_at[:10])
        rows.append((*cells, str(each.folder.resolve())))
    print_table(invocation, columns, rows)
