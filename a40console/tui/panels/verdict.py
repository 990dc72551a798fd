"""The three lines on every screen: does it serve, what limits it, what does it cost."""

from __future__ import annotations

from textual.geometry import Size

from a40console.model.captured import CAPTURE, captured
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.model.freshness import present_speed, speed_unit
from a40console.model.snapshot import Cost, EngineInfo, Snapshot, SpeculationInfo
from a40console.model.switching import SwitchInfo, SwitchStep
from a40console.tui import format as fmt
from a40console.tui.format import DASH, known, shown
from a40console.tui.ink import Line, Role, Span, clean, faded, fit, flow, line, spread, width_of
from a40console.tui.reading import Reading

_HEAD = 11
"""Cells of the first column: the longest state word and its glyph."""

_SHORT_HEAD = 5
_NARROW = 100
_ROOMY = 160
"""From here on the first line has room for a sentence beside the speed."""

_FIGURE = 6
"""Cells of the first figure of a line, so that speed and price end below each other."""

_STATES: dict[EngineState, tuple[str, str, Role]] = {
    EngineState.ABSENT: ("○", "NO ENGINE", Role.MUTED),
    EngineState.FETCHING: ("◐", "FETCHING", Role.WARN),
    EngineState.STARTING: ("◐", "STARTING", Role.WARN),
    EngineState.SERVING: ("●", "SERVING", Role.GOOD),
    EngineState.DRAINING: ("◐", "DRAINING", Role.WARN),
    EngineState.STOPPING: ("◐", "STOPPING", Role.WARN),
    EngineState.STOPPED: ("○", "STOPPED", Role.MUTED),
    EngineState.FAILED: ("✖", "FAILED", Role.BAD),
    EngineState.ORPHANED: ("▲", "ORPHANED", Role.WARN),
    EngineState.HUNG: ("▲", "HUNG", Role.BAD),
    EngineState.ASLEEP: ("○", "ASLEEP", Role.MUTED),
}

PHASES: dict[str, str] = {
    "download": "fetching the model",
    "load": "loading the weights",
    "compile": "compiling",
    "capture": "capturing CUDA graphs",
    "canary": "trying it before clients come",
    "wake": "taking its memory again",
    "ready": "ready",
}
"""What the phases of a start are called."""

STEPS: dict[SwitchStep, str] = {
    "prepare": "nothing has stopped yet",
    "drain": "running requests end",
    "stop": "what served is stopped",
    "start": "it starts",
    "canary": "it is tried",
    "put_back": "it failed, what served is put back",
}
"""What the steps of a switch are called."""

_CAUSES = {"vcpu": "vCPU", "kv": "KV", "gpu": "GPU", "pcie": "PCIe"}
_TRANSITIONS = frozenset({EngineState.FETCHING, EngineState.STARTING})
_REMEDIES: dict[EngineState, tuple[str, ...]] = {
    EngineState.FAILED: ("engine-failed",),
    EngineState.ORPHANED: ("unkillable", "engine-orphaned"),
    EngineState.HUNG: ("engine-hung",),
}
"""The findings that speak of the state itself: another's remedy would not mend it."""


def verdict(reading: Reading, size: Size) -> list[Line]:
    """The three verdict lines; greyed under a warning while no service answers."""
    snapshot = reading.snapshot
    lines = [
        fit(_serving(reading, size.width), size.width),
        fit(_second(reading, size.width), size.width),
        fit(_cost(snapshot, size.width), size.width),
    ]
    if not reading.stale:
        return lines
    return [fit(_stale(reading, size.width), size.width), *faded(lines[:1]), *faded(lines[2:])]


