"""The history of runs: one row each, the newest first. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.model.figures import Missing
from a40console.model.run import ENDED, Run
from a40console.model.run_result import RunResult
from a40console.tui import format as fmt
from a40console.tui.ink import Line, Role, Span, clean, fit, line, wrap
from a40console.tui.panels.moments import when
from a40console.tui.panels.run_words import STATES, begun_at, kind_of, lasted_s, summary
from a40console.tui.reading import Reading

_WHEN = 12
_STATE = 9
_EXPERIMENT = 10
_PRESET = 8
_LASTED = 9
_TARGET = 7
_NORMAL, _WIDE = 100, 150
_QUESTION = (
    "Each answers one question on this engine, says before what it costs and whom it disturbs, "
    "and is kept with everything that a comparison needs."
)


def header(width: int) -> Line:
    """The columns' names."""
    names = f"   {'state':<{_STATE}} {'started':<{_WHEN}} {'experiment':<{_EXPERIMENT}} "
    names += f"{'preset':<{_PRESET}} "
    names += f"{'took':>{_LASTED}}  " if width >= _NORMAL else ""
    names += f"{'target':<{_TARGET}} " if width >= _WIDE else ""
    return fit(line(Span(f"{names}found", Role.MUTED)), width)


def row(run: Run, width: int, *, here: bool, focused: bool, marked: bool, today: str) -> Line:
    """One run on one line."""
    glyph, role = STATES[run.state]
    parts: list[Span] = [
        Span("▸" if here else " ", Role.KEY if focused else Role.MUTED),
        Span("v" if marked else " ", Role.KEY),
        Span(f"{glyph} {run.state:<{_STATE - 1}}", role),
        Span(f"{when(begun_at(run), today):<{_WHEN}} ", Role.MUTED),
        Span(f"{clean(run.spec.experiment)[:_EXPERIMENT]:<{_EXPERIMENT}} ", _name_role(run, here)),
        Span(f"{clean(run.spec.preset)[:_PRESET]:<{_PRESET}} ", Role.MUTED),
    ]
    if width >= _NORMAL:
        seconds = lasted_s(run)
        took = fmt.DASH if seconds is None else fmt.duration(seconds)
        parts.append(Span(f"{took:>{_LASTED}}  ", Role.MUTED))
    if width >= _WIDE:
        parts.append(Span(f"{run.spec.target.kind:<{_TARGET}} ", Role.MUTED))
    return fit(line(*parts, *_marks(run, width), _found(run)), width)


def _name_role(run: Run, here: bool) -> Role:
    return Role.STRONG if here or run.state not in ENDED else Role.TEXT


def _marks(run: Run, width: int) -> list[Span]:
    """What sets it apart: simulated, written down by others, told by nobody else."""
    kind = kind_of(run)
    marks = [Span(f"{kind if width >= _NORMAL else kind[:3]} ", Role.WARN)] if kind else []
    if isinstance(run.result, RunResult) and run.result.doubts and run.state != "invalid":
        marks.append(Span("! ", Role.WARN))
    return marks


def _found(run: Run) -> Span:
    text, role = summary(run)
    return Span(text, role)


def nothing(trouble: str, fetched: bool, reading: Reading, width: int) -> Sequence[Line]:
    """Why there is no run, and how one comes here."""
    if trouble:
        return [(), *(line("  ", row) for row in wrap(f"✖ {trouble}", width - 4, Role.BAD))]
    if not fetched:
        return [(), line(Span("  – they are fetched", Role.MUTED))]
    key = reading.keymap.hint("experiment.choose")
    click = "app.command('experiment.choose')"
    how = line(
        "  ",
        Span(key or "Experiment", Role.KEY, click),
        Span(" chooses one." if key else ", in the palette, chooses one.", Role.TEXT),
    )
    told = wrap(_QUESTION, min(width - 4, 90), Role.MUTED)
    head = line(Span("  No experiment has been run yet.", Role.STRONG))
    return [(), head, (), fit(how, width), *(line("  ", part) for part in told)]


def notes(run: Run) -> str:
    """Which run it is in full."""
    parts = [run.id, f"seed {run.spec.seed}"]
    if not isinstance(run.environment, Missing):
        model = run.environment.model
        parts += [] if isinstance(model, Missing) else [model]
    if not isinstance(run.origin, Missing):
        parts.append(f"from {run.origin}")
    return clean(" · ".join(parts))
