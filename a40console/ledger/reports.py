"""A run's document in the form that somebody asks for; each writer is imported when it is."""

from __future__ import annotations

import json

from a40console.errors import RefusedError, UsageError
from a40console.ledger.documents import Document, written

FORMS = ("md", "html", "csv", "json")
"""Markdown, one page with plots, the requests as values, everything."""


def report(document: Document, form: str) -> str:
    """The document in one of `FORMS`.

    Raises:
        UsageError: If there is no such form.
        RefusedError: If values are asked for of a run that has none.
    """
    match form:
        case "md":
            from a40console.ledger.report_markdown import markdown

            return markdown(document.run, document.arm_ends, document.samples)
        case "html":
            from a40console.ledger.report_html import html

            return html(document.run, document.arm_ends, document.samples)
        case "csv":
            return _values(document)
        case "json":
            data = written(document)
            return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    raise UsageError(f"A report is {', '.join(FORMS)}, not {form[:20]!r}")


def _values(document: Document) -> str:
    from a40console.ledger.report_csv import samples_csv

    if not document.samples:
        raise RefusedError(
            f"Run {document.run.id} has no single requests",
            evidence="it is a reference row, measured none, or they were let go to make room",
            remedy="Its tables are in the other forms: md, html, json.",
        )
    return samples_csv(document.run, document.samples)