def _stale(reading: Reading, width: int) -> Line:
    trouble = reading.link.trouble
    marks = _captured(reading.snapshot, width), _simulated(reading.snapshot), _far(reading)
    whose, why = line(*marks), ""
    if reading.link.state == "connecting" and trouble is None:
        head = _head("◌", "CONNECTING", Role.MUTED, width)
        return line(head, whose, "waiting for the service's first word")
    if reading.link.state == "live":
        message = "the service has gone silent"
    elif trouble is not None and "another" in trouble.message:
        message = f"{trouble.message} {trouble.remedy}"
    elif trouble is not None and reading.remote:
        message, why = clean(trouble.message), clean(f" {trouble.evidence}")
    else:
        message = "reconnecting"
    seen = f"last seen {fmt.age(reading.age_s)} ago" if reading.snapshot.seq else "never seen"
    head = line(_head("✖", "NO SERVICE", Role.BAD, width), whose)
    return line(head, message, Span(f", {seen}{why}", Role.MUTED))


def _simulated(snapshot: Snapshot) -> Line:
    """In the first line of every screen, at every width: none of it is real."""
    return line(Span("SIMULATED ", Role.WARN)) if snapshot.simulated else line("")


def _captured(snapshot: Snapshot, width: int) -> Line:
    """In the first line of every screen: somebody's text is being written to files."""
    names = captured(snapshot)
    if not names:
        return line("")
    who = f" {clean(names)}" if width >= _NARROW else ""
    return line(Span(f"{CAPTURE}{who} ", Role.BAD, "app.command('view.sessions')"))


def _far(reading: Reading) -> Line:
    """The other machine, on every screen: nobody should stop the wrong engine."""
    return line(Span(f"{clean(reading.remote)} ", Role.SECOND)) if reading.remote else line("")


def _head(glyph: str, word: str, role: Role, width: int) -> Line:
    text = f"{glyph} {word}"
    return line(" ", Span(text.ljust(_HEAD) if width >= _NARROW else text, role), " ")


def _label(word: str, width: int) -> Line:
    return line(" ", Span(word.ljust(_HEAD if width >= _NARROW else _SHORT_HEAD), Role.LABEL), " ")


def _serving(reading: Reading, width: int) -> Line:
    snapshot = reading.snapshot
    engine = snapshot.engine
    glyph, word, role = _STATES[engine.state]
    if snapshot.seq == 0:
        glyph, word, role = "○", "UNKNOWN", Role.MUTED
    head = line(_head(glyph, word, role, width), _captured(snapshot, width))
    head = line(head, _simulated(snapshot), _far(reading))
    if not isinstance(engine.switch, Missing) and engine.state not in _TRANSITIONS:
        left = line(head, _switching(engine.switch))
    elif engine.state in {EngineState.SERVING, EngineState.DRAINING, EngineState.HUNG}:
        left = line(head, _gate(snapshot, width), _speed(snapshot, width))
        name = line(clean(known(engine.profile, "")))
        if width < _NARROW and width_of(left) + 2 + width_of(name) > width:
            left = line(head, _gate(snapshot, width), _speed(snapshot, width, zeros=False))
    elif engine.state in _TRANSITIONS:
        left = line(head, _starting(engine))
    else:
        left = line(head, _resting(reading))
    return spread(left, _identity(snapshot, width - width_of(left) - 2), width - 1)


def _gate(snapshot: Snapshot, width: int) -> Line:
    """That an operator has paused admission, and who, where there is room for it."""
    gate = snapshot.requests.gate
    if gate is None or not isinstance(snapshot.engine.switch, Missing):
        return line("")
    told = clean(gate) if width >= _ROOMY else "ADMISSION PAUSED"
    return line(Span(f"{told} " if "paused" in gate else "", Role.WARN))


def _speed(snapshot: Snapshot, width: int, *, zeros: bool = True) -> Line:
    speed = shown(present_speed(snapshot), fmt.rate)
    paused = line(Span("PAUSED ", Role.WARN)) if snapshot.engine.paused is True else line("")
    wide = width >= _NARROW
    figure = Span(f"{speed:>{_FIGURE if wide else _FIGURE - 1}}", Role.STRONG)
    unit = f" {speed_unit(snapshot)}"
    return line(paused, figure, unit, "   " if wide else "  ", _load(snapshot, width, zeros))


