"""`a40console runs export`: a run as Markdown, as a page, as values or as a document."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import note, print_json
from a40console.commands.running import ensure_service
from a40console.commands.runs_named import MOST, run_id
from a40console.errors import RefusedError, UsageError
from a40console.files import write_private
from a40console.ledger.documents import read
from a40console.ledger.reports import FORMS, report
from a40console.model.run import ENDED
from a40console.paths import make_private

_BY_SUFFIX = {f".{form}": form for form in FORMS} | {".htm": "html"}


@click.command("export")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--all", "all_of_them", is_flag=True, help="Every run that has ended.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="Markdown, one page with plots, the requests as values, everything; else by --output's "
    "ending, else md.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The file to write; with several runs, the folder.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
@click.pass_obj
def export_runs(
    invocation: Invocation,
    *,
    runs: tuple[str, ...],
    all_of_them: bool,
    form: str | None,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a run for others, to standard output or a file.

    What `--format json` writes is what `runs import` takes. Requests are figures alone: no text of
    a client is in any export.
    """
    if bool(runs) is all_of_them:
        raise UsageError("Which runs?", remedy="Name them, or say --all.")
    several = all_of_them or len(runs) > 1
    if several and output is None:
        raise UsageError(
            "Several runs need a folder", remedy="Name it: a40console runs export … --output DIR"
        )
    if form is None:
        form = "json" if as_json and output is None else _form_of(output, several=several)
    if output is None and as_json and form != "json":
        raise UsageError(
            f"--json with --format {form} needs a file", remedy="Name it with --output."
        )
    documents = asyncio.run(_read(invocation, runs))
    if output is None:
        click.echo(report(read(documents[0]), form), nl=False)
        return
    written = _write(documents, form, output, several=several, force=force)
    if as_json:
        print_json({"format": form, "paths": [str(path) for path in written]})
        return
    for path in written:
        note(f"Written: {path}")


async def _read(invocation: Invocation, names: tuple[str, ...]) -> list[dict[str, Any]]:
    async with await ensure_service(invocation.paths, engine=False) as client:
        ids = [await run_id(client, name) for name in names]
        if not names:
            ids = [run.id for run in await client.runs(MOST) if run.state in ENDED]
        return [await client.run_document(each) for each in dict.fromkeys(ids)]


def _form_of(output: Path | None, *, several: bool) -> str:
    if output is None or several or output.is_dir() or not output.suffix:
        return "md"
    if output.suffix.lower() not in _BY_SUFFIX:
        raise UsageError(
            f"{output.suffix} is the ending of no format",
            remedy=f"Say --format, or end the name in one of: {', '.join(_BY_SUFFIX)}.",
        )
    return _BY_SUFFIX[output.suffix.lower()]


def _write(
    documents: list[dict[str, Any]], form: str, output: Path, *, several: bool, force: bool
) -> list[Path]:
    in_folder = several or output.is_dir()
    if in_folder:
        _make_folder(output)
    written: list[Path] = []
    for data in documents:
        document = read(data)
        path = output / f"{document.run.id}.{form}" if in_folder else output
        if path.exists() and not force:
            raise RefusedError(
                f"{path} is there already",
                evidence=f"{len(written)} written before it" if written else "",
                remedy="Say --force to replace it, or name another.",
            )
        _write_one(path, report(document, form))
        written.append(path)
    return written


def _write_one(path: Path, text: str) -> None:
    try:
        write_private(path, text)
    except OSError as error:
        raise RefusedError(
            f"{path} cannot be written",
            evidence=error.strerror or str(error),
            remedy="Free space or permission there, or name another file with --output.",
        ) from error


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        make_private(folder)
