"""The choice of a theme, worn while the cursor is on it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.theme import Theme

from a40console.tui.screens.dialog import Choice, PickDialog


class ThemeDialog(PickDialog):
    """A list of themes; leaving without a choice puts the old one on again."""

    def __init__(self, title: str, themes: Sequence[Theme], worn: str) -> None:
        self._worn = worn
        ordered = sorted(themes, key=lambda theme: (theme.name != worn, theme.name))
        super().__init__(title, [_choice(theme, worn) for theme in ordered])

    def action_move(self, rows: int) -> None:
        """Move the cursor, and wear what is under it."""
        super().action_move(rows)
        self.app.theme = self._choices[self._cursor].value

    def action_close(self) -> None:
        """Back to the theme that was worn."""
        self.app.theme = self._worn
        super().action_close()


def _choice(theme: Theme, worn: str) -> Choice:
    ground = "the terminal's colours" if theme.ansi else "dark" if theme.dark else "light"
    return Choice(
        value=theme.name,
        title=theme.name,
        detail=f"{ground}, worn now" if theme.name == worn else ground,
    )