def _load(snapshot: Snapshot, width: int, zeros: bool) -> Line:
    """How many requests are where; what is nowhere gives way where `zeros` are too many."""
    dot = " · " if width >= _NARROW else " "
    requests = snapshot.requests
    if isinstance(snapshot.slots, Missing):
        running = shown(requests.running, fmt.count)
        waiting = shown(requests.waiting, fmt.count)
        return line(f"{running} running{dot}{waiting} queued{dot}{requests.held} held")
    phases = [slot.phase for slot in snapshot.slots]
    counts = (
        ("decoding", phases.count("decode"), True),
        ("prefill", phases.count("prefill"), zeros),
        ("queued", phases.count("queued"), False),
        ("held", requests.held, zeros),
    )
    return line(dot.join(f"{number} {word}" for word, number, even_0 in counts if number or even_0))


def _starting(engine: EngineInfo) -> Line:
    name = known(engine.phase)
    left = (
        Span(f"   ETA {DASH} ({engine.eta_s.reason})", Role.MUTED)
        if isinstance(engine.eta_s, Missing)
        else Span(f"   ≈ {shown(engine.eta_s, fmt.duration).lstrip('≈')} left")
    )
    spent = shown(engine.phase_s, fmt.duration)
    return line(Span(PHASES.get(name, clean(name)), Role.STRONG), f"  {spent}", left)


def _switching(switch: SwitchInfo) -> Line:
    """What is switched, and how far it is; what starts tells its phases in its own words."""
    told = STEPS[switch.step]
    if detail := clean(known(switch.detail, "")):
        told = detail if switch.step == "prepare" else f"{told}, {detail}"
    spent = Span(f"  {shown(switch.step_s, fmt.duration)}", Role.MUTED)
    return line(Span(clean(switch.what), Role.STRONG), f"  {told}", spent)


def _resting(reading: Reading) -> Line:
    engine = reading.snapshot.engine
    end = engine.exit
    match engine.state:
        case EngineState.FAILED if not isinstance(end, Missing):
            return line(clean(end.cause), Span(f"  {_code(end.code)}{fmt.clock(end.at)}"))
        case EngineState.ORPHANED:
            return line("processes of an engine are left over ", _press(reading, "engine.clean"))
        case EngineState.ABSENT if reading.snapshot.seq == 0:
            return line(Span(f"{DASH} nothing is known yet", Role.MUTED))
        case EngineState.ABSENT | EngineState.STOPPED:
            return line("nothing runs, nothing is served ", _press(reading, "engine.start"))
        case EngineState.STOPPING:
            return line(f"{shown(engine.phase_s, fmt.duration)}")
        case EngineState.ASLEEP:
            return line(clean(known(engine.phase, "")))
        case _:
            return line("")


def _code(code: int | Missing) -> str:
    return "" if isinstance(code, Missing) else f"exit {code}  "


def _press(reading: Reading, command_id: str) -> Line:
    key = reading.keymap.hint(command_id)
    if not key:
        return line("")
    return line(Span(f"[{key}]", Role.KEY, f"app.command('{command_id}')"))


def _identity(snapshot: Snapshot, width: int) -> Line:
    """Who serves: as much as fits, the version given up first, the profile last."""
    engine = snapshot.engine
    version = "" if isinstance(engine.version, Missing) else f"{_kind(engine)} {engine.version}"
    up = "" if isinstance(engine.uptime_s, Missing) else f"up {shown(engine.uptime_s, _uptime)}"
    profile = line(Span(clean(known(engine.profile, "")), Role.STRONG))
    spec = line(_speculation(snapshot.speculation))
    for items in (
        [profile, line(version), spec, line(up)],
        [profile, spec, line(up)],
        [profile, line(up)],
    ):
        whole = flow(items, 1000)
        if width_of(whole) <= width:
            return whole
    return fit(profile, max(0, width))


def _uptime(seconds: float) -> str:
    """Whole minutes: a figure that moves every second draws the eye for nothing."""
    return fmt.age(seconds) if seconds < 3600 else fmt.duration(seconds)


