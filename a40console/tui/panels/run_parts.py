"""The words of one run: how far it is, its verdict, doubts and tables, and its setting. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from a40console.model.figures import Missing, number
from a40console.model.run import ENDED, Run, RunProgress
from a40console.model.run_facts import environment_facts, target
from a40console.model.run_result import Doubt, RunResult, Verdict
from a40console.model.run_words import NOT_TOLD_WHERE_INVALID, excerpt_lines
from a40console.tui import format as fmt
from a40console.tui.format import known, shown
from a40console.tui.ink import EMPTY, Line, Role, Span, clean, fit, line, width_of, wrap
from a40console.tui.panels import run_arms, run_plot
from a40console.tui.panels.moments import second_of
from a40console.tui.panels.result_table import broken, table_lines
from a40console.tui.panels.run_found import doubt_lines, verdict_lines
from a40console.tui.panels.run_plan import plan_lines
from a40console.tui.panels.run_words import lasted_s
from a40console.tui.raster import gauge
from a40console.tui.run_watch import RunWatch

_LONGEST_NAME = 34
_GAUGE = 24
_ROOMY = 100
_EDGE = "  "


def apart(lines: Sequence[Line]) -> list[Line]:
    """The lines behind a blank one; nothing where there are none."""
    return [EMPTY, *lines] if lines else []


def told(text: str, width: int, role: Role = Role.TEXT, *, hang: int = 0) -> list[Line]:
    """A text a little in from the edge; its further lines hang so many cells more."""
    return _in(wrap(text, width - len(_EDGE), role, indent=hang))


def first(run: Run, watch: RunWatch | None, width: int) -> list[Line]:
    """What one looks for first: how far it is, or what follows from it."""
    return _found(run, width) if run.state in ENDED else _under_way(run, watch, width)


def _under_way(run: Run, watch: RunWatch | None, width: int) -> list[Line]:
    told = run.progress
    progress = watch.progress if watch is not None and watch.progress is not None else told
    lines = [line(Span("  – no progress is told yet", Role.MUTED))]
    if run.state == "queued":
        idle = run.spec.when == "idle"
        why = "It starts once no client is active." if idle else "It starts when its turn comes."
        lines = [line(_EDGE, Span(why, Role.TEXT))]
    elif not isinstance(progress, Missing):
        lines = _progress(progress, width)
    if not isinstance(run.plan, Missing) and run.state == "queued":
        lines += _in(plan_lines(run.plan, width - len(_EDGE)))
    return [*lines, *_doubts(watch.doubts if watch else (), width)]


def _progress(progress: RunProgress, width: int) -> list[Line]:
    """How far it is, and where: on two lines where one has no room."""
    share = progress.done / progress.total if progress.total else 0.0
    eta, roomy = progress.eta_s, width >= _ROOMY
    left = "" if isinstance(eta, Missing) else f"  ≈ {fmt.duration(number(eta) or 0.0)} left"
    so_far = f"  {fmt.duration(progress.elapsed_s)} so far" if roomy else ""
    far = line(
        _EDGE,
        Span(gauge(share, _GAUGE if roomy else _GAUGE // 3), Role.SERIES),
        Span(f" {fmt.percent(share)}", Role.STRONG),
        Span(f"{left}{so_far}  {shown(progress.usd, fmt.dollars)}", Role.MUTED),
    )
    where = line(
        Span(f"  {clean(progress.arm)}", Role.LABEL), Span(f"  {clean(progress.text)}", Role.TEXT)
    )
    if width_of(far) + width_of(where) <= width:
        return [line(far, where)]
    return [fit(far, width), fit(where, width)]


def _found(run: Run, width: int) -> list[Line]:
    """What follows from it; of a run that is not to be believed only what speaks against it."""
    lines: list[Line] = []
    if run.reason:
        role = Role.WARN if run.state in ("partial", "queued") else Role.BAD
        lines += told(f"{run.state.upper()}: {run.reason}", width, role, hang=2)
    result = run.result
    if run.state == "invalid":
        lines += told(NOT_TOLD_WHERE_INVALID, width, Role.MUTED)
        return [*lines, *_doubts(() if isinstance(result, Missing) else result.doubts, width)]
    if isinstance(result, Missing):
        return lines or told(f"{fmt.DASH} {result.reason}", width, Role.MUTED)
    if run.state != "failed":
        lines += told(result.headline, width, Role.STRONG)
        lines += _verdict(result.verdict, width)
    return [*lines, *_doubts(result.doubts, width)]


def _verdict(verdict: Verdict, width: int) -> list[Line]:
    lines = _in(verdict_lines(verdict, width - len(_EDGE)))
    for each in excerpt_lines(verdict.paste) if verdict.paste else ():
        lines += [line(_EDGE * 2, Span(row, Role.KEY)) for row in broken(each, width - 4)]
    return lines


def _doubts(doubts: Sequence[Doubt], width: int) -> list[Line]:
    return _in(doubt_lines(doubts, width - len(_EDGE)))


def _in(lines: Sequence[Line]) -> list[Line]:
    return [line(_EDGE, row) for row in lines]


def measured(run: Run, watch: RunWatch | None, width: int) -> list[Line]:
    """The arms so far, or the result's tables and the texts that show a fault.

    Nothing of a run that is not to be believed; of one that failed, what went wrong.
    """
    if run.state == "invalid":
        return []
    if run.state == "failed":
        return run_arms.troubles(watch.arms, width) if watch else []
    if isinstance(run.result, RunResult):
        return _tables(run.result, width)
    if watch is None or not watch.arms:
        return []
    drawn = [arm.name for arm in watch.arms if arm.drawn]
    letters = {
        name: (run_plot.LETTERS[at % 26], run_plot.role_of(at)) for at, name in enumerate(drawn)
    }
    return run_arms.arms(watch.arms, letters, width)


def _tables(result: RunResult, width: int) -> list[Line]:
    lines: list[Line] = []
    for table in result.tables:
        lines += [EMPTY] if lines else []
        lines += wrap(clean(table.title), width, Role.LABEL)
        untitled, winner = replace(table, title=""), result.verdict.winner
        lines += _in(table_lines(untitled, width - len(_EDGE), winner=winner))
    for excerpt in result.excerpts:
        rows = [part for row in excerpt_lines(excerpt) for part in _kept(row, width - 4)]
        lines += apart([line(Span("  │ ", Role.RULE), row) for row in rows])
    return lines


def _kept(text: str, width: int) -> list[Line]:
    """A line of a probe with its blanks; what does not fit goes on below."""
    pieces = [text[at : at + width] for at in range(0, len(text), width)] or [""]
    return [line(Span(piece)) for piece in pieces]


def setting(run: Run, width: int) -> list[Line]:
    """What is written about it, and everything that a comparison must know of it."""
    lines: list[Line] = []
    for note in run.notes:
        lines += told(f"◆ {second_of(note.at)} {note.text}", width, Role.KEY, hang=2)
    asked = _facts("Setting", _asked(run), width)
    lines += apart(asked) if lines else asked
    if not isinstance(run.environment, Missing):
        # Its reports have the whole command line; what came of it is in force below.
        facts = environment_facts(replace(run.environment, argv=()))
        lines += apart(_facts("Environment", facts, width))
    return lines


def _facts(title: str, facts: Sequence[tuple[str, str]], width: int) -> list[Line]:
    told = [(name, value) for name, value in facts if value]
    cells = min(_LONGEST_NAME, max(len(name) for name, _ in told))
    lines = [line(Span(title, Role.LABEL))]
    for name, value in told:
        for at, row in enumerate(broken(clean(value), width - len(_EDGE) - cells - 2)):
            head = clean(name)[:cells] if at == 0 else ""
            lines.append(line(_EDGE, Span(f"{head:<{cells}}  ", Role.MUTED), row))
    return lines


def _asked(run: Run) -> list[tuple[str, str]]:
    spec = run.spec
    took_s = lasted_s(run)
    elsewhere = run.reference or not isinstance(run.origin, Missing) or run.state not in ENDED
    return [
        ("run", run.id),
        ("took", "" if took_s is None else fmt.duration(took_s)),
        ("target", "" if run.reference else target(spec)),
        ("parameters", _parameters(run)),
        ("seed", "" if run.reference else str(spec.seed)),
        ("bounds", _bounds(run)),
        ("from", known(run.origin, "")),
        ("copied to", ", ".join(run.copied_to) or ("" if elsewhere else "no other machine yet")),
        ("asked as", spec.note),
    ]


def _parameters(run: Run) -> str:
    """Those that are set to something; a star before what differs from the preset."""
    settled, changed = run.settled or run.spec.parameters, run.spec.parameters
    return "; ".join(
        f"{'*' if name in changed else ''}{name}={value}"
        for name, value in settled.items()
        if value
    )


def _bounds(run: Run) -> str:
    spec = run.spec
    bounds = [f"{fmt.dollars(float(spec.max_usd))} at most"] if spec.max_usd is not None else []
    bounds += [f"{spec.max_minutes:g} min at most"] if spec.max_minutes is not None else []
    return ", ".join(bounds)
