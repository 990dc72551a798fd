"""What a client must set to use the gateway: address, token, model, and the room that it has. Pure.

The variables of Claude Code are those of its documentation for gateways; each is here because a
client without it was seen to do worse (README, "Claude Code").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from a40console.gateway.client_window import BUFFER_TOKENS, free_tokens
from a40console.model.control import ClientAddress, ClientEnvironment
from a40console.model.figures import Figure, Missing, number

DEFAULT_OUTPUT_TOKENS = 32_000
"""What Claude Code asks for of a model that it does not know."""

SHORTEST_OUTPUT_TOKENS = 256
OUTPUT_SHARE = 4
"""A quarter of the window is left for the answer."""

LEAST_OUTPUT_TOKENS = 2048
"""An answer is not made shorter than this for the sake of a later compaction."""

WORK_TOKENS = 2000
"""What a session is to have beside the client's own prompt before it compacts."""

PROMPT_TOKENS = 15_000
"""Claude Code's own system prompt and tools, before the first word of its user (12 to 15 thousand
by tokenizer)."""

BARE_PROMPT_TOKENS = 1000
"""The same with `claude --bare`."""

ROOMY_TOKENS = (BUFFER_TOKENS + PROMPT_TOKENS + WORK_TOKENS) * OUTPUT_SHARE // (OUTPUT_SHARE - 1)
"""From here on a quarter of the window for the answer leaves the prompt and the work their room."""

_PROXY_CUTS = (
    "the proxy cuts what is silent for 100 s: streams are kept alive, an answer that is not "
    "streamed and takes longer is lost"
)
_IN_THE_CLEAR = "plain HTTP: token and prompts can be read on the way; the port changes at a reset"
_CLOSED = (
    'the gateway listens on loopback alone; with [gateway] host = "0.0.0.0" it is open, and '
    "demands its token"
)


def client_environment(
    *,
    url: str,
    listens_on: str,
    token: str,
    served_name: str | None,
    window_tokens: Figure,
    environment: Mapping[str, str],
) -> ClientEnvironment:
    """All that a client needs to know.

    Args:
        url: The gateway as this machine reaches it.
        listens_on: The address that it is bound to.
        token: What clients send.
        served_name: The model; None where no engine runs.
        window_tokens: The engine's `max_model_len`.
        environment: The service's own; a rented pod names its outer addresses in it.
    """
    window = number(window_tokens)
    output = Missing("the window is not known") if window is None else output_limit(int(window))
    variables = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": token}
    if served_name is not None:
        variables["ANTHROPIC_MODEL"] = served_name
    if window is not None:
        variables |= _window(int(window))
    variables |= _BEHAVIOUR
    if served_name is not None:
        variables |= {f"ANTHROPIC_DEFAULT_{kind}_MODEL": served_name for kind in _KINDS}
    variables |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": token}
    if served_name is not None:
        variables["OPENAI_MODEL"] = served_name
    return ClientEnvironment(
        variables=variables,
        addresses=tuple(_addresses(url, listens_on, environment)),
        window_tokens=window_tokens,
        output_tokens=output,
        advice=tuple(_advice(window, served_name)),
    )


