"""Whether the parsers of a start read what the model writes, told before a client finds out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from a40console.engines.chat_template import read_chat_template
from a40console.engines.parser_contract import parser_faults
from a40console.profiles.loader import load_profiles

SHIPPED = load_profiles(Path("/nonexistent")).profiles
BARE = replace(SHIPPED["qwen3-coder-30b"], tool_call_parser=None, arguments=())
TOOLS = "{% for tool in tools %}{{ tool | tojson }}{% endfor %}"
XML = TOOLS + "<tool_call>\n<function=example>\n<parameter=a>\n1\n</parameter>\n</function>"
HERMES = TOOLS + '<tool_call>\n{"name": <function-name>, "arguments": <args>}\n</tool_call>'
KIMI = TOOLS + "<|tool_calls_section_begin|><|tool_call_begin|>{{ call.id }}"
GLM = TOOLS + "<tool_call>{function-name}\n<arg_key>{k}</arg_key>\n<arg_value>"
THINKS = XML + "{% if enable_thinking %}<think>{% endif %}"


@pytest.mark.parametrize(
    ("template", "parser"),
    [(XML, "qwen3_xml"), (HERMES, "hermes"), (KIMI, "kimi_k2")],
)
def test_a_missing_parser_is_named_with_the_one_to_set(template: str, parser: str) -> None:
    (fault,) = parser_faults(BARE, template)
    assert fault.code == "tool-parser-missing"
    assert "requests with tools are refused" in fault.cause
    assert f"tool_call_parser = '{parser}'" in fault.remedy
    assert fault.fix is not None
    assert (fault.fix.key, fault.fix.before, fault.fix.after) == ("tool_call_parser", None, parser)


@pytest.mark.parametrize(
    ("template", "parser"),
    [(XML, "qwen3_xml"), (XML, "qwen3_coder"), (HERMES, "hermes"), (KIMI, "kimi_k2")],
)
def test_a_parser_that_fits_is_no_finding(template: str, parser: str) -> None:
    assert parser_faults(replace(BARE, tool_call_parser=parser), template) == ()
    words = ("--enable-auto-tool-choice", "--tool-call-parser", parser)
    assert parser_faults(replace(BARE, arguments=words), template) == ()


def test_a_parser_of_another_form_is_a_mismatch() -> None:
    (fault,) = parser_faults(replace(BARE, tool_call_parser="hermes"), XML)
    assert fault.code == "tool-parser-mismatch"
    assert fault.cause == "the tool call parser is hermes, and tool calls come out as text"
    assert fault.evidence == "chat template: <function=; asked: hermes"
    assert fault.fix is not None
    assert (fault.fix.before, fault.fix.after) == ("hermes", "qwen3_xml")


def test_one_of_a_family_is_a_guess_and_not_set() -> None:
    (fault,) = parser_faults(BARE, GLM)
    assert fault.fix is None
    assert "'glm45' or 'glm47'" in fault.remedy


def test_ones_own_arguments_are_not_edited_for_a_parser() -> None:
    own = replace(BARE, arguments=("--tool-call-parser", "hermes"))
    (fault,) = parser_faults(own, XML)
    assert (fault.code, fault.fix) == ("tool-parser-mismatch", None)


def test_qwen3_coder_with_a_reasoning_parser_loses_calls_in_a_stream() -> None:
    profile = replace(BARE, tool_call_parser="qwen3_coder", reasoning_parser="qwen3")
    (fault,) = parser_faults(profile, THINKS)
    assert fault.code == "tool-parser-streams-badly"
    assert fault.fix is not None
    assert (fault.fix.before, fault.fix.after) == ("qwen3_coder", "qwen3_xml")


def test_a_model_that_thinks_without_a_reasoning_parser_is_told() -> None:
    (fault,) = parser_faults(replace(BARE, tool_call_parser="qwen3_xml"), THINKS)
    assert fault.code == "reasoning-parser-missing"
    assert fault.fix is not None
    assert (fault.fix.key, fault.fix.after) == ("reasoning_parser", "qwen3")


@pytest.mark.parametrize("template", ["", "{{ messages }}", TOOLS, "<tool_call> of old"])
def test_what_the_template_does_not_say_is_no_finding(template: str) -> None:
    assert parser_faults(BARE, template) == ()
    assert parser_faults(replace(BARE, tool_call_parser="hermes"), template) == ()


def test_the_template_is_read_where_vllm_reads_it(tmp_path: Path) -> None:
    folder = tmp_path / "hub" / "models--acme--coder"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("c0ffee")
    snapshot = folder / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)
    environment = {"HF_HUB_CACHE": str(tmp_path / "hub")}
    profile = replace(BARE, model="acme/coder")
    assert read_chat_template(profile, environment) is None
    kept = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    (snapshot / "tokenizer_config.json").write_text(json.dumps({"chat_template": kept}))
    assert read_chat_template(profile, environment) == "t"
    (snapshot / "chat_template.jinja").write_text("own")
    assert read_chat_template(profile, environment) == "own"
    named = tmp_path / "named.jinja"
    named.write_text("named")
    profile = replace(profile, arguments=("--chat-template", str(named)))
    assert read_chat_template(profile, environment) == "named"
    assert read_chat_template(replace(BARE, model=str(snapshot)), {}) == "own"
    assert read_chat_template(replace(BARE, model="/nope"), {}) is None
