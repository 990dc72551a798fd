"""The clients' sessions as the service tells of them: rows of the snapshot, details, signs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from a40console.errors import UsageError
from a40console.gateway import session_view as view_of
from a40console.gateway.client_window import NEARLY_FULL_RATIO, assumed, client_window
from a40console.gateway.session_phase import Standing, standing
from a40console.gateway.session_records import Record
from a40console.gateway.sessions import SessionBook
from a40console.model.figures import Figure, Missing, combine, measured, number, ratio, total
from a40console.model.instants import iso_utc, unix_s
from a40console.model.request import EngineRow, Phase
from a40console.model.session import (
    ClientWindow,
    CountDisagreement,
    PrefixLoss,
    SessionDetail,
    SessionSigns,
)
from a40console.model.snapshot import CacheLoss, Session, Slot
from a40console.service.connecting import output_limit
from a40console.service.cost import NO_PRICE, SECONDS_PER_HOUR, Terms, usd_per_million
from a40console.telemetry.view import EngineView

SHOWN_FOR_S = 24 * 3600.0
"""A session that was silent for longer is in its detail only."""

LOSS_FOR_S = 600.0
"""So long after a loss it is a sign of what goes wrong now."""

NO_LOSS = Missing("no prefix was lost yet")
NO_TURN = Missing("no turn of it has begun to answer yet")


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


def around(view: EngineView | None, terms: Terms) -> Around:
    """What goes with the book at this instant."""
    if view is None:
        quiet = Missing("no engine answers")
        return Around(
            slots=quiet,
            window_tokens=quiet,
            usd_per_hour=terms.usd_per_hour,
            told={},
            unpriced=terms.unpriced,
        )
    return Around(
        slots=view.slots,
        window_tokens=view.max_model_len,
        usd_per_hour=terms.usd_per_hour,
        told=view.told,
        unpriced=terms.unpriced,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsBlock:
    """The sessions' part of a snapshot."""

    sessions: tuple[Session, ...] | Missing
    last_loss: CacheLoss | Missing
    reusable_ratio: Figure
    signs: tuple[SessionSigns, ...]
    counts: CountDisagreement | None
    uncounted: bool
    """Whether the engine cannot count prompts for `count_tokens`."""


@dataclass(frozen=True, slots=True)
class _Waits:
    """Time to first token of a session's turns."""

    last_s: Figure
    median_s: Figure


