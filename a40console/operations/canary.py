"""What an engine must stand before clients reach it: code, a tool's call, a prompt asked twice."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from a40console.model.profile import Profile
from a40console.operations.asking import Answer, Route
from a40console.operations.damage import broken_code, damage

Verdict = Literal["passed", "failed", "skipped"]

_PASSED: dict[Verdict, bool | None] = {"passed": True, "failed": False, "skipped": None}

CODE_TOKENS = 64
TOOL_TOKENS = 80
ATTACHED_TOKENS = 16
PROMPT_LINES = 44
CHARS_PER_TOKEN = 3
"""Of code, at the least: a prompt of so many characters has no more tokens."""

_FUNCTION = """\
def scaled_{n}(values: list[float], factor: float = {n}.5) -> list[float]:
    return [value * factor for value in values if value > {n}]


"""
_NO_ROUTE = (404, 405, 501)
_TOOL = "open_file"
_ARGUMENTS = {"path": "src/parser.py", "line": 42}


class Ask(Protocol):
    """Puts a request to the engine, past the gateway."""

    async def __call__(self, route: Route, body: Mapping[str, Any]) -> Answer:
        """The answer; whatever goes wrong is in it."""

    async def block_tokens(self) -> int | None:
        """Tokens of a block of the prefix cache; None where it is not known."""


@dataclass(frozen=True, slots=True)
class CanaryCheck:
    """One thing that was tried."""

    name: str
    passed: bool | None
    """None where it was skipped."""

    evidence: str
    """What was seen, or why it was skipped."""

    @property
    def verdict(self) -> Verdict:
        """The outcome in one word."""
        return "skipped" if self.passed is None else "passed" if self.passed else "failed"


@dataclass(frozen=True, slots=True)
class CanaryReport:
    """Whether the engine may be let to clients, by what was tried."""

    passed: bool
    """No check failed; one that was skipped says why."""

    checks: tuple[CanaryCheck, ...]
    seconds: float

    def describe(self) -> str:
        """Each check with its verdict and evidence."""
        return "; ".join(f"{check.name} {check.verdict}: {check.evidence}" for check in self.checks)


async def run_canary(ask: Ask, profile: Profile) -> CanaryReport:
    """Try an engine that says it serves; takes about a second where it is well."""
    began_s = time.monotonic()
    if profile.kind == "attached":
        check = await _answer(ask, profile)
        return CanaryReport(check.passed is True, (check,), round(time.monotonic() - began_s, 3))
    prompt = _code(profile)
    (first, code), tool = await asyncio.gather(
        _complete(ask, profile, prompt), _call_tool(ask, profile)
    )
    cache = await _ask_again(ask, profile, prompt, first)
    checks = (code, tool, cache)
    passed = all(check.passed is not False for check in checks)
    return CanaryReport(passed, checks, round(time.monotonic() - began_s, 3))


async def _answer(ask: Ask, profile: Profile) -> CanaryCheck:
    """One short answer and no more: an endpoint that is paid by the token is not tried further."""
    question = {"role": "user", "content": "Say ok."}
    answer = await ask("chat/completions", _body(profile, ATTACHED_TOKENS, messages=[question]))
    if answer.error:
        return CanaryCheck("answer", False, answer.error)
    return CanaryCheck("answer", True, f"{answer.generated_tokens or 'some'} tokens")


def _code(profile: Profile) -> str:
    """Code to go on with, of some blocks of a prefix cache, and half the context at the most."""
    longest = CHARS_PER_TOKEN * (profile.max_model_len or 1_000_000) // 2
    functions = [_FUNCTION.format(n=number) for number in range(1, PROMPT_LINES // 4 + 1)]
    while len(functions) > 1 and sum(map(len, functions)) > longest:
        functions.pop()
    return "".join(functions) + f"def scaled_{len(functions) + 1}(values: list[float]"


async def _complete(ask: Ask, profile: Profile, prompt: str) -> tuple[Answer, CanaryCheck]:
    answer = await ask("completions", _body(profile, CODE_TOKENS, prompt=prompt))
    if answer.status in _NO_ROUTE:
        told = f"the engine takes no completions: {answer.error}"
        return answer, CanaryCheck("completion", None, told)
    lead = prompt.rpartition("\n")[2]
    told = answer.error or damage(answer.text) or broken_code(answer.text, lead)
    if told:
        return answer, CanaryCheck("completion", False, told)
    count = answer.generated_tokens
    written = f"{count} tokens" if count is not None else f"{len(answer.text)} characters"
    line = " ".join(answer.text.split())[:60]
    return answer, CanaryCheck("completion", True, f"{written} of code: {line}")


async def _call_tool(ask: Ask, profile: Profile) -> CanaryCheck:
    """One call whose arguments can only be what we know, in pieces as a client gets it."""
    if profile.tool_call_parser is None:
        return CanaryCheck("tool call", None, "the profile has no tool parser")
    properties = {
        "path": {"type": "string", "enum": [_ARGUMENTS["path"]]},
        "line": {"type": "integer", "enum": [_ARGUMENTS["line"]]},
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    function = {"name": _TOOL, "description": "Open a file at a line.", "parameters": schema}
    told = f"Open src/parser.py at line 42: {json.dumps(_ARGUMENTS)}"  # a weak model copies it
    question = {"role": "user", "content": told}
    body = _body(profile, TOOL_TOKENS, messages=[question])
    body["tools"] = [{"type": "function", "function": function}]
    body["tool_choice"] = {"type": "function", "function": {"name": _TOOL}}
    return _called(await ask("chat/completions", body))


def _called(answer: Answer) -> CanaryCheck:
    def check(verdict: Verdict, evidence: str) -> CanaryCheck:
        return CanaryCheck("tool call", _PASSED[verdict], evidence)

    if 400 <= answer.status < 500:
        return check("skipped", f"the engine takes no forced call: {answer.error}")
    if answer.error:
        return check("failed", answer.error)
    if answer.finish_reason == "length":
        return check("skipped", f"not whole after {TOOL_TOKENS} tokens")
    if not answer.tool:
        return check("skipped", "the model answered in words")
    try:
        given = json.loads(answer.tool_arguments)
    except ValueError as error:
        return check("failed", f"{answer.tool}({answer.tool_arguments[:80]}): {error}")
    if answer.tool != _TOOL or not isinstance(given, dict):
        return check("failed", f"it called {answer.tool}({answer.tool_arguments[:80]})")
    return check("passed", f"{_TOOL}({answer.tool_arguments[:80]})")


async def _ask_again(ask: Ask, profile: Profile, prompt: str, first: Answer) -> CanaryCheck:
    """The same prompt once more: its whole blocks must come out of the cache."""

    def check(verdict: Verdict, evidence: str) -> CanaryCheck:
        return CanaryCheck("prefix cache", _PASSED[verdict], evidence)

    if profile.prefix_caching is False:
        return check("skipped", "prefix caching is off")
    if first.error:
        return check("skipped", "the first asking failed")
    again = await ask("completions", _body(profile, 1, prompt=prompt))
    if again.error:
        return check("failed", again.error)
    return await _cached(ask, profile, again)


async def _cached(ask: Ask, profile: Profile, again: Answer) -> CanaryCheck:
    """What the second asking says of the cache."""

    def check(verdict: Verdict, evidence: str) -> CanaryCheck:
        return CanaryCheck("prefix cache", _PASSED[verdict], evidence)

    cached, whole = again.cached_tokens, again.prompt_tokens
    if cached is None:
        return check("skipped", "the engine does not say what it had cached")
    told = f"{cached} of {whole} tokens at the second asking"
    if cached > 0:
        return check("passed", told)
    if profile.prefix_caching is None:
        return check("skipped", f"{told}; the profile does not ask for it")
    block = await ask.block_tokens()
    if block is None or whole is None or whole < 2 * block:
        return check("skipped", f"{told}: too few for a block of {block or 'unknown size'}")
    return check("failed", f"{told}, with blocks of {block}")


def _body(profile: Profile, max_tokens: int, **asked: Any) -> dict[str, Any]:
    return {
        "model": profile.public_name,
        "max_tokens": max_tokens,
        "temperature": 0,
        **asked,
    }
