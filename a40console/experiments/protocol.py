"""The five controls of the Messages API: what Claude Code must find at an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a40console.experiments.bench import Bench, Known, Reply, Request
from a40console.experiments.checks import Check, plan_of, result_of
from a40console.experiments.offers import PROTOCOL
from a40console.experiments.protocol_checks import (
    CONTROLS,
    check_calls,
    check_count,
    check_order,
    check_text,
    check_tool,
    no_messages,
)
from a40console.experiments.settled_values import whole
from a40console.model.experiment import Experiment, Value
from a40console.model.run import RunPlan, RunTarget
from a40console.model.run_result import RunResult

ARM = "protocol"
MESSAGES = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
NOT_ASKED = "not asked: the run ended before"

_PROMPT_TOKENS = 200
_COUNTED = frozenset({"model", "messages"})
_TEXT = "Say in one sentence what a lighthouse is for."
_TOOL = {
    "name": "get_weather",
    "description": "The weather in a city now.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The city's name"}},
        "required": ["city"],
    },
}
_ONE_CITY = "What is the weather in Oslo? Use the tool."
_TWO_CITIES = "What is the weather in Oslo and in Lima? Call the tool for both cities at once."


class Protocol:
    """The Messages protocol."""

    offer: Experiment = PROTOCOL

    def __init__(self) -> None:
        self._checks: list[Check] = []

    def plan(self, settled: Mapping[str, Value], known: Known, target: RunTarget) -> RunPlan:
        """Four short answers and one count, whatever the target's own dialect."""
        return plan_of(
            ARM,
            known,
            answers=len(CONTROLS) - 1,
            prompt_tokens=_PROMPT_TOKENS,
            output_tokens=whole(settled, "output_tokens"),
            counts=1,
        )

    async def run(self, bench: Bench) -> RunResult:
        """The controls one after the other.

        Raises:
            RunStoppedError: Where the run is to end.
        """
        self._checks = []
        async with bench.arm(ARM, 0):
            await self._ask(bench)
        return self._concluded("")

    def partial(self, bench: Bench, why: str) -> RunResult:
        """The controls that were asked."""
        return self._concluded(why)

    def _concluded(self, stopped: str) -> RunResult:
        asked = {check.name for check in self._checks}
        rest = [Check(name, None, NOT_ASKED) for name in CONTROLS if name not in asked]
        return result_of("Messages protocol", [*self._checks, *rest], stopped)

    async def _ask(self, bench: Bench) -> None:
        text = await self._send(bench, 0, _body(bench, _TEXT), streamed=False)
        self._checks.append(check_text(text))
        if no_messages(text):
            why = "there is no Messages API here"
            self._checks += [Check(name, None, why) for name in CONTROLS[1:]]
            return
        stream = await self._send(bench, 1, _body(bench, _TEXT))
        self._checks.append(check_order(stream))
        choice = {"type": "tool", "name": _TOOL["name"]}
        forced = _body(bench, _ONE_CITY, tools=[_TOOL], tool_choice=choice)
        self._checks.append(check_tool(await self._send(bench, 2, forced), str(_TOOL["name"])))
        several = _body(bench, _TWO_CITIES, tools=[_TOOL], tool_choice={"type": "auto"})
        self._checks.append(check_calls(await self._send(bench, 3, several), str(_TOOL["name"])))
        counted = await self._count(bench)
        self._checks.append(check_count(counted, text.sample.prompt_tokens))

    async def _send(
        self, bench: Bench, index: int, body: Mapping[str, Any], *, streamed: bool = True
    ) -> Reply:
        await bench.step(ARM, index, len(CONTROLS), CONTROLS[index])
        request = Request(path=MESSAGES, body=body, arm=ARM, index=index, role="probe")
        if streamed:
            return await bench.client.send(request)
        return await bench.client.send_whole(request)

    async def _count(self, bench: Bench) -> Reply:
        """The count of the text control's prompt, by the route that clients ask."""
        index = len(CONTROLS) - 1
        await bench.step(ARM, index, len(CONTROLS), CONTROLS[index])
        asked = {key: value for key, value in _body(bench, _TEXT).items() if key in _COUNTED}
        request = Request(path=COUNT, body=asked, arm=ARM, index=index, role="probe")
        return await bench.client.send_whole(request)


def _body(bench: Bench, text: str, **more: Any) -> dict[str, Any]:
    return {
        "model": bench.model,
        "max_tokens": whole(bench.settled, "output_tokens"),
        "temperature": 0,
        "messages": [{"role": "user", "content": text}],
        **more,
    }
