"""What single lines and tracebacks of an output mean, before an engine serves and after."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines import known_lines, llamacpp_faults, vllm_faults
from a40console.engines.explain import explain_passage
from a40console.engines.faults import Fault
from a40console.model.engine_log import LogMeaning
from a40console.model.log_line import Level, LevelReader

DATA = Path(__file__).parents[1] / "data" / "engine_logs"
STAMP = "(APIServer pid=1) ERROR 11-29 13:00:00 [serving.py:929] "


def explain(text: str, *, starting: bool = True, vllm_lines: bool = True) -> LogMeaning:
    meaning = explain_passage(text, vllm_lines=vllm_lines, starting=starting)
    assert meaning is not None
    return meaning


def blocks(name: str) -> list[str]:
    """Every warning and error of a recorded output with what belongs to it."""
    reader, found = LevelReader(), list[str]()
    for text in (DATA / name).read_text(errors="replace").split("\n"):
        line = reader.read(text)
        if line.continues:
            found[-1] += f"\n{line.text}"
        elif line.level >= Level.WARN:
            found.append(line.text)
    return found


def test_the_cause_is_read_out_of_the_whole_traceback() -> None:
    first = next(
        text
        for text in blocks("fail-kv-too-small-bytes2.log")
        if "EngineCore failed to start" in text
    )
    meaning = explain(first)
    assert meaning.cause == "the KV cache has 0.09 GiB, and one request of 8192 tokens needs 0.18"
    assert "max_model_len = 4096" in meaning.remedy
    assert not meaning.harmless


def test_a_consequence_is_told_from_its_cause() -> None:
    last = blocks("fail-kv-too-small-bytes2.log")[-2]
    assert "Engine core initialization failed" in last
    assert "a consequence" in explain(last).cause
    assert "first error" in explain(last).remedy


def test_what_ends_a_start_is_a_clients_mistake_once_it_serves() -> None:
    text = STAMP + "pydantic.ValidationError: 1 validation error for ChatCompletionRequest\n"
    text += STAMP + "messages\n" + STAMP + "  Input should be a valid list"
    assert "vLLM refused messages" in explain(text).cause
    served = explain(text, starting=False)
    assert "a client" in served.cause
    assert served.harmless


@pytest.mark.parametrize("name", ["startup-ngram.log", "serve-0.27.1.log", "startup-033b.log"])
def test_most_warnings_of_a_good_start_are_known_as_harmless(name: str) -> None:
    meanings = [explain_passage(x, vllm_lines=True, starting=True) for x in blocks(name)]
    known = [meaning for meaning in meanings if meaning is not None]
    assert len(known) > 0.6 * len(meanings)
    assert sum(meaning.harmless for meaning in known) > 0.7 * len(known)


def test_an_ordinary_line_means_nothing_more() -> None:
    for vllm_lines in (True, False):
        assert explain_passage("all is well", vllm_lines=vllm_lines, starting=True) is None


def test_lines_of_llama_cpp() -> None:
    text = (
        "0.00.002.753 W srv  llama_server: security: no API key is set and CORS allows all origins"
    )
    assert explain(text, vllm_lines=False).harmless
    text = "0.00.004.274 E gguf_init_from_file: failed to open GGUF file '/x' (No such file)"
    assert (
        explain(text, vllm_lines=False).cause == "the model file /x cannot be opened: No such file"
    )


@pytest.mark.parametrize(
    "fault", [*vllm_faults.FAULTS, *llamacpp_faults.FAULTS], ids=lambda fault: fault.pattern[:40]
)
def test_every_fault_names_only_groups_that_it_has(fault: Fault) -> None:
    groups = {**dict.fromkeys(fault.regex.groupindex, "x"), "nearest": "", "room": ""}
    assert fault.cause.format(**groups)
    assert fault.remedy.format(**groups)
    assert fault.remedy.format(**groups).endswith((".", "]'", ")"))


@pytest.mark.parametrize(
    "known", [*known_lines.VLLM, *known_lines.LLAMACPP], ids=lambda known: known.pattern[:40]
)
def test_every_known_line_names_only_groups_that_it_has(known: known_lines.KnownLine) -> None:
    assert known.meaning.format(**dict.fromkeys(known.regex.groupindex, "x"))
    assert known.advice.endswith(".")


@given(st.text(), st.booleans(), st.booleans())
def test_no_text_breaks_it(text: str, vllm_lines: bool, starting: bool) -> None:
    meaning = explain_passage(text, vllm_lines=vllm_lines, starting=starting)
    assert meaning is None or (meaning.cause and meaning.remedy)
