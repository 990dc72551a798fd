"""The questions that show an engine's dialect: each has it count a few tokens, none an answer."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

import aiohttp

from a40console.gateway.answer import tokens
from a40console.gateway.dialect import Counting, Dialect, Route, SystemTurns
from a40console.gateway.upstream import Upstream, request_headers, upstream_url
from a40console.model.own_request import own_request_id

COUNT, TOKENIZE, MODELS = "/v1/messages/count_tokens", "/tokenize", "/v1/models"
PROPS, TEMPLATE, VERSION = "/props", "/apply-template", "/version"
_ASK_S = 10.0
_BUSY = frozenset({408, 425, 429, 502, 503, 504})
_WORDS = 160
_RELEASE = re.compile(r"v?(\d+)\.(\d+)")
_TELLS_STOPS_FROM = (0, 32)
_CLAMPS_FROM = (0, 32)

_HEAD, _LATER = "You answer in one word.", "The time is noon."
_BEFORE = (
    {"role": "user", "content": "Say red."},
    {"role": "assistant", "content": "Red."},
)
_AFTER = {"role": "user", "content": "Say blue."}
_TURN = {"role": "system", "content": _LATER}

_PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAATklEQVR42u3PQQkAAAgEsAt2/TGWEXwLgxVYpn0t"
    "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgKXBTfrAS0KlmeBAAAAAElFTkSu"
    "QmCC"
)
"""A red square of 64 pixels: smaller ones are refused by some models that see."""


Release: TypeAlias = tuple[int, int]


class PassingError(Exception):
    """The engine could not be asked for a reason that may pass."""


@dataclass(frozen=True, slots=True)
class _Said:
    status: int
    body: dict[str, Any]

    def count(self) -> int | None:
        """The tokens of the prompt that was asked about, by either route; None of a refusal."""
        if self.status != 200:
            return None
        counted = tokens(self.body, "input_tokens")
        return tokens(self.body, "count") if counted is None else counted

    def words(self) -> str:
        """What a refusal says, short."""
        error = self.body.get("error")
        message = error.get("message") if isinstance(error, dict) else error
        told = str(message or self.body.get("detail") or "").split("\n")[0]
        return told if len(told) <= _WORDS else told[: _WORDS - 1] + "…"


class Probe:
    """Asks one engine, question after question."""

    def __init__(self, session: aiohttp.ClientSession, upstream: Upstream) -> None:
        self._session = session
        self._upstream = upstream
        self._evidence: list[str] = []
        self._version: object = None

    async def dialect(self) -> Dialect:
        """All answers together.

        Raises:
            PassingError: If the engine cannot be reached, is busy or still loads.
        """
        counted = await self._count([_AFTER])
        native = counted.count() is not None
        route = self._route(counted, native=native)
        counting = await self._counting(counted, route)
        release = await self._release()
        tells_stops = self._tells_stops(route, release, native=native)
        window = await self._window()
        return Dialect(
            route=route,
            system_turns=await self._system_turns(route, native=native),
            images=await self._images(native=native),
            counting=counting,
            served_name=self._upstream.served_name,
            max_model_len=window,
            clamps=release is not None and release >= _CLAMPS_FROM,
            evidence=tuple(self._evidence),
            running_usage=self._upstream.kind in ("vllm", "sim"),
            results_first=self._upstream.kind != "llamacpp",
            schemas=self._upstream.kind != "llamacpp" or self._forced("native"),
            tells_stops=tells_stops,
            budgets=self._upstream.kind == "llamacpp" or self._upstream.reasoning,
        )

    async def _counting(self, counted: _Said, route: Route) -> Counting:
        """Who counts what this route will send: the two may render a conversation differently."""
        native = counted.count()
        by_chat = route == "translated" or native is None
        if by_chat and (await self._tokenize([_AFTER])).count() is not None:
            self._say("its /tokenize counts chat messages")
            return "tokenize"
        if native is None:
            self._say("nothing of it counts a prompt")
            return "none"
        self._say(f"its count_tokens answers, with {native} for a short prompt")
        return "messages"

    def _route(self, counted: _Said, *, native: bool) -> Route:
        asked = self._upstream.messages_route
        if not native:
            refused = f"status {counted.status}"
            if words := counted.words():
                refused += f": {words}"
            self._say(f"it has no Messages API that counts ({refused})")
        if asked != "auto":
            self._say(f"the setting messages_route asks for the {asked} route")
            return asked
        return "native" if native else "translated"

    def _forced(self, route: Route) -> bool:
        return self._upstream.messages_route == route

    async def _release(self) -> Release | None:
        """A vLLM's; None of another engine, or of one that does not tell."""
        if self._upstream.kind != "vllm":
            return None
        self._version = (await self._ask("GET", VERSION)).body.get("version")
        number = _RELEASE.match(self._version) if isinstance(self._version, str) else None
        return None if number is None else (int(number[1]), int(number[2]))

    def _tells_stops(self, route: Route, release: Release | None, *, native: bool) -> bool:
        """Whether its Messages API names the stop sequence that ended an answer.

        vLLM does so from 0.32 on; 0.27 calls it the answer's own end.
        """
        if route == "translated" or not native or self._forced("native"):
            return True
        if self._upstream.kind != "vllm":
            return True
        tells = release is not None and release >= _TELLS_STOPS_FROM
        if not tells:
            named = f"this vLLM, {self._version}," if release else "a vLLM without a version"
            self._say(
                f"{named} does not say which stop sequence ended an answer; requests with stop "
                "sequences are translated"
            )
        return tells

    async def _system_turns(self, route: Route, *, native: bool) -> SystemTurns:
        """Whether a system message after other turns leaves those as they were."""
        if route == "native" and native:
            return await self._native_system_turns()
        return await self._chat_system_turns()

    async def _native_system_turns(self) -> SystemTurns:
        """Counted in its place, without it, and with its words at the head.

        An engine that moves it to the head has as many tokens as one that was given it there: it
        costs the marks of a turn nowhere. Such an engine would read the whole conversation again.
        """
        turns = [*_BEFORE, _TURN, _AFTER]
        kept = await self._count(turns, _HEAD)
        if (there := kept.count()) is None:
            return self._fold(f"a later system message is refused: {kept.words()}")
        without = (await self._count([*_BEFORE, _AFTER], _HEAD)).count()
        heads = (_HEAD + _LATER, f"{_HEAD}\n{_LATER}", f"{_HEAD}\n\n{_LATER}", f"{_HEAD} {_LATER}")
        moved = {(await self._count([*_BEFORE, _AFTER], head)).count() for head in heads}
        if there == without:
            return self._fold("a later system message does not reach the prompt")
        if there in moved:
            return self._fold(
                f"a later system message is moved to the head ({there} tokens in both cases), "
                "which would change every turn before it"
            )
        self._say(f"a later system message keeps its place ({there} tokens, {without} without)")
        return "keep"

    async def _chat_system_turns(self) -> SystemTurns:
        """Seen in the prompt itself, where the engine shows that of chat messages."""
        head = {"role": "system", "content": _HEAD}
        start, _ = await self._prompt([head, *_BEFORE])
        whole, refused = await self._prompt([head, *_BEFORE, _TURN, _AFTER])
        if not start:
            return self._fold("nothing shows where a later system message would go")
        if not whole:
            return self._fold(f"a later system message is refused: {refused}")
        if whole[: len(start)] != start:
            return self._fold("a later system message changes the turns before it")
        self._say("a later system message leaves the prompt before it as it is")
        return "keep"

    async def _prompt(self, messages: list[dict[str, Any]]) -> tuple[list[Any] | str, str]:
        """The prompt that chat messages become, without the answer's beginning; why there is none.

        vLLM shows its tokens, llama.cpp its text.
        """
        shows_text = self._upstream.kind == "llamacpp"
        path, key = (TEMPLATE, "prompt") if shows_text else (TOKENIZE, "tokens")
        body = {"messages": messages, "add_generation_prompt": False}
        said = await self._ask("POST", path, body)
        shown = said.body.get(key) if said.status == 200 else None
        return (shown, "") if isinstance(shown, str | list) else ("", said.words())

    async def _images(self, *, native: bool) -> bool:
        """Whether a picture is accepted."""
        if self._upstream.kind == "llamacpp":
            seen = (await self._ask("GET", PROPS)).body.get("modalities")
            sees = isinstance(seen, dict) and seen.get("vision") is True
        else:
            sees = await self._sees(native=native)
        self._say("it reads images" if sees else "it reads no images")
        return sees

    async def _sees(self, *, native: bool) -> bool:
        """Whether a picture makes a prompt longer; asked where vLLM logs no traceback for it."""
        words = {"type": "text", "text": "What is it?"}
        plain = (await self._tokenize([{"role": "user", "content": [words]}])).count()
        if plain is not None:
            url = f"data:image/png;base64,{_PICTURE}"
            picture: dict[str, Any] = {"type": "image_url", "image_url": {"url": url}}
            shown = (await self._tokenize([{"role": "user", "content": [words, picture]}])).count()
        elif native:
            source = {"type": "base64", "media_type": "image/png", "data": _PICTURE}
            picture = {"type": "image", "source": source}
            plain = (await self._count([{"role": "user", "content": [words]}])).count()
            shown = (await self._count([{"role": "user", "content": [words, picture]}])).count()
        else:
            return False
        return plain is not None and shown is not None and shown > plain

    async def _window(self) -> int | None:
        """Tokens of a request at most: vLLM says it with its models, llama.cpp of each slot."""
        if self._upstream.kind == "llamacpp":
            settings = (await self._ask("GET", PROPS)).body.get("default_generation_settings")
            return tokens(settings, "n_ctx")
        models = (await self._ask("GET", MODELS)).body.get("data")
        entries = (
            [one for one in models if isinstance(one, dict)] if isinstance(models, list) else []
        )
        ours = [one for one in entries if one.get("id") == self._upstream.served_name]
        lengths = [tokens(one, "max_model_len") for one in ours or entries]
        return next((length for length in lengths if length), None)

    async def _count(self, messages: list[dict[str, Any]], system: str | None = None) -> _Said:
        body: dict[str, Any] = {"messages": messages}
        if system is not None:
            body["system"] = system
        return await self._ask("POST", COUNT, body)

    async def _tokenize(self, messages: list[dict[str, Any]]) -> _Said:
        """The tokens of chat messages, with the answer's beginning."""
        return await self._ask("POST", TOKENIZE, {"messages": messages})

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> _Said:
        """One question.

        Raises:
            PassingError: If the engine does not answer it, or says that it cannot now.
        """
        upstream = self._upstream
        data = None
        if body is not None:
            data = json.dumps({"model": upstream.served_name, **body}).encode()
        headers = request_headers(
            (), upstream.endpoint, own_request_id("api"), None if data is None else len(data)
        )
        if data is not None:
            headers["Content-Type"] = "application/json"
        url = upstream_url(upstream.endpoint, path, b"")
        try:
            async with (
                asyncio.timeout(_ASK_S),
                self._session.request(method, url, data=data, headers=headers) as response,
            ):
                text = await response.read()
        except TimeoutError as error:
            raise PassingError(f"{path} did not answer within {_ASK_S:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise PassingError(f"{path}: {str(error) or type(error).__name__}") from error
        if response.status in _BUSY:
            raise PassingError(f"{path} answered with status {response.status}")
        return _Said(response.status, _object(text))

    def _fold(self, why: str) -> SystemTurns:
        self._say(f"{why}; it is folded into its neighbour")
        return "fold"

    def _say(self, seen: str) -> None:
        self._evidence.append(f"{seen[:1].upper()}{seen[1:]}.")


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
