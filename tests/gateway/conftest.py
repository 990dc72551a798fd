"""The real engines of this folder's tests, each started once a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from a40console.gateway.upstream import Upstream
from tests.gateway.real_engines import VLLM_VERSIONS, llamacpp, vllm

REAL_ENGINES = [
    pytest.param("llama.cpp", marks=[pytest.mark.engine, pytest.mark.slow]),
    *(
        pytest.param(
            f"vLLM {version}",
            marks=[pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(600)],
        )
        for version in VLLM_VERSIONS
    ),
]


@pytest.fixture(scope="session", params=REAL_ENGINES)
def real_engine_name(request: pytest.FixtureRequest) -> str:
    """Which engine it is."""
    return str(request.param)


@pytest.fixture(scope="session")
def real_engine(real_engine_name: str, request: pytest.FixtureRequest) -> Iterator[Upstream]:
    """An engine that serves SmolLM2 within 4096 tokens."""
    kind, _, version = real_engine_name.partition(" ")
    if kind == "vLLM":
        made = vllm(version)
    else:
        model: Path = request.getfixturevalue("model_file")
        made = llamacpp(model)
    with made as upstream:
        yield upstream
