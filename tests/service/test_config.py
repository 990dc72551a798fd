"""Settings that cannot work are refused with their key."""

from __future__ import annotations

from pathlib import Path

import pytest

from a40console.config import load_settings
from a40console.errors import UsageError


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "0.001"])
def test_an_interval_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[service]\ninterval_s = {value}\n")
    with pytest.raises(UsageError) as refused:
        load_settings(file)
    assert "service.interval_s" in refused.value.evidence


def test_an_interval_that_fits(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[service]\ninterval_s = 0.25\n")
    assert load_settings(file).service.interval_s == 0.25
