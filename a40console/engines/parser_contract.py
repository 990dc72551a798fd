"""Whether vLLM's parsers read what a model's chat template makes it write. Pure.

A template shows the model its earlier tool calls in the form in which it writes new ones, so it
tells which parser can read them. Without one, clients that send tools are refused; with another,
calls arrive as text; without a reasoning parser, thoughts do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from a40console.engines.remedies import ProfileFix, value_of
from a40console.model.profile import Profile

Parser = Literal["tool_call_parser", "reasoning_parser"]

_FLAGS: dict[Parser, str] = {
    "tool_call_parser": "--tool-call-parser",
    "reasoning_parser": "--reasoning-parser",
}


@dataclass(frozen=True, slots=True)
class _Form:
    """One way to write tool calls or thoughts: a mark of the template, and what reads it."""

    mark: str
    parsers: tuple[str, ...]
    """The first is the one to set."""

    beside: str = ""
    """A pattern that the template must hold too."""

    certain: bool = True
    """Whether the first is the right one, and not merely one of a family."""


_TOOL_FORMS = (
    _Form("<|tool_calls_section_begin|>", ("kimi_k2",)),
    _Form("<minimax:tool_call>", ("minimax_m2",)),
    _Form("<seed:tool_call>", ("seed_oss",)),
    _Form("<｜tool▁calls▁begin｜>", ("deepseek_v3", "deepseek_v31"), certain=False),
    _Form("[TOOL_CALLS]", ("mistral",)),
    _Form("<|tool_call_start|>", ("lfm2",)),
    _Form("<arg_key>", ("glm45", "glm47"), beside="<tool_call>", certain=False),
    _Form("<function=", ("qwen3_xml", "qwen3_coder", "step3p5"), beside="<parameter="),
    _Form(
        "<tool_call>",
        ("hermes", "qwen3_json", "longcat", "xlam"),
        beside=r"(?s)<tool_call>.{0,200}?(?:\"name\"|'name'|tojson|tool_json)",
    ),
)
_REASONING_FORMS = (
    _Form("◁think▷", ("kimi_k2",)),
    _Form("[THINK]", ("mistral",)),
    _Form("<seed:think>", ("seed_oss",)),
    _Form(
        "<think>",
        ("minimax_m2", "minimax_m2_append_think"),
        beside="<minimax:tool_call>",
        certain=False,
    ),
    _Form("<think>", ("glm45", "glm47"), beside="<arg_key>", certain=False),
    _Form("<think>", ("qwen3", "deepseek_r1"), beside="enable_thinking"),
)
_BREAKS_WHILE_STREAMING = "qwen3_coder"
"""With a reasoning parser its calls are lost in a stream; `qwen3_xml` reads the same form."""

_WITHOUT: dict[Parser, tuple[str, str]] = {
    "tool_call_parser": ("tool-parser-missing", "requests with tools are refused"),
    "reasoning_parser": ("reasoning-parser-missing", "thoughts come out as part of the answer"),
}
_WITH_ANOTHER: dict[Parser, tuple[str, str]] = {
    "tool_call_parser": ("tool-parser-mismatch", "tool calls come out as text"),
    "reasoning_parser": ("reasoning-parser-mismatch", "thoughts come out as part of the answer"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserFault:
    """A parser that does not read what the model writes."""

    code: str
    cause: str
    evidence: str
    """What of the template shows it, and what was asked."""

    remedy: str
    fix: ProfileFix | None


def parser_faults(profile: Profile, template: str) -> tuple[ParserFault, ...]:
    """What is wrong with the parsers that a profile asks for; nothing where it cannot be told.

    Args:
        profile: Of a vLLM.
        template: The model's chat template.
    """
    found = (
        _looked(profile, template, "tool_call_parser", _TOOL_FORMS if "tools" in template else ()),
        _looked(profile, template, "reasoning_parser", _REASONING_FORMS),
        _streaming(profile, template),
    )
    return tuple(fault for fault in found if fault is not None)


def _looked(
    profile: Profile, template: str, setting: Parser, forms: Sequence[_Form]
) -> ParserFault | None:
    form = _form(template, forms)
    asked = asked_parser(profile, setting)
    if form is None or asked in form.parsers:
        return None
    code, effect = (_WITHOUT if asked is None else _WITH_ANOTHER)[setting]
    what = setting.removesuffix("_parser").replace("_", " ")
    told = f"no {what} parser is set" if asked is None else f"the {what} parser is {asked}"
    return _fault(profile, setting, code, f"{told}, and {effect}", form)


def _streaming(profile: Profile, template: str) -> ParserFault | None:
    """The one pair of parsers that is known to lose calls in a stream."""
    tool = asked_parser(profile, "tool_call_parser")
    reasoning = asked_parser(profile, "reasoning_parser")
    form = _form(template, _TOOL_FORMS)
    if tool != _BREAKS_WHILE_STREAMING or reasoning is None or form is None:
        return None
    if tool not in form.parsers:
        return None
    cause = f"{tool} loses tool calls in a stream while the reasoning parser {reasoning} is on"
    return _fault(profile, "tool_call_parser", "tool-parser-streams-badly", cause, form)


def _form(template: str, forms: Sequence[_Form]) -> _Form | None:
    return next(
        (f for f in forms if f.mark in template and re.search(f.beside, template) is not None), None
    )


def _fault(profile: Profile, setting: Parser, code: str, cause: str, form: _Form) -> ParserFault:
    right, flag = form.parsers[0], _FLAGS[setting]
    before = getattr(profile, setting)
    own = value_of(profile.arguments, flag) is not None
    readers = right if form.certain else "' or '".join(form.parsers)
    why = f"the model's chat template writes {form.mark}, which {right} reads"
    return ParserFault(
        code=code,
        cause=cause,
        evidence=f"chat template: {form.mark}; asked: {asked_parser(profile, setting) or 'none'}",
        remedy=f"Set {setting} = '{readers}' in the profile ({flag}), and restart.",
        fix=ProfileFix(key=setting, before=before, after=right, why=why)
        if form.certain and not own
        else None,
    )


def asked_parser(profile: Profile, setting: Parser) -> str | None:
    """The parser that a profile asks for; its own arguments come last and win."""
    asked: str | None = getattr(profile, setting)
    return value_of(profile.arguments, _FLAGS[setting]) or asked
