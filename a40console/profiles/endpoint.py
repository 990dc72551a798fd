"""What an attached endpoint's profile must have, and an engine's of this machine must not. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from a40console.model.profile import LIMIT_USD_PER_HOUR, Profile, TokenPrice

OURS = ("price", "base_url", "api_key_variable", "api_key_file")
MEANINGLESS = ("executable", "file", "speculation", "usd_per_hour", "placements", "arguments")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def endpoint_faults(profile: Profile) -> Iterator[str]:
    """What is wrong with the keys of an attached endpoint."""
    if profile.kind == "attached":
        yield from _attached_faults(profile)
        return
    for key in OURS:
        if getattr(profile, key) is not None:
            yield f'{key} is for kind = "attached"'


def _attached_faults(profile: Profile) -> Iterator[str]:
    if (fault := url_fault(profile.base_url)) is not None:
        yield f"base_url {fault}"
    if profile.api_key_variable and profile.api_key_file:
        yield "api_key_variable or api_key_file: one of them is enough"
    for key in MEANINGLESS:
        if getattr(profile, key):
            yield f"{key} means nothing for an endpoint somewhere else"
    if profile.messages_route != "translated":
        yield 'messages_route must be "translated": only chat completions are forwarded'
    if profile.price is not None:
        yield from _price_faults(profile.price)


def url_fault(url: str | None) -> str | None:
    """What is wrong with the address of an endpoint; None where it will do.

    A key goes there with each request, so that only this machine may be reached in the clear.
    """
    try:
        parts = urlsplit(url or "")
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is no address"
    if not host or parts.scheme not in ("http", "https"):
        return "must be the address of an endpoint, like https://host/v1"
    if parts.username or parts.password or parts.query or parts.fragment:
        return "must hold neither user nor password nor anything behind its path"
    if parts.scheme == "http" and host not in LOOPBACK:
        return "must be https: the key would be read on the way"
    return None


def _price_faults(price: TokenPrice) -> Iterator[str]:
    for key in ("input", "cached_input", "output"):
        value = getattr(price, key)
        if value is not None and not 0 <= value < LIMIT_USD_PER_HOUR:
            yield f"price.{key} must be 0 or more, and less than {LIMIT_USD_PER_HOUR}"
