"""Fixtures that several rooms share."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from a40console.engines.weights import ensure_file
from a40console.profiles.loader import load_profiles

# How long an example takes is the machine's affair: it may be slow, and shared.
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded default's model file, fetched once a session by our own code."""
    folder = tmp_path_factory.mktemp("models")
    file = load_profiles(folder / "none").find("smollm2-135m").file
    assert file is not None
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return asyncio.run(ensure_file(file, folder, lambda done, whole: None))
