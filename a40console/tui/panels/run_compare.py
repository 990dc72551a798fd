"""Two runs side by side: what may be said, in what they differ, and each figure that both have."""

from __future__ import annotations

from textual.geometry import Size

from a40console.model.figures import Figure, Missing
from a40console.model.run import ArmRatio, Comparison, Difference, Run
from a40console.tui import format as fmt
from a40console.tui.format import shown
from a40console.tui.ink import EMPTY, Line, Role, Span, clean, fit, line, pad, wrap
from a40console.tui.panels import run_parts, run_text
from a40console.tui.panels.moments import second_of
from a40console.tui.panels.run_words import begun_at, kind_of

_SIDE_BY_SIDE = 100
_NAME = 18
_SAME = 1.0
_LEAST_IN_HUNDREDTHS = 0.1
_PLOT_ROWS = 10
_LEAST_PLOT_ROWS = 6


def compared(comparison: Comparison, left: Run | None, right: Run | None, size: Size) -> list[Line]:
    """What may be said first, then the ground for it."""
    width = size.width
    mark, role = ("✓", Role.GOOD) if comparison.attributable else ("✖", Role.WARN)
    lines = run_parts.told(f"{mark} {comparison.verdict}", width, role, hang=2)
    lines += run_parts.apart(_heads(left, right, width))
    lines += run_parts.apart(_ratios(comparison.ratios, width))
    return [*lines, *run_parts.apart(_differences(comparison.differences, width))]


def _heads(left: Run | None, right: Run | None, width: int) -> list[Line]:
    """Both runs: beside each other where there is room."""
    if width < _SIDE_BY_SIDE:
        return [*_head("left", left, width, 5), EMPTY, *_head("right", right, width, 5)]
    column = (width - run_text.GAP) // 2
    rows = _PLOT_ROWS
    sides = _head("left", left, column, rows), _head("right", right, column, rows)
    return run_text.side_by_side(*sides, column)


def _head(side: str, run: Run | None, width: int, rows: int) -> list[Line]:
    if run is None:
        return [line(Span(f"{side}: – it is no longer known", Role.MUTED))]
    kind = kind_of(run)
    name = f"{run.spec.experiment} {run.spec.preset}, {second_of(begun_at(run))}"
    title = line(
        Span(f"{side}  ", Role.KEY),
        Span(clean(name), Role.STRONG),
        Span(f"  {kind}" if kind else "", Role.WARN),
    )
    lines = [fit(title, width), *run_parts.first(run, None, width)]
    plots = run_text.plots_of(run, None, 0)
    drawn = run_text.plot_lines(plots[0], width, rows) if plots and rows > _LEAST_PLOT_ROWS else []
    return [*lines, *run_parts.apart(drawn)]


def _ratios(ratios: tuple[ArmRatio, ...], width: int) -> list[Line]:
    """Each figure of each arm: left, right, and right over left with its interval."""
    if not ratios:
        return [line(Span("  – they share no figure", Role.MUTED))]
    arm = min(20, max(len(each.arm) for each in ratios) + 1)
    figure = min(24, max(len(each.figure) for each in ratios) + 1)
    head = f"  {'arm':<{arm}}{'figure':<{figure}}{'left':>10}{'right':>10}  right ÷ left"
    lines = [line(Span("Figures", Role.LABEL)), line(Span(head, Role.MUTED))]
    for each in ratios:
        names = f"  {clean(each.arm)[: arm - 1]:<{arm}}{clean(each.figure)[: figure - 1]:<{figure}}"
        values = f"{_value(each.left):>10}{_value(each.right):>10}"
        lines.append(fit(line(names, values, "  ", _ratio(each)), width))
    return lines


def _value(figure: Figure) -> str:
    return shown(figure, lambda value: f"{value:,.4g}")


def _ratio(each: ArmRatio) -> Line:
    if isinstance(each.ratio, Missing):
        return line(Span(f"{fmt.DASH} {clean(each.ratio.reason)}", Role.MUTED))
    ratio = each.ratio
    apart = not ratio.low <= _SAME <= ratio.high
    form = ".2f" if ratio.low >= _LEAST_IN_HUNDREDTHS else ".3g"
    bounds = f" [{ratio.low:{form}}, {ratio.high:{form}}]" if ratio.low != ratio.high else ""
    noise = "" if apart or not bounds else "  within noise"
    value = Span(f"{ratio.value:{form}} ×", Role.STRONG if apart else Role.TEXT)
    return line(value, Span(f"{bounds}{noise}", Role.MUTED))


_WEIGHTS = {"variable": Role.WARN, "environment": Role.WARN, "note": Role.MUTED}


def _differences(differences: tuple[Difference, ...], width: int) -> list[Line]:
    """Every setting that they do not share; what could be a cause comes first."""
    if not differences:
        return [line(Span("  They differ in no setting.", Role.MUTED))]
    room = max(8, (width - _NAME - 6) // 2)
    head = f"  {'differs in':<{_NAME}}{'left':<{room}}  {'right':<{room}}"
    lines = [line(Span("Differences", Role.LABEL)), fit(line(Span(head, Role.MUTED)), width)]
    for each in sorted(differences, key=lambda one: list(_WEIGHTS).index(one.weight)):
        left, right = (wrap(text or fmt.DASH, room) for text in (each.left, each.right))
        rows = max(len(left), len(right), 1)
        for at in range(rows):
            name = clean(each.name)[: _NAME - 1] if at == 0 else ""
            cells = [pad(side[at] if at < len(side) else EMPTY, room) for side in (left, right)]
            lines.append(
                fit(
                    line("  ", Span(f"{name:<{_NAME}}", _WEIGHTS[each.weight]), *_joined(cells)),
                    width,
                )
            )
    return lines


def _joined(cells: list[Line]) -> tuple[Line, str, Line]:
    return cells[0], "  ", cells[1]
