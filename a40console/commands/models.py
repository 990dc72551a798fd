"""`a40console models`: the models of the profiles, on this disk and from the hub."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import click

from a40console.commands.asking import confirm, yes_option
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import note, print_json, visible
from a40console.commands.table import Column, print_table
from a40console.commands.transfer import TransferLine
from a40console.engines.transfer import TransferRate
from a40console.errors import CheckFailedError
from a40console.model.wording import size
from a40console.operations.models import ModelStore, StoredModel
from a40console.profiles.loader import load_profiles

_STATES = {
    "verified": "verified",
    "here": "here, not hashed yet",
    "partial": "incomplete",
    "damaged": "DAMAGED",
    "missing": "not here",
}


@click.group()
def command() -> None:
    """List, fetch and delete the models of the profiles. Works without a service."""


@command.command("list")
@click.option("--verify", is_flag=True, help="Hash what was not hashed yet; exit 6 if damaged.")
@json_option
@click.pass_obj
def list_models(invocation: Invocation, *, verify: bool, as_json: bool) -> None:
    """Every model that a profile names: whether it is here and right, its size, who uses it."""
    models = _store(invocation).models(verify=verify)
    if as_json:
        print_json({"models": models})
    else:
        _print_table(invocation, models)
    damaged = [model.name for model in models if model.state == "damaged"]
    if verify and damaged:
        raise CheckFailedError(
            f"{', '.join(map(visible, damaged))}: not what it should be",
            remedy="Delete it and fetch it again: a40console models delete NAME, models fetch NAME",
        )


@command.command()
@click.argument("name")
@json_option
@click.pass_obj
def fetch(invocation: Invocation, *, name: str, as_json: bool) -> None:
    """Bring a model here, by its NAME or its profile's, and check its hash.

    Interrupted, the same command goes on. HF_TOKEN opens gated models, HF_ENDPOINT names another
    hub.
    """
    store = _store(invocation)
    model = store.find(name)
    rate = TransferRate()
    with TransferLine(quiet=as_json) as line:

        def progress(done_bytes: int, total_bytes: int) -> None:
            line.show(visible(model.name), rate.read(time.monotonic(), done_bytes, total_bytes))

        found = asyncio.run(store.fetch(model, progress))
    if as_json:
        print_json({"model": found})
    else:
        click.echo(
            f"{visible(found.name)} is here and verified: {size(found.here_bytes)}, "
            f"{visible(found.path)}"
        )


@command.command()
@click.argument("name")
@yes_option
@json_option
@click.pass_obj
def delete(invocation: Invocation, *, name: str, yes: bool, as_json: bool) -> None:
    """Delete a model from this disk, unless a running engine uses it."""
    store = _store(invocation)
    model = store.find(name)
    store.demand_deletable(model)
    used = ", ".join(model.profiles)
    question = f"Delete {visible(model.name)}, {size(model.here_bytes)}?"
    confirm(f"{question} {used} would fetch it again.", yes=yes)
    freed = store.delete(model)
    if as_json:
        print_json({"deleted": model.name, "freed_bytes": freed})
    else:
        click.echo(f"{visible(model.name)} is deleted; {size(freed)} are free again.")


def _store(invocation: Invocation) -> ModelStore:
    found = load_profiles(invocation.paths.profiles)
    for why in found.failures.values():
        note(why)
    return ModelStore(invocation.paths, found.profiles, os.environ)


def _print_table(invocation: Invocation, models: tuple[StoredModel, ...]) -> None:
    columns = (
        Column("model"),
        Column("state", breaks=True),
        Column("size"),
        Column("profiles", breaks=True),
        Column("where", spare=True),
    )
    print_table(invocation, columns, map(_cells, models))


def _cells(model: StoredModel) -> tuple[str, ...]:
    state = "on this disk" if model.kind == "local" else _STATES[model.state]
    if model.kind == "local" and model.state == "missing":
        state = "NOT THERE"
    elif model.detail and model.kind != "local":
        state += f", {model.detail}"
    if model.in_use_by:
        state += ", in use"
    where = "" if model.state == "missing" else _shortened(model.path)
    return (model.name, state, _sizes(model), ", ".join(model.profiles), where)


def _shortened(path: str) -> str:
    home = str(Path.home())
    return f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path


def _sizes(model: StoredModel) -> str:
    if model.expected_bytes is None:
        return size(model.here_bytes) if model.here_bytes else "the hub knows"
    if model.here_bytes in (0, model.expected_bytes):
        return size(model.expected_bytes)
    return f"{size(model.here_bytes)} of {size(model.expected_bytes)}"
