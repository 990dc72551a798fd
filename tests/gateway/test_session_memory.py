"""Ten thousand sessions come and go: what the book keeps of them stays as large as it is."""

from __future__ import annotations

import gc

from a40console.gateway.session_records import KEPT_AGENTS, KEPT_TURNS
from a40console.gateway.sessions import (
    KEPT_BLOCKS,
    KEPT_BLOCKS_A_PROMPT,
    KEPT_SESSIONS,
    LOOKED_AT_BLOCKS,
)
from a40console.model.session import Outline
from tests.gateway.session_clients import HEAD, Answer, Ask, Gateway, block, who


def prompt(number: int, pieces: int) -> Outline:
    """A prompt that nothing else is made of."""
    return (*HEAD, *(block("tool_result", f"{number} {piece}", piece) for piece in range(pieces)))


def kept_objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def test_ten_thousand_sessions_take_what_sixty_four_take() -> None:
    gateway = Gateway()

    def sessions(numbers: range) -> None:
        for number in numbers:
            name = f"session-{number}"
            first = prompt(number, 20)
            gateway.turn(Ask(who(name), first), calls=(("Bash", f"t{number}"),))
            more = (*first, block("tool_use", f"{number}", 30))
            gateway.turn(Ask(who(name), more, tool_answers=(Answer(f"t{number}"),)))

    sessions(range(600))
    before = kept_objects()
    sessions(range(600, 10_000))
    grown = kept_objects() - before

    assert len(gateway.book.records()) == KEPT_SESSIONS
    assert gateway.book.forgotten == 10_000 - KEPT_SESSIONS
    assert grown < 1000


def test_one_session_keeps_so_many_turns_agents_and_pieces_and_no_more() -> None:
    gateway = Gateway()
    for number in range(KEPT_TURNS + 50):
        gateway.turn(Ask(who("long"), prompt(0, 5 + number % 3)))
    for number in range(KEPT_AGENTS + 20):
        gateway.turn(Ask(who("long", f"Explore {number}"), prompt(number, 5)))
    gateway.turn(Ask(who("long"), prompt(1, KEPT_BLOCKS_A_PROMPT + 500)))

    record = gateway.book.find("long")

    assert record is not None
    assert len(record.entries) == KEPT_TURNS
    assert len(record.agents) == KEPT_AGENTS
    assert "main" in record.agents
    assert record.sums().requests == KEPT_TURNS + 50 + KEPT_AGENTS + 20 + 1
    assert max(len(each.outline) for each in record.agents["main"].baselines) == (
        KEPT_BLOCKS_A_PROMPT
    )


def test_prompts_of_old_sessions_are_forgotten_before_memory_grows() -> None:
    gateway = Gateway()
    for number in range(30):
        gateway.turn(Ask(who(f"s{number}"), prompt(number, 4000)))

    records = gateway.book.records()

    assert sum(record.blocks() for record in records) <= KEPT_BLOCKS + LOOKED_AT_BLOCKS + 4100
    assert records[-1].blocks() > 4000
    assert records[0].blocks() == 0
    assert records[0].sums().requests == 1


def test_the_session_that_asks_is_bounded_too_and_keeps_what_is_gone_on_with() -> None:
    gateway = Gateway()
    agents = [f"Explore {number}" for number in range(KEPT_AGENTS - 1)]
    for number in range(3):
        for index, agent in enumerate((*agents, "main")):
            asked = prompt(100 * number + index, 4000)
            gateway.turn(Ask(who("wide", agent), asked), prompt=9000)

    record = gateway.book.find("wide")

    assert record is not None
    assert record.blocks() <= KEPT_BLOCKS + LOOKED_AT_BLOCKS + 4100
    main = record.agents["main"]
    assert len(main.baselines) == 1
    more = (*main.baselines[0].outline, block("user text", "and now", 1))
    live = gateway.ask(Ask(who("wide"), more))
    assert live.shared is not None
    assert live.shared.tokens > 0
    assert len(record.agents) == KEPT_AGENTS
    assert record.sums().requests == 3 * KEPT_AGENTS


def test_a_request_that_ended_keeps_nothing_of_the_prompt_before_it() -> None:
    gateway = Gateway()
    for number in range(40):
        gateway.turn(Ask(who("long"), prompt(7, 100 + number)), prompt=9000)

    record = gateway.book.find("long")

    assert record is not None
    assert [entry.baseline for entry in record.entries] == [None] * 40