def _window(window_tokens: int) -> dict[str, str]:
    """The room that there is; a window that the client would refuse by itself is not told it."""
    output = output_limit(window_tokens)
    told = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(output)}
    if compacts_at(window_tokens, output) == 0:
        return told
    return {"CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(window_tokens), **told}


def output_limit(window_tokens: int) -> int:
    """The longest answer to ask for in a window of so many tokens."""
    share = window_tokens // OUTPUT_SHARE
    limit = max(min(share, DEFAULT_OUTPUT_TOKENS), min(SHORTEST_OUTPUT_TOKENS, window_tokens))
    if compacts_at(window_tokens, limit) >= PROMPT_TOKENS + WORK_TOKENS:
        return limit
    # It keeps its answer's length free: a shorter one lets it compact later than at every turn.
    room = window_tokens - BUFFER_TOKENS - PROMPT_TOKENS - WORK_TOKENS
    shorter = min(limit, max(room, LEAST_OUTPUT_TOKENS))
    return shorter if compacts_at(window_tokens, shorter) >= PROMPT_TOKENS else limit


def compacts_at(window_tokens: int, output_tokens: int) -> int:
    """The context at which Claude Code compacts in such a window; it may be none at all."""
    return max(0, window_tokens - free_tokens(output_tokens))


_BEHAVIOUR = {
    # Its billing line differs from session to session, and breaks the prefix cache.
    "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # Names sub-agents and how long tools ran, in headers.
    "CLAUDE_CODE_GATEWAY_HINT_HEADERS": "1",
    # A repeat without a stream would run a tool twice.
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
}


_KINDS = ("HAIKU", "SONNET", "OPUS")
"""Every name that the client has for models: one model answers to all."""


def _advice(window_tokens: float | None, served_name: str | None) -> Iterator[str]:
    if served_name is None:
        yield "No engine runs: the model's name and window are not known yet."
    yield (
        "Start it with: claude --permission-mode acceptEdits (or default, plan). Auto mode asks "
        "for a classifier of risky commands, which no engine here has."
    )
    if window_tokens is not None:
        yield from _about_window(int(window_tokens))
    if served_name is not None and served_name.startswith("claude-"):
        yield (
            f"The model is called {served_name}: of names that begin with claude- the client "
            "believes to know the window. Set served_name in the profile."
        )


def _about_window(window_tokens: int) -> Iterator[str]:
    """Where the client's own prompt does not fit, or is all that fits before it compacts."""
    output = output_limit(window_tokens)
    at = compacts_at(window_tokens, output)
    if window_tokens < PROMPT_TOKENS + SHORTEST_OUTPUT_TOKENS:
        fits = window_tokens >= BARE_PROMPT_TOKENS + SHORTEST_OUTPUT_TOKENS
        bare = "claude --bare needs about 1,000" if fits else "even claude --bare does not fit"
        yield (
            f"The window of {window_tokens:,} tokens cannot hold Claude Code's own prompt of "
            f"about {PROMPT_TOKENS:,}; {bare}. The client is not told this window: it keeps "
            f"{free_tokens(output):,} tokens free, and would refuse every prompt by itself."
        )
    elif at < PROMPT_TOKENS:
        yield (
            f"In a window of {window_tokens:,} tokens Claude Code compacts at ≈ {at:,}, and its "
            f"own prompt has about {PROMPT_TOKENS:,}: it would compact at every turn. Give the "
            f"profile a max_model_len of {ROOMY_TOKENS:,} or more, or use claude --bare."
        )
    elif window_tokens < ROOMY_TOKENS:
        yield (
            f"The window of {window_tokens:,} tokens is small for Claude Code: answers are kept "
            f"to {output:,} tokens, so that it compacts at ≈ {at:,} and not at every turn. From "
            f"{ROOMY_TOKENS:,} on a quarter is left to the answer."
        )


def _addresses(
    url: str, listens_on: str, environment: Mapping[str, str]
) -> Iterator[ClientAddress]:
    bound = ip_address(listens_on)
    port = urlsplit(url).port
    closed = _CLOSED if bound.is_loopback else ""
    if bound.is_loopback or bound.is_unspecified:
        yield ClientAddress(kind="loopback", url=url, text="from this machine")
        yield _tunnel(url, environment)
    else:
        yield ClientAddress(kind="network", url=url, text="from this machine's network")
    ip, outer = environment.get("RUNPOD_PUBLIC_IP"), environment.get(f"RUNPOD_TCP_PORT_{port}")
    if ip and outer:
        yield ClientAddress(
            kind="tcp",
            url=f"http://{ip}:{outer}",
            text="from the internet, by the pod's TCP port",
            limit=_IN_THE_CLEAR,
            refused=closed,
        )
    if pod := environment.get("RUNPOD_POD_ID"):
        yield ClientAddress(
            kind="proxy",
            url=f"https://{pod}-{port}.proxy.runpod.net",
            text=f"from the internet, by RunPod's proxy, where the pod exposes HTTP port {port}",
            limit=_PROXY_CUTS,
            refused=closed,
        )


def _tunnel(url: str, environment: Mapping[str, str]) -> ClientAddress:
    """Through SSH from elsewhere: safe, without a token, and without a proxy's limits."""
    port = urlsplit(url).port
    host, door = environment.get("RUNPOD_PUBLIC_IP"), environment.get("RUNPOD_TCP_PORT_22")
    user = environment.get("USER") or environment.get("LOGNAME") or "root"
    target = f"{user}@{host}" if host else f"{user}@THIS-HOST"
    own = f"{target}:{door}" if host and door else target
    plain = f"-p {door} {target}" if host and door else target
    return ClientAddress(
        kind="tunnel",
        url=url,
        text=f"from your machine, after: a40console --ssh {own} "
        f"(or: ssh -N -L {port}:127.0.0.1:{port} {plain})",
    )
