"""The history of runs: one row each. Pure."""

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
    if width >= _WIDE:
        names += f"{'preset':<{_PRESET}} {'took':>{_LASTED}}  {'target':<{_TARGET}} "
    return fit(line(Span(f"{names}found", Role.MUTED)), width)


def row(
    run: Run,
    width: int,
    *,
    here: bool,
    focused: bool,
    marked: bool,
    today: str,
    simulated: bool = False,
) -> Line:
    """One run on one line; what it found has the room, its setting only where there is more.

    Args:
        run: As the list tells it.
        width: In cells.
        here: Whether the cursor is on it.
        focused: Whether the list has the focus.
        marked: Whether others are compared with it.
        today: The day of now, which times do not name.
        simulated: Whether the engine of now is simulated: so are the runs that wait for it.
    """
    glyph, role = STATES[run.state]
    parts: list[Span] = [
        Span("▸" if here else " ", Role.KEY if focused else Role.MUTED),
        Span("v" if marked else " ", Role.KEY),
        Span(f"{glyph} {run.state:<{_STATE - 1}}", role),
        Span(f"{when(begun_at(run), today):<{_WHEN}} ", Role.MUTED),
        Span(f"{clean(run.spec.experiment)[:_EXPERIMENT]:<{_EXPERIMENT}} ", _name_role(run, here)),
    ]
    if width >= _WIDE:
        seconds = lasted_s(run)
        took = fmt.DASH if seconds is None else fmt.duration(seconds)
        setting = f"{clean(run.spec.preset)[:_PRESET]:<{_PRESET}} {took:>{_LASTED}}  "
        parts.append(Span(f"{setting}{run.spec.target.kind:<{_TARGET}} ", Role.MUTED))
    return fit(line(*parts, *_marks(run, width, simulated), _found(run)), width)


def _name_role(run: Run, here: bool) -> Role:
    return Role.STRONG if here or run.state not in ENDED else Role.TEXT


def _marks(run: Run, width: int, simulated: bool) -> list[Span]:
    """What sets it apart: simulated, written down by others, told by nobody else."""
    kind = kind_of(run, simulated=simulated)
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
        Span(key or "Bench", Role.KEY, click),
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
