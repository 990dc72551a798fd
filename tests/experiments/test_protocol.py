"""The five controls: what passes, what fails with its evidence, and what cannot be tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from a40console.experiments.bench import Reply, Request
from a40console.experiments.canary_run import Canary
from a40console.experiments.protocol import COUNT, Protocol
from a40console.model.figures import Missing
from a40console.model.run_record import Sample
from tests.experiments.small_engine import Manner, SmallBench

ORDER = (
    "message_start",
    "ping",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
)


def call(city: str, number: int, name: str = "get_weather") -> dict[str, Any]:
    arguments = f'{{"city": "{city}"}}'
    return {"type": "tool_use", "name": name, "id": f"toolu_{number}", "arguments": arguments}


class Endpoint(SmallBench):
    """A bench whose client answers the controls as it is told."""

    def __init__(self, **answers: dict[str, Any]) -> None:
        super().__init__(Protocol.offer, Manner())
        honest: dict[str, dict[str, Any]] = {
            "text": {"text": "It warns ships.", "stop_reason": "end_turn"},
            "stream": {"text": "It warns ships.", "stop_reason": "end_turn", "events": ORDER},
            "tool": {"blocks": (call("Oslo", 1),), "stop_reason": "tool_use"},
            "auto": {"blocks": (call("Oslo", 1), call("Lima", 2)), "stop_reason": "tool_use"},
            "count": {},
        }
        self.answers = honest | answers

    async def send(self, request: Request) -> Reply:
        choice = request.body.get("tool_choice", {}).get("type", "stream")
        return self._told(request, self.answers[choice])

    async def send_whole(self, request: Request) -> Reply:
        return self._told(request, self.answers["count" if request.path == COUNT else "text"])

    def _told(self, request: Request, answer: dict[str, Any]) -> Reply:
        self.requests.append(request)
        told = {"prompt_tokens": 21, "generated_tokens": 9, "error": "", **answer}
        sample = Sample(
            arm=request.arm,
            repeat=0,
            index=request.index,
            warm_up=False,
            due_s=0.0,
            sent_s=0.0,
            ttft_s=0.1,
            total_s=0.2,
            prompt_tokens=told.pop("prompt_tokens"),
            generated_tokens=told.pop("generated_tokens"),
            error=told.pop("error"),
        )
        return Reply(sample=sample, **{"status": 200, **told})


async def outcome(**answers: dict[str, Any]) -> tuple[str, dict[str, tuple[str, str]]]:
    """The verdict, and each control's result with its evidence."""
    result = await Protocol().run(Endpoint(**answers))
    rows: Sequence[tuple[Any, ...]] = result.tables[0].rows
    return result.verdict.kind, {row[0]: (row[1], row[2]) for row in rows}


async def test_an_endpoint_that_keeps_to_it_passes_all_five() -> None:
    endpoint = Endpoint()
    result = await Protocol().run(endpoint)

    assert result.verdict.kind == "passed"
    assert result.headline == "Messages protocol: 5 of 5 passed"
    assert [each.path for each in endpoint.requests] == ["/v1/messages"] * 4 + [COUNT]
    assert "max_tokens" not in endpoint.requests[-1].body