class Sessions:
    """Reads the book for snapshots and for whoever asks after one session.

    Args:
        book: What passes through the gateway.
        wall: Unix time.
    """

    def __init__(self, book: SessionBook, wall: Callable[[], float] = time.time) -> None:
        self.book = book
        self._wall = wall
        self._waits: dict[str, tuple[Record, int, _Waits]] = {}
        """By session, with the revision of which they are."""

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
        self.book.told(around.told)
        now_s, phases = self._wall(), _phases(around.slots)
        shown = [
            record
            for record in reversed(self.book.records())
            if record.live or now_s - record.last_s <= SHOWN_FOR_S
        ]
        names = {record.session for record in shown}
        self._waits = {name: held for name, held in self._waits.items() if name in names}
        counts = self.book.counts
        return SessionsBlock(
            sessions=tuple(self._row(record, phases, now_s) for record in shown),
            last_loss=_last_loss(shown),
            reusable_ratio=_reusable(shown, now_s),
            signs=tuple(self._signs(record, now_s) for record in shown),
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

    def _row(self, record: Record, phases: Mapping[str, Phase], now_s: float) -> Session:
        sums, here = record.sums(), standing(record, phases, now_s)
        generated = view_of.generated_tokens(sums)
        waits = self._first_tokens(record)
        return Session(
            session=record.session,
            client=view_of.named(record.client, "the client does not name itself"),
            phase=here.phase,
            tool=view_of.named(here.tool, "no tool runs"),
            phase_s=max(0.0, round(now_s - here.since_s, 3)),
            turns=record.turns,
            requests=sums.requests + len(record.live),
            context_tokens=view_of.context_tokens(record.main),
            window_tokens=self._around.window_tokens,
            prompt_tokens=view_of.prompt_tokens(sums),
            reused_tokens=view_of.reused_tokens(sums),
            reread_tokens=view_of.reread_tokens(sums),
            generated_tokens=generated,
            hit_ratio=view_of.hit_ratio(sums),
            sustained_tokens_per_s=_sustained(record, generated),
            cost_usd=self._usd(record),
            started_at=iso_utc(record.started_s),
            last_at=iso_utc(record.last_s),
            tokens_per_s=_live_speed(self._around.slots, record.session, here),
            ttft_last_s=waits.last_s,
            ttft_median_s=waits.median_s,
            compacts_at_tokens=self._window(record).compacts_at_tokens,
            capturing=self.book.captures.is_on(record.session),
        )

    def _first_tokens(self, record: Record) -> _Waits:
        """Looked for among hundreds of requests only where one has come or ended since."""
        known = self._waits.get(record.session)
        if known is not None and known[0] is record and known[1] == record.revision:
            return known[2]
        waits = view_of.first_tokens_s(record.entries)
        found = _Waits(waits[-1], round(median(waits), 3)) if waits else _Waits(NO_TURN, NO_TURN)
        self._waits[record.session] = record, record.revision, found
        return found

    def _window(self, record: Record) -> ClientWindow:
        true_tokens = self._around.window_tokens
        context = view_of.context_tokens(record.main)
        return client_window(record, context, true_tokens, self._told_output())

    def _told_output(self) -> int | None:
        """The output limit that a client with the console's lines asks for."""
        window = number(self._around.window_tokens)
        return None if window is None else output_limit(int(window))

    def _usd(self, record: Record) -> Figure:
        """The rent of its busy seconds, each shared with the sessions busy beside it."""
        price = self._around.usd_per_hour
        if price is None:
            return self._around.unpriced
        return float(price / SECONDS_PER_HOUR * Decimal(record.share_s))

    def _signs(self, record: Record, now_s: float) -> SessionSigns:
        window = number(self._around.window_tokens)
        found = assumed(record, window, self._told_output())
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
            window_wrong=found.wrong,
            window_evidence=found.evidence,
            overflows=record.overflows if record.overfull else 0,
            nearly_full=window is not None and high > NEARLY_FULL_RATIO * window,
            safeguards=record.safeguards,
            removed=dict(record.removed),
            fallbacks=record.fallbacks,
        )

    def _detail(self, record: Record, turns: int) -> SessionDetail:
        now_s, phases = self._wall(), _phases(self._around.slots)
        row, here = self._row(record, phases, now_s), standing(record, phases, now_s)
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
            window=self._window(record),
            prompt_tokens=row.prompt_tokens,
            reused_tokens=row.reused_tokens,
            reread_tokens=row.reread_tokens,
            generated_tokens=row.generated_tokens,
            hit_ratio=row.hit_ratio,
            tokens_per_s=row.tokens_per_s,
            sustained_tokens_per_s=row.sustained_tokens_per_s,
            busy_s=round(record.busy_s, 3),
            cost_usd=row.cost_usd,
            usd_per_million=usd_per_million(row.cost_usd, row.generated_tokens),
            ttft_s=view_of.first_tokens_s(entries),
            agents=tuple(
                view_of.agent_row(agent, standing(record, phases, now_s, agent.name).phase)
                for agent in agents
            ),
            tools=view_of.tool_sums(record),
            timeline=tuple(map(view_of.request_row, kept)),
            forgotten_requests=max(0, sums.requests + len(record.live) - len(kept)),
            losses=tuple(record.losses),
            removed=dict(record.removed),
            safeguards=record.safeguards,
            capturing=row.capturing,
        )


def _phases(slots: tuple[Slot, ...] | Missing) -> dict[str, Phase]:
    known = () if isinstance(slots, Missing) else slots
    return {slot.request_id: slot.phase for slot in known}


def _sustained(record: Record, generated: Figure) -> Figure:
    return ratio(generated, record.busy_s, reason="the engine had no request of it yet")


def _live_speed(slots: tuple[Slot, ...] | Missing, session: str, here: Standing) -> Figure:
    """What its slots emit together."""
    if isinstance(slots, Missing):
        return slots
    speeds = [slot.tokens_per_s for slot in slots if slot.session == session]
    known = [speed for speed in speeds if not isinstance(speed, Missing)]
    return total(known, reason=f"nothing of it is in decode ({here.phase})")


def _last_loss(records: list[Record]) -> CacheLoss | Missing:
    """The newest prefix that a session lost, faults alone."""
    found: list[tuple[str, PrefixLoss]] = [
        (record.session, loss)
        for record in records
        for loss in record.losses
        if loss.kind in ("changed", "evicted")
    ]
    if not found:
        return NO_LOSS
    session, loss = max(found, key=lambda entry: entry[1].at)
    return CacheLoss(
        session=session, turn=loss.turn, tokens=loss.tokens, cause=loss.cause, at=loss.at
    )


REUSABLE_OVER_S = 60.0


def _reusable(records: list[Record], now_s: float) -> Figure:
    """Share of the last minute's prompt tokens that were there: sent before, or found anyway."""
    shared: list[float] = []
    prompts: list[int] = []
    for record in records:
        for entry in reversed(record.entries):
            if entry.at_s < now_s - REUSABLE_OVER_S:
                break
            if entry.ended_s is None or not entry.worked:
                continue
            if entry.shared is None or entry.prompt_tokens is None:
                return Missing("not of every prompt in the window is known what it shares")
            known = max(entry.shared.tokens, entry.cached_tokens or 0)
            shared.append(min(known, entry.prompt_tokens))
            prompts.append(entry.prompt_tokens)
    if not prompts:
        return Missing("no prompt of a session in the window")
    return combine(lambda part, whole: part / whole if whole else None, sum(shared), sum(prompts))
