"""Connect a client: what to paste, by which address it comes, what is seen of its first request.

Secrets are covered until they are asked for, and copied whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from a40console.errors import ConsoleError
from a40console.model.client_lines import FORMS, PLACE, Form, at_address, client_lines
from a40console.model.control import ClientAddress, ClientEnvironment
from a40console.model.figures import Missing
from a40console.model.first_request import Arrivals, sentences
from a40console.tui.clipboard import save
from a40console.tui.format import count, shown
from a40console.tui.ink import Line, Role, Span, clean, line, wrap
from a40console.tui.screens.dialog import Dialog, Fitted
from a40console.tui.toasts import toast

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

_SECRET = ("TOKEN", "KEY", "SECRET", "PASSWORD")
_NO_SECRET = ("TOKENS",)
_COVER = "••••••••"
_INDENT = "    "
_FILES: Mapping[Form, str] = {
    "sh": "client-env.sh",
    "fish": "client-env.fish",
    "settings": "client-settings.json",
}
LOOK_PERIOD_S = 1.0


class EnvironmentDialog(Dialog[None]):
    """Lines that point a client at the gateway, and the client's first request."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "address", "Next address", show=False),
        Binding("f", "form", "Next form", show=False),
        Binding("r", "reveal", "Show or cover the token", show=False),
        Binding("c", "copy", "Copy", show=False),
        Binding("s", "save", "Save to a file", show=False),
        Binding("enter,q", "close", "Close", show=False),
    ]
    KEYS = (
        ("c", "copy"),
        ("s", "save"),
        ("a", "address"),
        ("f", "form"),
        ("r", "token"),
        ("escape", "close"),
    )

    if TYPE_CHECKING:
        app: ConsoleApp

    def __init__(self, title: str, environment: ClientEnvironment) -> None:
        super().__init__(title)
        self._environment = environment
        self._bare = False
        self._form = 0
        self._address = 0
        self._arrivals = Arrivals()
        self._seen: tuple[str, ...] = ()

    def compose_body(self) -> ComposeResult:
        """The lines, the addresses, what else must be known."""
        with VerticalScroll(id="scroll"):
            yield Fitted(self._text, dom_id="text")

    def on_mount(self) -> None:
        """Wait for a request from now on."""
        self._look()
        self.set_interval(LOOK_PERIOD_S, self._look)

    @property
    def _variables(self) -> dict[str, str]:
        ways = self._environment.addresses
        if not ways:
            return self._environment.variables
        return at_address(self._environment.variables, ways[self._address].url)

    def _text(self, width: int) -> list[Line]:
        form = FORMS[self._form]
        shown = {
            name: value if self._bare or not is_secret(name) else _COVER
            for name, value in self._variables.items()
        }
        lines = [*self._waiting(width), (), *self._way(width), ()]
        lines += wrap(self._room(), width, Role.TEXT)
        lines += [(), *wrap(PLACE[form], width, Role.MUTED), ()]
        for text in client_lines(shown, form).splitlines():
            lines += whole(text, width, Role.TEXT)
        lines.append(())
        for sentence in self._environment.advice:
            lines += wrap(clean(sentence), width, Role.MUTED)
        return [*lines, *self._other_ways(width)]

    def _waiting(self, width: int) -> list[Line]:
        lines: list[Line] = []
        if self.app.reading.snapshot.simulated:
            lines += wrap("SIMULATED: the answers are invented.", width, Role.WARN)
        if not self._seen:
            return lines + wrap("Waiting for a request …", width, Role.MUTED)
        for index, sentence in enumerate(self._seen):
            lines += wrap(clean(sentence), width, Role.TEXT if index else Role.GOOD)
        return lines

    def _way(self, width: int) -> list[Line]:
        """The address that the lines are for."""
        ways = self._environment.addresses
        if not ways:
            return []
        number = f"address {self._address + 1} of {len(ways)}"
        return [
            *whole(ways[self._address].url, width, Role.STRONG, lead="▸ "),
            *_about(ways[self._address], width, number),
        ]

    def _other_ways(self, width: int) -> list[Line]:
        lines: list[Line] = []
        for index, way in enumerate(self._environment.addresses):
            if index != self._address:
                lines += [(), *whole(way.url, width, Role.TEXT, lead="  ")]
                lines += _about(way, width)
        return lines

    def _room(self) -> str:
        window, output = self._environment.window_tokens, self._environment.output_tokens
        if isinstance(window, Missing):
            return f"Window – {window.reason}"
        return f"Window {shown(window, count)} tokens, answers up to {shown(output, count)}."

    def _redraw(self) -> None:
        self.query_one("#text", Fitted).redraw()
        self.on_resize()

    def _look(self) -> None:
        session = self._arrivals.look(self.app.reading.snapshot)
        if session is not None and not self._seen:
            self._ask(session)

    @work(group="connect", exclusive=True, exit_on_error=False)
    async def _ask(self, session: str) -> None:
        try:
            client = await self.app.feed.client()
            self._seen = sentences(await client.session(session))
        except ConsoleError as error:
            self._seen = (f"Seen: session {session}. {error.message}",)
        if self.is_attached:
            self._redraw()

    def action_reveal(self) -> None:
        """Show the secrets, or cover them again."""
        self._bare = not self._bare
        self._redraw()

    def action_form(self) -> None:
        """The next form of the lines."""
        self._form = (self._form + 1) % len(FORMS)
        self._redraw()

    def action_address(self) -> None:
        """The next address that leads anywhere; said where there is none."""
        ways = self._environment.addresses
        usable = [index for index, way in enumerate(ways) if not way.refused]
        later = [index for index in usable if index > self._address]
        chosen = next(iter(later or usable), self._address)
        if chosen == self._address:
            toast(self.app, "Address", _no_other(len(ways)), "information")
            return
        self._address = chosen
        self._redraw()

    def action_copy(self) -> None:
        """Copy the lines, secrets included; a notice says how they were copied."""
        self.app.copy_to_clipboard(client_lines(self._variables, FORMS[self._form]))

    def action_save(self) -> None:
        """Write the lines into a file of this user's alone; a notice says where it is."""
        form = FORMS[self._form]
        said = save(self.app, client_lines(self._variables, form), _FILES[form])
        toast(self.app, "Save", said, "information")


def _no_other(ways: int) -> str:
    """Why there is no next address."""
    if ways > 1:
        return "No other address leads to the gateway: what is closed says why."
    return "There is only this one address." if ways else "The service names no address."


def whole(text: str, width: int, role: Role, *, lead: str = "") -> list[Line]:
    """A text of which nothing is left out: what is too long goes on in the next row, indented."""
    first = max(1, width - len(lead))
    rest = max(1, first - len(_INDENT))
    pieces = [text[:first], *(text[at : at + rest] for at in range(first, len(text), rest))]
    return [
        line(Span(lead if index == 0 else " " * len(lead) + _INDENT, Role.KEY), Span(piece, role))
        for index, piece in enumerate(pieces)
    ]


def _about(way: ClientAddress, width: int, more: str = "") -> list[Line]:
    """Who comes by an address, its limit, and why it may be closed."""
    said = (f"{way.text} ({more})" if more else way.text, way.limit)
    parts = [(text, Role.MUTED) for text in said if text]
    parts += [(way.refused, Role.WARN)] if way.refused else []
    return [
        line("    ", piece)
        for text, role in parts
        for piece in wrap(clean(text), max(1, width - 4), role)
    ]


def is_secret(name: str) -> bool:
    """Whether a variable's value is covered until asked for."""
    return any(word in name for word in _SECRET) and not name.endswith(_NO_SECRET)
