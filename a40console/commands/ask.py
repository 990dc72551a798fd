"""`a40console ask`: one question to the model, answered on standard output."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from math import isnan

import click
import httpx

from a40console import __version__
from a40console.commands.acting import timeout_option
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.number import NumberRange
from a40console.commands.output import note, print_json, printable
from a40console.commands.running import ensure_service
from a40console.commands.serving import serving_engine
from a40console.errors import NotServingError, UsageError
from a40console.model.figures import Missing
from a40console.model.snapshot import EngineInfo
from a40console.service.chat import (
    CONNECT_TIMEOUT_S,
    SILENCE_TIMEOUT_S,
    Answer,
    Piece,
    stream_chat,
)
from a40console.tui.format import count, latency, rate, shown

_HEADERS = {"User-Agent": f"a40console/{__version__}"}


@click.command()
@click.argument("text")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="At most so many.")
@click.option("--temperature", type=NumberRange(0, 2), metavar="T", help="0 repeats itself.")
@timeout_option("Seconds that a start of the engine may take")
@json_option
@click.pass_obj
def command(
    invocation: Invocation,
    *,
    text: str,
    max_tokens: int | None,
    temperature: float | None,
    timeout_s: float | None,
    as_json: bool,
) -> None:
    """Ask the model TEXT (`-`: standard input) through the gateway and print its answer.

    Starts the service, and the default engine, if none runs.
    """
    if temperature is not None and isnan(temperature):
        raise UsageError("The temperature is not a number")
    options = {"max_tokens": max_tokens, "temperature": temperature}
    question = _read_question(text)
    invocation.settings()  # a broken settings file is told before anything starts
    asyncio.run(_ask(invocation, question, options, timeout_s=timeout_s, as_json=as_json))


def _read_question(text: str) -> str:
    if text == "-":
        try:
            text = sys.stdin.buffer.read().decode()
        except UnicodeDecodeError as error:
            raise UsageError("Standard input is not UTF-8 text", evidence=str(error)) from error
    if not text.strip():
        raise UsageError("There is nothing to ask", remedy='Say it: a40console ask "…"')
    return text


async def _ask(
    invocation: Invocation,
    question: str,
    options: dict[str, int | float | None],
    *,
    timeout_s: float | None,
    as_json: bool,
) -> None:
    async with await ensure_service(invocation.paths, quiet=as_json) as client:
        engine = await serving_engine(client, invocation, timeout_s=timeout_s, quiet=as_json)
        hello = await client.hello()
        variables = (await client.environment()).variables
    if hello.gateway_url is None:
        raise NotServingError(
            "The gateway does not listen", remedy="Restart the service: a40console stop, then again"
        )
    # Without the environment's proxies: they know nothing of this machine's loopback.
    timeout = httpx.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    async with httpx.AsyncClient(timeout=timeout, trust_env=False, headers=_HEADERS) as http:
        answer = Answer(model=_model(engine, variables), sent_at_s=time.monotonic())
        body = {
            "model": answer.model,
            "messages": [{"role": "user", "content": question}],
            "stream": True,
            "stream_options": {"include_usage": True},
            **{name: value for name, value in options.items() if value is not None},
        }
        url = f"{hello.gateway_url.rstrip('/')}/v1/chat/completions"
        pieces = stream_chat(http, url, variables.get("OPENAI_API_KEY"), body, answer)
        await _tell(pieces, answer, as_json=as_json)
    _conclude(answer, as_json=as_json, simulated=engine.kind == "sim")


async def _tell(pieces: AsyncIterator[Piece], answer: Answer, *, as_json: bool) -> None:
    """Print the answer as it comes, ended with its line, whole or broken off."""
    try:
        async for piece in pieces:
            if piece.text and not as_json:
                click.echo(printable(piece.text), nl=False)
    finally:
        if answer.text and not answer.text.endswith("\n") and not as_json:
            click.echo()


def _model(engine: EngineInfo, variables: dict[str, str]) -> str:
    if isinstance(engine.served_name, Missing):
        return variables.get("ANTHROPIC_MODEL", "default")
    return engine.served_name


def _conclude(answer: Answer, *, as_json: bool, simulated: bool) -> None:
    if as_json:
        print_json(
            {
                "model": answer.model,
                "simulated": simulated,
                "text": answer.text,
                "thinking": answer.thinking,
                "finish_reason": answer.finish_reason,
                "prompt_tokens": answer.prompt_tokens,
                "generated_tokens": answer.generated_tokens,
                "tokens_per_s": answer.tokens_per_s,
                "ttft_s": answer.ttft_s,
            }
        )
        return
    cut = "   cut at --max-tokens" if answer.finish_reason == "length" else ""
    tokens = f"{shown(answer.generated_tokens, count)} tokens"
    speed = f"{shown(answer.tokens_per_s, rate)} tok/s"
    if simulated:
        note("SIMULATED: no model has said this")
    note(f"{tokens}   {speed}   TTFT {shown(answer.ttft_s, latency)}   {answer.model}{cut}")
