"""The clients' sessions as the service tells of them: rows of the snapshot, details, signs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from a40console.errors import UsageError
from a40console.gateway import session_view as view_of
from a40console.gateway.client_window import NEARLY_FULL_RATIO, assumed, client_window
from a40console.gateway.session_phase import Standing, standing
from a40console.gateway.session_records import Record
from a40console.gateway.session_runs import Serving
from a40console.gateway.sessions import SessionBook
from a40console.model.engine import is_simulated
from a40console.model.figures import Figure, Missing, measured, number, ratio, total
from a40console.model.instants import iso_utc, unix_s
from a40console.model.request import EngineRow, Phase
from a40console.model.session import (
    ClientWindow,
    CountDisagreement,
    SessionDetail,
    SessionRequest,
    SessionSigns,
)
from a40console.model.snapshot import CacheLoss, Session, Slot
from a40console.service.connecting import output_limit
from a40console.service.cost import NO_PRICE, Terms
from a40console.service.session_cost import Due, busiest_usd_per_million, due
from a40console.service.session_losses import last_loss, reusable_ratio
from a40console.telemetry.view import EngineView

SHOWN_FOR_S = 24 * 3600.0
"""A session that was silent for longer is in its detail only."""

LOSS_FOR_S = 600.0
"""So long after a loss it is a sign of what goes wrong now."""

NO_TURN = Missing("no turn of it has begun to answer yet")
WINDOW_UNTOLD = Missing("the window of the engine that served it is not known")


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What sessions are told with besides the book."""

    slots: tuple[Slot, ...] | Missing
    window_tokens: Figure
    """The engine's `max_model_len`."""

    usd_per_hour: Decimal | None
    told: Mapping[str, EngineRow]
    """The engine's own rows of our requests."""

    unpriced: Missing = NO_PRICE
    """Why there is no price."""

    run_id: str | None = None
    """Which start of the engine serves; None where starts are not told apart, or none serves."""

    simulated: bool | None = False
    """Whether that engine only pretends; None while it is not known."""


def around(
    view: EngineView | None,
    terms: Terms,
    run_id: str | None = None,
    waiting: tuple[Slot, ...] = (),
) -> Around:
    """What goes with the book at this instant.

    `run_id` is the start that the view is of, and `waiting` what is held while there is no view.
    """
    if view is None:
        quiet = Missing("no engine answers")
        return Around(
            slots=waiting or quiet,
            window_tokens=quiet,
            usd_per_hour=terms.usd_per_hour,
            told={},
            unpriced=terms.unpriced,
            simulated=None,
        )
    return Around(
        slots=view.slots,
        window_tokens=view.max_model_len,
        usd_per_hour=terms.usd_per_hour,
        told=view.told,
        unpriced=terms.unpriced,
        run_id=run_id,
        simulated=_pretends(view),
    )


