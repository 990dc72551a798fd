"""What every drawn plot has: its size, its axes with their ticks and names. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from a40console.model.plot_scale import Scale, tick_text
from a40console.model.run_words import visible

WIDTH, HEIGHT = 760, 340
LEFT, RIGHT, TOP, BOTTOM = 72.0, 744.0, 14.0, 286.0

SERIES_CLASSES = 8
"""Series beyond these have the classes of the first ones again."""

_LEAST_GAP = 44.0
"""Between two ticks that are both written, across."""


def svg(title: str, parts: Sequence[str], height: float = HEIGHT) -> str:
    """The drawing; it has the plot's title for those who do not see it."""
    name = escape(visible(title), quote=True)
    head = f'<svg class="plot" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{name}">'
    return f"{head}{''.join(parts)}</svg>"


def series_class(index: int) -> str:
    """The class of a series by its place."""
    return f"s{index % SERIES_CLASSES}"


def frame(across: Scale, up: Scale, x_label: str, y_label: str) -> list[str]:
    """Grid, ticks and the axes' names."""
    parts = values_grid(up, y_label)
    last = -_LEAST_GAP
    for tick in across.ticks:
        x = across.place(tick)
        parts.append(f'<path class="axis" d="M{x:.1f} {BOTTOM}v5"/>')
        if x - last >= _LEAST_GAP:
            parts.append(text(x, BOTTOM + 19, tick_text(tick), "middle"))
            last = x
    name = f"{x_label} (logarithmic)" if across.logarithmic else x_label
    parts.append(text((LEFT + RIGHT) / 2, BOTTOM + 42, name, "middle", "name"))
    return parts


def values_grid(up: Scale, y_label: str) -> list[str]:
    """The axis of what was measured, upwards, with a line across at each tick."""
    parts = []
    for tick in up.ticks:
        y = up.place(tick)
        kind = "axis" if tick == 0 else "grid"
        parts.append(f'<path class="{kind}" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        parts.append(text(LEFT - 8, y + 4, tick_text(tick), "end"))
    middle = (TOP + BOTTOM) / 2
    parts.append(
        f'<text class="name" text-anchor="middle" transform="rotate(-90)" x="{-middle:.1f}" y="16">'
        f"{escape(visible(y_label))}</text>"
    )
    return parts


def text(x: float, y: float, content: str, anchor: str, kind: str = "tick") -> str:
    """A piece of text, centred (`middle`) at a place or beginning (`start`) or ending there."""
    said = escape(visible(content))
    return f'<text class="{kind}" text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}">{said}</text>'
