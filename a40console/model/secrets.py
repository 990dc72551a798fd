"""Which words of a command line are secrets: every process of the machine can read them there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

COVER = "••••"

_TOKENIZERS = "".join(
    rf"(?<!{name}[_-])" for name in ("eos", "bos", "pad", "unk", "sep", "cls", "mask")
)
"""Before `token`: those are words of the tokenizer."""

_NAMES = rf"(?:key|{_TOKENIZERS}token|secret|password|authorization)"
_FLAG = re.compile(rf"(?:^-hft|{_NAMES})$", re.IGNORECASE)
_NAMED = re.compile(rf"(?:{_NAMES}|credentials?)$", re.IGNORECASE)
_USERINFO = re.compile(r"//[^/\s]*@")
_USERINFO_IN_JSON = re.compile(r"//[^/\s\"']*@")
_HEADER = r"(?:(?<=authorization)|(?<=[_-]key)|(?<=[_-]token))"
_MEMBER = re.compile(
    rf"""((?:{_NAMES}|credentials?)(?:\\*["']\s*[:=]|\s*=|:\s|{_HEADER}:)\s*)"""
    r"""(\\["'](?:[^"'\\]|\\{2,}["'])*|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?"""
    r"""|\[[^\]]*\]?|\{[^}]*\}?|(?:(?:Bearer|Basic)\s+)?[^\s,;&"'\[\]{}\\]+)""",
    re.IGNORECASE | re.DOTALL,
)
"""A name and its value, in what only looks like JSON: in quotes, escaped ones too, or bare."""


def takes_secret(flag: str) -> bool:
    """Whether a flag's value is a secret: `--api-key`, `--hf-token`, `-hft`."""
    return flag.startswith("-") and _FLAG.search(flag) is not None


def covered_within(text: str) -> str:
    """A text with the user of each address covered, and each member of JSON named like a secret."""
    userinfo = _USERINFO
    begin = min((at for at in map(text.find, "{[") if at >= 0), default=len(text))
    try:
        value = json.loads(text[begin:])
        told, userinfo = _covered_value(value), _USERINFO_IN_JSON
        if told != value:
            dumped = json.dumps(told, ensure_ascii=False)
            text = text[:begin] + dumped.encode(errors="backslashreplace").decode()
    except (ValueError, RecursionError):
        pass  # no JSON: what looks like it is covered all the same
    return _MEMBER.sub(_covered_member, userinfo.sub(f"//{COVER}@", text))


def _covered_value(value: Any) -> Any:
    match value:
        case dict():
            return {
                key: COVER if _NAMED.search(key) else _covered_value(member)
                for key, member in value.items()
            }
        case list():
            return [_covered_value(member) for member in value]
        case str():
            return covered_within(value)
        case _:
            return value


def _covered_member(found: re.Match[str]) -> str:
    match found[2][0]:
        case "\\":
            return f"{found[1]}{found[2][:2]}{COVER}"
        case '"' | "'":
            return f'{found[1]}"{COVER}"'
        case _:
            return found[1] + COVER


def covered(argv: Iterable[str]) -> tuple[str, ...]:
    """The words with the values of such flags covered, and what is secret within others."""
    words: list[str] = []
    hide = False
    for word in argv:
        flag, equals, _ = word.partition("=")
        secret = takes_secret(flag)
        told = f"{flag}={COVER}" if secret and equals else covered_within(word)
        words.append(COVER if hide else told)
        hide = secret and not equals and not hide
    return tuple(words)