@pytest.mark.parametrize(
    ("control", "answers", "evidence"),
    [
        ("text", {"text": {"text": "", "stop_reason": "end_turn"}}, "no text"),
        ("text", {"text": {"text": "It.", "stop_reason": "length"}}, "'length'"),
        (
            "text",
            {"text": {"text": "It.", "stop_reason": "end_turn", "prompt_tokens": Missing("no")}},
            "usage tells no input tokens",
        ),
        (
            "text",
            {"text": {"text": "It.", "stop_reason": "end_turn", "generated_tokens": Missing("no")}},
            "usage tells no output tokens",
        ),
        ("stream order", {"stream": {"events": ORDER[:-1]}}, "does not end"),
        ("stream order", {"stream": {"events": ORDER[1:]}}, "does not begin"),
        ("stream order", {"stream": {"events": (*ORDER[:4], *ORDER[5:])}}, "does not stop"),
        (
            "stream order",
            {"stream": {"events": (ORDER[0], *ORDER[3:])}},
            "content_block_delta stands where",
        ),
        ("stream order", {"stream": {"error": "the stream was cut"}}, "cut"),
        ("tool call", {"tool": {"error": "HTTP 400: requires --tool-call-parser"}}, "parser"),
        ("tool call", {"tool": {"blocks": (call("Oslo", 1),), "stop_reason": "end_turn"}}, "'end"),
        (
            "tool call",
            {"tool": {"blocks": (call("Oslo", 1, "get_time"),), "stop_reason": "tool_use"}},
            "'get_time'",
        ),
        (
            "tool call",
            {
                "tool": {
                    "blocks": ({**call("Oslo", 1), "arguments": '{"city": "Os'},),
                    "stop_reason": "tool_use",
                }
            },
            "no JSON",
        ),
        (
            "parallel calls",
            {"auto": {"blocks": (call("Oslo", 1), call("Lima", 1)), "stop_reason": "tool_use"}},
            "same id",
        ),
        ("count_tokens", {"count": {"prompt_tokens": 48}}, "48, and the same prompt's usage 21"),
        ("count_tokens", {"count": {"error": "HTTP 404: Not Found"}}, "404"),
    ],
)
async def test_a_fault_fails_its_control_with_what_was_seen(
    control: str, answers: dict[str, dict[str, Any]], evidence: str
) -> None:
    verdict, rows = await outcome(**answers)

    assert verdict == "failed"
    assert rows[control][0] == "failed"
    assert evidence in rows[control][1]


@pytest.mark.parametrize(
    ("control", "answers", "evidence"),
    [
        ("tool call", {"tool": {"text": "I cannot.", "stop_reason": "end_turn"}}, "in words"),
        ("tool call", {"tool": {"text": "Hm", "stop_reason": "max_tokens"}}, "limit of tokens"),
        (
            "parallel calls",
            {"auto": {"blocks": (call("Oslo", 1),), "stop_reason": "tool_use"}},
            "made one call",
        ),
    ],
)
async def test_what_the_model_does_not_do_cannot_be_tried(
    control: str, answers: dict[str, dict[str, Any]], evidence: str
) -> None:
    verdict, rows = await outcome(**answers)

    assert verdict == "none", "a control that was never tried has not passed"
    assert rows[control][0] == "skipped"
    assert evidence in rows[control][1]


async def test_where_there_is_no_messages_api_nothing_else_is_asked() -> None:
    endpoint = Endpoint(text={"error": "HTTP 501: not supported", "status": 501})
    result = await Protocol().run(endpoint)

    assert result.verdict.kind == "failed"
    assert len(endpoint.requests) == 1
    assert [row[1] for row in result.tables[0].rows] == ["failed"] + ["skipped"] * 4


async def test_several_blocks_are_in_order_too() -> None:
    block = ("content_block_start", "content_block_delta", "content_block_stop")
    events = ("message_start", *block, *block, "ping", "message_delta", "message_stop")
    verdict, rows = await outcome(stream={"events": events})

    assert verdict == "passed"
    assert rows["stream order"][0] == "passed"


def test_a_run_that_ended_early_tells_what_was_not_asked() -> None:
    result = Protocol().partial(Endpoint(), "cancelled")

    assert result.verdict.kind == "none"
    assert {row[1] for row in result.tables[0].rows} == {"skipped"}


async def test_the_canary_is_told_as_it_was_found() -> None:
    result = await Canary().run(SmallBench(Canary.offer))

    assert result.headline == "Canary: 1 of 2 passed, 1 skipped"
    assert result.verdict.kind == "none"
    assert result.verdict.text == "Nothing failed, but not everything could be tried: tool call."
    assert result.tables[0].columns[0].title == "check"