def _pretends(view: EngineView) -> bool | None:
    if view.kind == "foreign" and isinstance(view.version, Missing):
        return None
    return view.kind == "sim" or is_simulated(view.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsBlock:
    """The sessions' part of a snapshot."""

    sessions: tuple[Session, ...] | Missing
    last_loss: CacheLoss | Missing
    reusable_ratio: Figure
    signs: tuple[SessionSigns, ...]
    usd_per_million: Figure
    """Of the busiest session, by what the engines that served it cost."""

    counts: CountDisagreement | None
    uncounted: bool
    """Whether the engine cannot count prompts for `count_tokens`."""


class Sessions:
    """Reads the book for snapshots and for whoever asks after one session.

    Args:
        book: What passes through the gateway.
        wall: Unix time.
    """

    def __init__(self, book: SessionBook, wall: Callable[[], float] = time.time) -> None:
        self.book = book
        self._wall = wall
        self._waits: dict[str, tuple[Record, int, tuple[float, ...]]] = {}
        """Time to first token of the turns by session, with the revision of which they are."""

        self._around = Around(
            slots=Missing("no snapshot yet"),
            window_tokens=Missing("no engine runs"),
            usd_per_hour=None,
            told={},
        )

    def take(self, around: Around) -> SessionsBlock:
        """The sessions at this instant; what the engine tells of their requests is taken in."""
        self._around = around
        self.book.account()
        self.book.serves(_serving(around))
        self.book.told(around.told)
        now_s, slots = self._wall(), _by_request(around.slots)
        shown = [
            record
            for record in reversed(self.book.records())
            if record.live or now_s - record.last_s <= SHOWN_FOR_S
        ]
        names = {record.session for record in shown}
        self._waits = {name: held for name, held in self._waits.items() if name in names}
        counts = self.book.counts
        return SessionsBlock(
            sessions=tuple(self._row(record, slots, now_s) for record in shown),
            last_loss=last_loss(shown),
            reusable_ratio=reusable_ratio(shown, now_s),
            signs=tuple(self._signs(record, now_s) for record in shown),
            usd_per_million=busiest_usd_per_million(
                [self._due(record, _live(record, slots)) for record in shown],
                simulated=bool(around.simulated),
            ),
            counts=counts.error,
            uncounted=counts.impossible,
        )

    def detail(self, session: str, turns: int = 100) -> SessionDetail:
        """One session in full, with its newest requests.

        Raises:
            UsageError: If it is not known.
        """
        record = self.book.find(session) or self._by_beginning(session)
        if record is None:
            known = ", ".join(each.session for each in self.book.records()[-5:])
            raise UsageError(
                f"No session is known as {session}",
                evidence=f"the newest are {known}" if known else "no session was seen yet",
                remedy="See them with: a40console sessions",
            )
        self.book.account()
        return self._detail(record, max(1, turns))

    def _by_beginning(self, start: str) -> Record | None:
        """A session by the first characters of its name, if only one begins so."""
        found = [each for each in self.book.records() if start and each.session.startswith(start)]
        return found[0] if len(found) == 1 else None

    def _row(self, record: Record, slots: Mapping[str, Slot], now_s: float) -> Session:
        sums, here = record.sums(), standing(record, _phases(slots), now_s)
        live = _live(record, slots)
        generated = view_of.generated_tokens(sums, live)
        waits = self._first_tokens(record, live)
        return Session(
            session=record.session,
            client=view_of.named(record.client, "the client does not name itself"),
            phase=here.phase,
            tool=view_of.named(here.tool, "no tool runs"),
            phase_s=max(0.0, round(now_s - here.since_s, 3)),
            turns=record.turns,
            requests=sums.requests + len(record.live),
            context_tokens=view_of.context_tokens(record.main, live),
            window_tokens=self._window_tokens(record),
            prompt_tokens=view_of.prompt_tokens(sums, live),
            reused_tokens=view_of.reused_tokens(sums, live),
            reread_tokens=view_of.reread_tokens(sums, live),
            generated_tokens=generated,
            hit_ratio=view_of.hit_ratio(sums, live),
            sustained_tokens_per_s=_sustained(record, generated),
            cost_usd=self._due(record, live).usd,
            started_at=iso_utc(record.started_s),
            last_at=iso_utc(record.last_s),
            tokens_per_s=_live_speed(self._around.slots, record.session, here),
            ttft_last_s=waits[-1] if waits else NO_TURN,
            ttft_median_s=round(median(waits), 3) if waits else NO_TURN,
            compacts_at_tokens=self._window(record, live).compacts_at_tokens,
            capturing=self.book.captures.is_on(record.session),
        )

    def _first_tokens(self, record: Record, live: Sequence[SessionRequest]) -> tuple[float, ...]:
        """Looked for among hundreds of requests only where one has come or ended since."""
        known = self._waits.get(record.session)
        if known is None or known[0] is not record or known[1] != record.revision:
            known = record, record.revision, view_of.first_tokens_s(record.entries)
            self._waits[record.session] = known
        return (*known[2], *_begun(record, live))

    def _serves(self, record: Record) -> bool:
        """Whether its last request went to the engine that serves now."""
        return record.run_id == self._around.run_id

    def _window_tokens(self, record: Record) -> Figure:
        """The window of the engine that served its last request."""
        if self._serves(record) and not isinstance(self._around.window_tokens, Missing):
            return self._around.window_tokens
        return WINDOW_UNTOLD if record.window_tokens is None else record.window_tokens

    def _window(self, record: Record, live: Sequence[SessionRequest]) -> ClientWindow:
        true_tokens = self._window_tokens(record)
        context = view_of.context_tokens(record.main, live)
        return client_window(record, context, true_tokens, _told_output(true_tokens))

    def _due(self, record: Record, live: Sequence[SessionRequest]) -> Due:
        """The rent of its busy seconds, each shared with the sessions busy beside it."""
        now = self._around
        return due(
            record,
            live,
            simulated=bool(now.simulated),
            unpriced=now.unpriced if now.usd_per_hour is None else None,
        )

    def _signs(self, record: Record, now_s: float) -> SessionSigns:
        here = self._serves(record)
        window = number(self._around.window_tokens) if here else None
        found = assumed(record, window, _told_output(window))
        loss = next(
            (
                each
                for each in reversed(record.losses)
                if each.kind == "changed" and now_s - (unix_s(each.at) or 0.0) <= LOSS_FOR_S
            ),
            None,
        )
        high = record.highest_context_tokens
        return SessionSigns(
            session=record.session,
            silent_s=0.0 if record.live else max(0.0, now_s - record.last_s),
            loss=loss,
            losses=sum(1 for each in record.losses if each.kind == "changed"),
            window_wrong=here and found.wrong,
            window_evidence=found.evidence if here else "",
            overflows=record.overflows if here and record.overfull else 0,
            nearly_full=window is not None and high > NEARLY_FULL_RATIO * window,
            safeguards=record.safeguards,
            removed=dict(record.removed),
            fallbacks=record.fallbacks,
        )

    def _detail(self, record: Record, turns: int) -> SessionDetail:
        now_s, slots = self._wall(), _by_request(self._around.slots)
        row, phases = self._row(record, slots, now_s), _phases(slots)
        here, live = standing(record, phases, now_s), _live(record, slots)
        entries = list(record.entries)
        kept, sums = entries[-turns:], record.sums()
        main = record.main
        others = [agent for agent in record.agents.values() if agent is not main]
        agents = [main, *others] if main else others
        return SessionDetail(
            session=record.session,
            client=row.client,
            origin=record.origin,
            model=view_of.named(record.model, "its requests name no model"),
            max_tokens=measured(record.max_tokens, "no limit was asked for"),
            phase=here.phase,
            tool=row.tool,
            phase_s=row.phase_s,
            started_at=row.started_at,
            last_at=iso_utc(record.last_s),
            turns=record.turns,
            requests=row.requests,
            failed=record.failed,
            aborted=record.aborted,
            context_tokens=row.context_tokens,
            window=self._window(record, live),
            prompt_tokens=row.prompt_tokens,
            reused_tokens=row.reused_tokens,
            reread_tokens=row.reread_tokens,
            generated_tokens=row.generated_tokens,
            hit_ratio=row.hit_ratio,
            tokens_per_s=row.tokens_per_s,
            sustained_tokens_per_s=row.sustained_tokens_per_s,
            busy_s=round(record.busy_s, 3),
            cost_usd=row.cost_usd,
            usd_per_million=self._due(record, live).usd_per_million,
            ttft_s=self._first_tokens(record, live),
            agents=tuple(
                view_of.agent_row(agent, standing(record, phases, now_s, agent.name).phase, live)
                for agent in agents
            ),
            tools=view_of.tool_sums(record),
            timeline=tuple(
                view_of.request_row(entry, slots.get(entry.request_id)) for entry in kept
            ),
            forgotten_requests=max(0, sums.requests + len(record.live) - len(kept)),
            losses=tuple(record.losses),
            removed=dict(record.removed),
            safeguards=record.safeguards,
            capturing=row.capturing,
        )


def _serving(around: Around) -> Serving:
    """What the book keeps of the engine that serves."""
    window = number(around.window_tokens)
    return Serving(
        run_id=around.run_id,
        window_tokens=None if window is None else int(window),
        usd_per_hour=None if around.usd_per_hour is None else float(around.usd_per_hour),
        simulated=around.simulated,
    )


def _by_request(slots: tuple[Slot, ...] | Missing) -> dict[str, Slot]:
    return {} if isinstance(slots, Missing) else {slot.request_id: slot for slot in slots}


def _phases(slots: Mapping[str, Slot]) -> dict[str, Phase]:
    return {request_id: slot.phase for request_id, slot in slots.items()}


def _live(record: Record, slots: Mapping[str, Slot]) -> list[SessionRequest]:
    """Its requests under way, with what their slots tell."""
    return [view_of.request_row(entry, slots.get(entry.request_id)) for entry in record.live]


def _begun(record: Record, live: Sequence[SessionRequest]) -> list[float]:
    """Time to first token of the turns under way that have one."""
    return [
        waited_s
        for entry, row in zip(record.live, live, strict=True)
        if entry.is_turn and (waited_s := number(row.ttft_s)) is not None
    ]


def _told_output(window: Figure | None) -> int | None:
    """The output limit that a client with the console's lines asks for."""
    tokens = None if window is None else number(window)
    return None if tokens is None else output_limit(int(tokens))


def _sustained(record: Record, generated: Figure) -> Figure:
    return ratio(generated, record.busy_s, reason="the engine had no request of it yet")


def _live_speed(slots: tuple[Slot, ...] | Missing, session: str, here: Standing) -> Figure:
    """What its slots emit together."""
    if isinstance(slots, Missing):
        return slots
    speeds = [slot.tokens_per_s for slot in slots if slot.session == session]
    known = [speed for speed in speeds if not isinstance(speed, Missing)]
    return total(known, reason=f"nothing of it is in decode ({here.phase})")