def _kind(engine: EngineInfo) -> str:
    names = {
        "vllm": "vLLM",
        "llamacpp": "llama.cpp",
        "sim": "simulated",
        "attached": "attached",
        "foreign": "foreign",
    }
    return "" if isinstance(engine.kind, Missing) else names[engine.kind]


def _speculation(speculation: SpeculationInfo) -> str:
    if isinstance(speculation.mode, Missing) or speculation.control == "none":
        return ""
    if speculation.mode == "off":
        return "spec off"
    method = known(speculation.method, "spec").replace("ngram", "n-gram")
    depth = "" if isinstance(speculation.depth, Missing) else shown(speculation.depth, fmt.count)
    return f"{method} {depth}".strip()


def _second(reading: Reading, width: int) -> Line:
    snapshot = reading.snapshot
    if remedy := _remedy(snapshot):
        return line(_label("REMEDY", width), clean(remedy))
    limit = snapshot.limit
    if limit.cause == "not-serving" and snapshot.engine.state is not EngineState.SERVING:
        # The line above says what the engine does instead.
        why = f"{DASH} known only while an engine serves"
        return line(_label("LIMIT", width), Span(why, Role.MUTED))
    left = line(_label("LIMIT", width), clean(limit.text) or clean(limit.cause))
    if not limit.ruled_out:
        return left
    prefix, gap = ("ruled out: ", "  ") if width >= _NARROW else ("not: ", " ")
    names = [cause_name(cause) for cause in limit.ruled_out]
    room = width - 1 - width_of(left) - 2 - len(prefix)
    causes = flow([line(Span(name, Role.MUTED)) for name in names], room, gap)
    if room < len(names[0]):
        return left
    return spread(left, line(Span(prefix, Role.MUTED), causes), width - 1)


def _remedy(snapshot: Snapshot) -> str:
    """What to do about an engine that failed, hangs or left processes; empty for any other."""
    codes = _REMEDIES.get(snapshot.engine.state, ())
    return next((found.remedy for found in snapshot.findings if found.code in codes), "")


def cause_name(cause: str) -> str:
    """A cause of the limit as it is written for people."""
    return _CAUSES.get(cause, clean(cause))


def _cost(snapshot: Snapshot, width: int) -> Line:
    cost = snapshot.cost
    head = _label("COST", width)
    if isinstance(cost.usd_per_hour, Missing) and isinstance(cost.usd_so_far, Missing):
        return line(head, Span(f"{DASH} {clean(cost.usd_per_hour.reason)}", Role.MUTED))
    items = [
        line(f"{shown(cost.usd_per_million.now, fmt.dollars):>{_FIGURE}}/1M now"),
        *_longer(cost),
        line(_rate(cost)),
        _so_far(cost),
        line(Span(f"counting {cost.counted} tokens", Role.MUTED)),
    ]
    return line(head, flow(items, width - width_of(head) - 1, "   " if width >= _NARROW else "  "))


def _rate(cost: Cost) -> str:
    """What an hour costs, or that tokens are paid."""
    if cost.kind == "per_token":
        return "by the token"
    return f"{shown(cost.usd_per_hour, fmt.dollars)}/h" + (
        " with disk" if cost.includes_disk else ""
    )


def _longer(cost: Cost) -> list[Line]:
    """The price of a million tokens over the longer spans that are known."""
    million = cost.usd_per_million
    whole = "in all" if cost.kind == "per_token" else "since rent"
    spans = (("session", million.session), (whole, million.since_rent))
    return [
        line(f"{shown(figure, fmt.dollars)}/1M {name}")
        for name, figure in spans
        if not isinstance(figure, Missing)
    ]


def _so_far(cost: Cost) -> Line:
    """The dollars spent, and since when they are counted."""
    if isinstance(cost.usd_so_far, Missing):
        return line("")
    since = f", since {clean(cost.since)}" if cost.since else ""
    return line(f"{shown(cost.usd_so_far, fmt.dollars)} so far", Span(since, Role.MUTED))
