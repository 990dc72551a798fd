"""What frames every screen: its tabs, the clock, the key hints."""

from __future__ import annotations

from textual.geometry import Size

from a40console.model.command import COMMANDS, Command
from a40console.model.engine import EngineState
from a40console.tui import format as fmt
from a40console.tui.availability import offered, why_not
from a40console.tui.ink import Line, Role, Span, fit, flow, line, rule, width_of
from a40console.tui.keymap import action, short
from a40console.tui.reading import Reading
from a40console.tui.time_axis import clock_span

_VIEWS = tuple(
    command for command in COMMANDS if command.id.startswith("view.") and command.id != "view.pause"
)
_ALWAYS = ("help.show", "console.quit")
_MOVES = ("time.", "slot.", "view.pause")
"""What moves the picture: hinted where it is drawn, and after what acts on the engine."""

_HINTED = tuple(
    command
    for command in COMMANDS
    if command.key
    and command not in _VIEWS
    and command.id not in _ALWAYS
    and not command.id.startswith(_MOVES)
) + tuple(command for command in COMMANDS if command.id in {"view.pause", "slot.show"})
_LEAVING = tuple(command for command in COMMANDS if command.id in _ALWAYS)
_OVERVIEW, _SESSIONS, _RUNS = "view.overview", "view.sessions", "view.runs"
_ASIDE = "limit.why"
"""The view that is no tab: one goes back from it."""

_ROOMY = 130
"""From so many columns on the tabs stand apart and still leave room for the clock and the news."""

_GAP = " ─ "


def tabs(view: str, reading: Reading, width: int, *, screen_width: int) -> Line:
    """The tab line with one view marked by a heavy rule and bold text."""
    head = _tabs(view, reading, wide=screen_width >= _ROOMY)
    return fit(line(head, Span("─" * max(0, width - width_of(head)), Role.RULE)), width)


def clock(view: str, reading: Reading, *, screen_width: int, follows_time: bool) -> Line:
    """What stands behind the tabs of a view: how fresh the figures are, and the news.

    Where the screen follows time, also which part of the past it shows. A line of its own, since
    it changes each second and the tabs do not.
    """
    head = _tabs(view, reading, wide=screen_width >= _ROOMY)
    room = screen_width - width_of(head) - 3
    now = _now(reading, room, follows_time=follows_time)
    return line(now[0]._replace(text=" "), now, now[-1]._replace(text=" ")) if now else line("")


def _tabs(current: str, reading: Reading, *, wide: bool) -> Line:
    blank = " " if wide else ""
    parts: list[Span] = []
    for command in _VIEWS:
        here = command.id == current
        edge = Span("━" if here else "─", Role.TITLE if here else Role.RULE)
        key = reading.keymap.hint(command.id)
        title = command.title if wide or here else short(command).capitalize()
        name = f"{key} {title}" if key else title
        role = Role.TITLE if here else Role.MUTED
        parts += [edge, Span(f"{blank}{name}{blank}", role, action(command)), edge]
    if not wide:
        parts = [part for n, part in enumerate(parts) if n % 3 < 2 or _is_heavy(part)]
    return line(*parts)


def _is_heavy(edge: Span) -> bool:
    return edge.role is Role.TITLE


def _now(reading: Reading, room: int, *, follows_time: bool) -> Line:
    """Which time is shown, how fresh it is, and the news: what matters most comes first."""
    paused = _paused(reading)
    guard = line(Span("READ-ONLY", Role.WARN)) if reading.read_only else line("")
    past = _past(reading, room) if follows_time else line("")
    if paused and past and width_of(paused) + len(_GAP) + width_of(past) > room:
        paused, past = paused[:-1] if paused[-1].role is Role.KEY else paused, past[:1]
        if width_of(paused) + len(_GAP) + width_of(past) > room:
            past = line(Span("◀ PAST", Role.WARN))
            paused = line(Span("■ PAUSED", Role.WARN), *paused[1:])
    fresh = line("") if reading.paused_s is not None else _fresh(reading)
    news = _news(reading, room)
    if fresh and news and not past and width_of(fresh) + len(_GAP) + width_of(news) > room:
        fresh = line(fresh[0]._replace(text=fresh[0].text.removesuffix(_time(reading))))
        if not reading.stale and width_of(fresh) + len(_GAP) + width_of(news) > room:
            fresh = line("")
    return flow([guard, paused, past, fresh, news], room, _GAP)


def _time(reading: Reading) -> str:
    return f" {fmt.clock(reading.snapshot.at)}"


