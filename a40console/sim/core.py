"""The simulated engine: schedules passes as vLLM does, and knows when each one ends. Pure.

It has no clock of its own: whoever drives it says what time it is, and gets what happened until
then. The same orders at the same times with the same seed bring the same tokens.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from a40console.sim.blocks import BlockPool, block_keys
from a40console.sim.counters import Statistics
from a40console.sim.requests import FinishReason, Order, Output, Request
from a40console.sim.sheets import DEFAULT_BATCHED_TOKENS, DRAFTED, ModelSheet, survival
from a40console.sim.timing import Prefill, Work, pass_s, read_bytes

ENDED_KEPT = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the engine was started."""

    max_model_len: int
    max_running: int = 64
    batched_tokens: int = DEFAULT_BATCHED_TOKENS
    depth: int = 0
    """Draft tokens a pass; 0 without speculation."""

    prefix_caching: bool = True
    eager: bool = False
    kv_blocks: int | None = None
    speed: float = 1.0
    """So many times faster than the model."""

    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a pass does for one request: tokens of its prompt, or one token and its drafts."""

    request: Request
    tokens: int
    decoding: bool


@dataclass(frozen=True, slots=True)
class _Pass:
    ends_s: float
    pieces: tuple[_Piece, ...]
    work: Work


class Core:
    """Requests, blocks and passes of one engine."""

    def __init__(self, sheet: ModelSheet, options: Options) -> None:
        self.sheet = sheet
        self.options = options
        self.statistics = Statistics()
        blocks = options.kv_blocks or sheet.kv_capacity_tokens // sheet.block_tokens
        self.pool = BlockPool(blocks, sheet.block_tokens, caching=options.prefix_caching)
        self.running: list[Request] = []
        self.waiting: deque[Request] = deque()
        self.arriving: list[Request] = []
        """Not tokenised yet."""

        self.ended: deque[tuple[int, Request]] = deque(maxlen=ENDED_KEPT)
        """With a number that grows by one with each."""

        self.frozen = False
        """Nothing happens any more, as in an engine that hangs."""

        self.depth = options.depth
        """Draft tokens of the passes to come; no deeper than it was started with."""

        self.paused = False
        """Nothing more is scheduled."""

        self.sleep_level = 0
        """0 is awake; 1 has the weights in the host's memory, 2 nowhere."""

        self._pass: _Pass | None = None
        self._ended = 0

    # --- What the driver does ---------------------------------------------------------------

    def submit(self, order: Order, now_s: float) -> list[Output]:
        """Take an order in; what happened before it.

        Raises:
            ValueError: If it could never be held by the cache as a whole.
        """
        longest = len(order.prompt) + order.max_tokens + self.options.depth + 1
        if -(-longest // self.pool.block_tokens) > self.pool.size:
            raise ValueError(f"{longest} tokens do not fit the KV cache")
        happened = self.advance(now_s)
        admission_s = self.sheet.admission_s * len(order.prompt) / self.options.speed
        request = Request.of(order, now_s, now_s + admission_s, self.options.seed)
        self.arriving.append(request)
        self.arriving.sort(key=lambda each: each.ready_s)
        self.statistics.started += 1
        return happened

    def abort(self, request_id: str, now_s: float) -> list[Output]:
        """End a request whose client has left; unknown ones are no matter."""
        happened = self.advance(now_s)
        request = self.find(request_id)
        if request is not None:
            self._close(request, "abort", now_s)
        return happened

    def find(self, request_id: str) -> Request | None:
        """A live request."""
        live = self.live()
        return next((each for each in live if each.order.request_id == request_id), None)

    def live(self) -> list[Request]:
        """Every request that has not ended, oldest first."""
        every = [*self.running, *self.waiting, *self.arriving]
        return sorted(every, key=lambda request: request.arrived_s)

    def next_event_s(self) -> float | None:
        """When something happens next; None while nothing will."""
        if self.frozen:
            return None
        times = [self._pass.ends_s] if self._pass else []
        if self.arriving and self._pass is None and not self.paused:
            times.append(self.arriving[0].ready_s)
        return min(times, default=None)

    def advance(self, now_s: float) -> list[Output]:
        """Let time pass; every token that came out meanwhile, in order."""
        happened: list[Output] = []
        while (event_s := self.next_event_s()) is not None and event_s <= now_s:
            if self._pass is not None:
                happened += self._finish(self._pass)
            self._begin(event_s)
        return happened

    def resume(self, now_s: float) -> None:
        """Schedule again after a pause."""
        self.paused = False
        if self._pass is None:
            self._begin(now_s)

    def busy_s(self, now_s: float) -> float:
        """Seconds of passes since it began, of the present one only what is over."""
        left_s = max(0.0, self._pass.ends_s - now_s) if self._pass else 0.0
        return self.statistics.busy_s - left_s

    # --- One pass ---------------------------------------------------------------------------

    def _begin(self, at_s: float) -> None:
        """Plan the next pass, if there is anything to do."""
        if self.paused:
            self._pass = None
            return
        while self.arriving and self.arriving[0].ready_s <= at_s:
            self.waiting.append(self.arriving.pop(0))
        pieces = self._schedule(at_s)
        if not pieces:
            self._pass = None
            return
        work = Work(
            contexts=[len(piece.request.tokens) for piece in pieces if piece.decoding],
            prefills=[
                Prefill(tokens=piece.tokens, context_tokens=piece.request.computed)
                for piece in pieces
                if not piece.decoding
            ],
            # Where drafts turn CUDA graphs off, an engine started with them stays without.
            speculating=self.depth > 0 or (self.options.depth > 0 and self.sheet.drafts is None),
            depth=self.depth,
            batched_tokens=self.options.batched_tokens,
            eager=self.options.eager,
        )
        took_s = pass_s(self.sheet, work) / self.options.speed
        self._pass = _Pass(at_s + took_s, tuple(pieces), work)
        self.statistics.busy_s += took_s

    def _schedule(self, at_s: float) -> list[_Piece]:
        budget = self.options.batched_tokens
        pieces: list[_Piece] = []
        preempted = self.statistics.preemptions
        for request in list(self.running):
            if request.table is None:
                continue  # put back by one before it
            piece = self._piece(request, budget)
            if piece is not None:
                pieces.append(piece)
                budget -= piece.tokens
        if self.statistics.preemptions > preempted:
            return pieces  # what was just put back would only come and go
        while budget > 0 and self.waiting and len(self.running) < self.options.max_running:
            if not self._admit(self.waiting[0], at_s):
                break
            request = self.waiting.popleft()
            self.running.append(request)
            tokens = min(budget, len(request.tokens) - request.computed)
            pieces.append(_Piece(request, tokens, decoding=False))
            budget -= tokens
        return pieces

    def _piece(self, request: Request, budget: int) -> _Piece | None:
        """What the next pass does for a running request; None for nothing."""
        if not request.decoding:
            tokens = min(budget, len(request.tokens) - request.computed)
            return _Piece(request, tokens, decoding=False) if tokens > 0 else None
        wanted = 1 + self.depth
        if budget < wanted or request.table is None:
            return None
        while not self.pool.extend(request.table, len(request.tokens) + wanted):
            victim = self.running[-1]
            self._preempt(victim)
            if victim is request:
                return None
        return _Piece(request, wanted, decoding=True)

    def _admit(self, request: Request, at_s: float) -> bool:
        """Give a waiting request its blocks; whether there was room.

        One token at least is computed, or nothing would come out.
        """
        size = self.pool.block_tokens
        request.keys = block_keys(request.tokens, size, known=request.keys)
        hits = self.pool.hits(request.keys[: (len(request.tokens) - 1) // size])
        blocks = -(-(len(request.tokens) + 1) // size)
        request.table = self.pool.admit(request.keys, hits, blocks - hits)
        if request.table is None:
            return False
        request.computed = hits * size
        if request.cached is None:
            self._count_prompt(request, hits * size, at_s)
        return True

    def _count_prompt(self, request: Request, cached: int, at_s: float) -> None:
        request.cached, request.scheduled_s = cached, at_s
        counted = self.statistics
        if self.options.prefix_caching:
            counted.queried_tokens += len(request.tokens)
            counted.hit_tokens += cached
        counted.queue_s.add(at_s - request.arrived_s)

    def _preempt(self, request: Request) -> None:
        """Take a request's blocks; it computes them again, as far as nobody kept them."""
        if request.table is not None:
            self.pool.release(request.table)
        request.table, request.computed = None, 0
        request.preemptions += 1
        self.statistics.preemptions += 1
        self.running.remove(request)
        self.waiting.appendleft(request)

    # --- Its end ----------------------------------------------------------------------------

    def _finish(self, done: _Pass) -> list[Output]:
        self._pass = None
        counted, emitted = self.statistics, 0
        outputs: list[Output] = []
        for piece in done.pieces:
            request = piece.request
            if request.table is None or request.finish_reason is not None:
                continue  # aborted while the pass ran
            output = self._settle(piece, done.work.depth, done.ends_s)
            if output is not None:
                outputs.append(output)
                emitted += len(output.tokens)
        counted.passes += 1
        counted.prefill_only_passes += not done.work.contexts
        counted.pass_tokens.add(emitted + sum(piece.tokens for piece in done.work.prefills))
        counted.read_bytes += read_bytes(self.sheet, done.work)
        return outputs

    def _settle(self, piece: _Piece, depth: int, at_s: float) -> Output | None:
        """What a pass did for one request; None while its prompt is not through."""
        request = piece.request
        if piece.decoding:
            return self._emit(request, min(self._drawn(request, depth), request.left), at_s)
        request.computed += piece.tokens
        self._name_blocks(request)
        if request.computed < len(request.tokens):
            return None
        if request.generated == 0:
            self._prompt_through(request)
        return self._emit(request, 1, at_s)

    def _prompt_through(self, request: Request) -> None:
        prompt, cached = len(request.order.prompt), request.cached or 0
        self.statistics.prompt_tokens += prompt
        self.statistics.cached_tokens += cached
        self.statistics.computed_prompt_tokens += prompt - cached

    def _drawn(self, request: Request, depth: int) -> int:
        """Tokens that a pass yields: one, and the draft's as far as they are right."""
        if not depth or request.dice.random() >= DRAFTED[request.order.regime]:
            return 1
        mark = request.dice.random()
        accepted = sum(1 for share in survival(request.order.regime, depth) if mark < share)
        self.statistics.drafted(depth, accepted)
        return 1 + accepted

    def _emit(self, request: Request, count: int, at_s: float) -> Output:
        before_s, counted = request.last_token_s, self.statistics
        request.computed = len(request.tokens)
        words = request.write(count, at_s)
        request.computed = len(request.tokens) - 1
        counted.generated_tokens += count
        if before_s is None:
            counted.first_token_s.add(at_s - request.arrived_s)
        else:
            counted.between_tokens_s.add(at_s - before_s)
        self._name_blocks(request)
        output = Output(request_id=request.order.request_id, at_s=at_s, tokens=words)
        reason = self._end_of(request)
        if reason is None:
            return output
        self._close(request, reason, at_s)
        return replace(output, finish_reason=reason)

    def _end_of(self, request: Request) -> FinishReason | None:
        if request.left <= 0:
            return request.natural_end
        return "length" if len(request.tokens) >= self.options.max_model_len else None

    def _name_blocks(self, request: Request) -> None:
        """Blocks whose every token is computed are found by others from now on."""
        if request.table is None:
            return
        size = self.pool.block_tokens
        whole = request.computed // size
        if whole > len(request.keys):
            request.keys = block_keys(request.tokens[: whole * size], size, known=request.keys)
        self.pool.name(request.table, request.keys[:whole])

    def _close(self, request: Request, reason: FinishReason, at_s: float) -> None:
        for places in (self.running, self.waiting, self.arriving):
            if request in places:
                places.remove(request)
        if request.table is not None:
            self.pool.release(request.table)
            request.table = None
        request.finish_reason, request.ended_s = reason, at_s
        self._ended += 1
        self.ended.append((self._ended, request))
        if reason == "abort":
            self.statistics.aborted += 1
        else:
            self._count_end(request, reason, at_s)

    def _count_end(self, request: Request, reason: str, at_s: float) -> None:
        """VLLM counts no aborts, neither here nor in its histograms."""
        counted = self.statistics
        counted.finished += 1
        counted.ended[reason] = counted.ended.get(reason, 0) + 1
        counted.whole_s.add(at_s - request.arrived_s)
        counted.request_prompt_tokens.add(len(request.order.prompt))
        counted.request_generated_tokens.add(request.generated)
        first_s, scheduled_s = request.first_token_s, request.scheduled_s
        if first_s is None or scheduled_s is None:
            return
        counted.prefill_s.add(first_s - scheduled_s)
        counted.decode_s.add(at_s - first_s)
        if request.generated > 1:
            counted.per_token_s.add((at_s - first_s) / (request.generated - 1))
