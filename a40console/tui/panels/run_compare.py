"""Two runs side by side: what may be said, in what they differ, and each figure that both have."""

from __future__ import annotations

from textual.geometry import Size

from a40console.model.figures import Figure, Missing
from a40console.model.run import ArmRatio, Comparison, Difference, Run
from a40console.model.run_words import figure_name, ratio_text
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
_LONGEST = 22
"""Of an arm's or a figure's name."""

_PLOT_ROWS = 10
_LEAST_PLOT_ROWS = 6


def compared(comparison: Comparison, left: Run | None, right: Run | None, size: Size) -> list[Line]:
    """What may be said first, then the figures and differences that it rests on, then both runs."""
    width = size.width
    mark, role = ("✓", Role.GOOD) if comparison.attributable else ("✖", Role.WARN)
    lines = run_parts.told(f"{mark} {comparison.verdict}", width, role, hang=2)
    lines += run_parts.apart(_ratios(comparison.ratios, width))
    lines += run_parts.apart(_differences(comparison.differences, width))
    return [*lines, *run_parts.apart(_heads(left, right, width))]


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
    named = [(clean(each.arm), figure_name(clean(each.figure))) for each in ratios]
    arm, figure = (min(_LONGEST, max(len(each[at]) for each in named)) for at in (0, 1))
    head = f"  {'arm':<{arm}}  {'figure':<{figure}}{'left':>10}{'right':>10}  right ÷ left"
    lines = [line(Span("Figures", Role.LABEL)), line(Span(head, Role.MUTED))]
    for each, (of, name) in zip(ratios, named, strict=True):
        names = f"  {of[:arm]:<{arm}}  {name[:figure]:<{figure}}"
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
    digits = 2 if ratio.low >= _LEAST_IN_HUNDREDTHS else 4
    told = Span(ratio_text(ratio, digits=digits), Role.STRONG if apart else Role.TEXT)
    return line(told, Span("" if apart else "  within noise", Role.MUTED))


_WEIGHTS = {"variable": Role.WARN, "environment": Role.WARN, "note": Role.MUTED}


def _differences(differences: tuple[Difference, ...], width: int) -> list[Line]:
    """Every setting that they do not share; what could be a cause comes first."""
    if not differences:
        return [line(Span("  They differ in no setting.", Role.MUTED))]
    longest = max(len(each.left or fmt.DASH) for each in differences)
    room = max(8, min(longest, (width - _NAME - 6) // 2))
    rest = max(8, width - _NAME - 4 - room)
    head = f"  {'differs in':<{_NAME}}{'left':<{room}}  right"
    lines = [line(Span("Differences", Role.LABEL)), fit(line(Span(head, Role.MUTED)), width)]
    for each in sorted(differences, key=lambda one: list(_WEIGHTS).index(one.weight)):
        left = wrap(each.left or fmt.DASH, room)
        right = wrap(each.right or fmt.DASH, rest)
        rows = max(len(left), len(right), 1)
        for at in range(rows):
            name = clean(each.name)[: _NAME - 1] if at == 0 else ""
            first, second = (side[at] if at < len(side) else EMPTY for side in (left, right))
            lines.append(
                fit(
                    line(
                        "  ",
                        Span(f"{name:<{_NAME}}", _WEIGHTS[each.weight]),
                        pad(first, room),
                        "  ",
                        second,
                    ),
                    width,
                )
            )
    return lines
