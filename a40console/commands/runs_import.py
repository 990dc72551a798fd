"""`a40console runs import`: takes runs that were exported elsewhere, and the reference rows."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from a40console.commands.acting import act
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json, printable
from a40console.commands.progress import Progress
from a40console.commands.running import ensure_service
from a40console.errors import UsageError
from a40console.files import parse_json
from a40console.ledger.documents import read
from a40console.ledger.reference import reference_documents
from a40console.model.control import CommandResult
from a40console.model.run_words import marks

STANDARD_INPUT = "-"


@click.command("import")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--reference", is_flag=True, help="The tables of the sessions that were measured by hand."
)
@json_option
@click.pass_obj
def import_runs(
    invocation: Invocation, *, files: tuple[str, ...], reference: bool, as_json: bool
) -> None:
    """Take runs that `runs export --format json` wrote; `-` is standard input.

    A run that is here already is merged: notes of both stay. Simulated ones stay simulated, and
    reference rows are marked in every list and report.
    """
    if bool(files) is reference:
        raise UsageError("Import what?", remedy="Name files, or say --reference.")
    documents = list(reference_documents()) if reference else [_read(name) for name in files]
    runs = [read(document).run for document in documents]
    results = asyncio.run(_import(invocation, documents))
    if as_json:
        print_json({"runs": [{"id": run.id, "marks": marks(run)} for run in runs]})
        return
    for run, result in zip(runs, results, strict=True):
        said = result.result.get("report") or f"Imported {run.id}"
        told = ", ".join(mark for mark in marks(run) if mark not in said)
        click.echo(printable(f"{said} ({told})" if told else said))


def _read(name: str) -> dict[str, Any]:
    """The document of a file, checked before the service is told.

    Raises:
        UsageError: If it cannot be read or is none.
    """
    try:
        text = sys.stdin.read() if name == STANDARD_INPUT else Path(name).read_text("utf-8")
        data = parse_json(text)
        read(data)
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} is no run's document", evidence=str(error)) from error
    except UsageError as error:
        raise UsageError(
            f"{name}: {error.message}", evidence=error.evidence, remedy=error.remedy
        ) from error
    return dict(data)


async def _import(
    invocation: Invocation, documents: Sequence[dict[str, Any]]
) -> list[CommandResult]:
    """Tell the service one document after the other; those before one that fails are in."""
    async with await ensure_service(invocation.paths, engine=False) as client:
        return [
            await act(
                client,
                "runs.import",
                timeout_s=None,
                progress=Progress(quiet=True),
                document=json.dumps(document),
            )
            for document in documents
        ]