def _paused(reading: Reading) -> Line:
    if reading.paused_s is None:
        return line("")
    key = reading.keymap.hint("view.pause")
    click = "app.command('view.pause')"
    parts = [Span(f"■ PAUSED {fmt.age(reading.paused_s)}", Role.WARN, click)]
    if reading.meanwhile:
        parts.append(Span(f", {reading.meanwhile}", Role.BAD))
    if key:
        parts.append(Span(f" [{key}]", Role.KEY, click))
    return line(*parts)


def _past(reading: Reading, room: int) -> Line:
    if reading.view.live:
        return line("")
    key = reading.keymap.hint("time.now")
    click = "app.command('time.now')"
    when = clock_span(*reading.view.window(reading.past.now_s), reading.past.now_s)
    roomy = reading.paused_s is None and room >= len(when) + 45
    more = ", live goes on" if roomy else ""
    told = f"◀ PAST {when}"
    back = f" [{key}] now" if key else ""
    if len(told) + len(back) > room:
        back = f" [{key}]" if key and len(told) + len(f" [{key}]") <= room else ""
    return line(Span(told, Role.WARN), Span(more, Role.MUTED), Span(back, Role.KEY, click))


def _fresh(reading: Reading) -> Line:
    if reading.snapshot.seq == 0:
        age = Span("no figures yet", Role.MUTED)
    elif reading.stale:
        age = Span(f"{fmt.age(reading.age_s)} old", Role.BAD)
    else:
        age = Span(f"live{_time(reading)}")
    return line(age, Span(f", {reading.about}" if reading.about else "", age.role))


def _news(reading: Reading, room: int) -> Line:
    if not reading.unread:
        return line("")
    key = reading.keymap.hint("digest.show")
    count = (
        fmt.plural(reading.unread, "new event")
        if room >= len("live 00:00:00 ─ 9,999 new events [u]")
        else f"{fmt.count(reading.unread)} new"
    )
    tail = f" [{key}]" if key else ""
    return line(Span(count + tail, Role.KEY, "app.command('digest.show')"))


def hints(reading: Reading, size: Size, view: str = _OVERVIEW) -> list[Line]:
    """The keys that do something now, and always how to get help and how to leave."""
    gap = "  " if size.width >= 100 else " "
    last = flow([_hint(reading, command) for command in _LEAVING], size.width, gap)
    here = [command for command in _HINTED if _belongs(command, view)]
    here.sort(key=lambda command: view != _SESSIONS or not _is_own(command))
    usable = [_hint(reading, command) for command in here if _is_useful(command, reading)]
    if view == _ASIDE:
        back = line(Span("esc", Role.KEY, "screen.back"), Span(" back", Role.MUTED, "screen.back"))
        usable = [back, *usable]
    room = size.width - width_of(last) - 1 - len(gap)
    first = flow([item for item in usable if item], room, gap)
    return [line(" ", first, gap if first else "", last)]


def _belongs(command: Command, view: str) -> bool:
    """Whether a command works on what a view shows: charts, a table of requests, sessions.

    Among the runs the note's key writes about a run.
    """
    noun = command.id.partition(".")[0]
    if command.id == "request.abort":
        return view == _OVERVIEW
    if command.id == "note.add":
        return view != _RUNS
    views = {"time": (_OVERVIEW,), "slot": (_OVERVIEW, _SESSIONS), "sessions": (_SESSIONS,)}
    return view in views.get(noun, (view,))


def _is_own(command: Command) -> bool:
    """Whether a command belongs to the sessions: hinted first there."""
    return command.id in {"sessions.capture", "slot.show"}


_WHERE_OFFERED = frozenset({"engine.apply", "profile.fix"})
"""Commands that have something to do only where a finding says so."""


def _is_useful(command: Command, reading: Reading) -> bool:
    """Whether a hint earns its place: it can run, and there is something for it to do."""
    if command.id == "engine.clean" and reading.snapshot.engine.state is not EngineState.ORPHANED:
        return False
    if command.id == "digest.show" and not reading.unread:
        return False
    if command.id in _WHERE_OFFERED and not offered(command.id, reading.snapshot):
        return False
    return why_not(command, reading) is None


def _hint(reading: Reading, command: Command) -> Line:
    key = reading.keymap.hint(command.id)
    if not key:
        return line("")
    return line(
        Span(key, Role.KEY, action(command)),
        Span(f" {short(command).lower()}", Role.MUTED, action(command)),
    )


def heading(title: str, detail: str, width: int, role: Role = Role.LABEL) -> Line:
    """A panel's heading: its name and what its figures cover, on a thin rule."""
    tail = line(Span(f"  {detail}", Role.MUTED)) if detail else line("")
    return rule(line(Span(title, role), tail), width)
