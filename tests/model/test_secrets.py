"""What is secret on a command line is told apart from what only sounds alike."""

from __future__ import annotations

import pytest

from a40console.model.secrets import COVER, covered, takes_secret


@pytest.mark.parametrize(
    "flag", ["--api-key", "--hf-token", "-hft", "--HF_TOKEN", "--ssl-key", "--db-password"]
)
def test_what_takes_a_secret(flag: str) -> None:
    assert takes_secret(flag)
    assert covered(["serve", flag, "s3cret", "--port", "1"]) == (
        *("serve", flag, COVER, "--port", "1"),
    )
    assert covered([f"{flag}=s3cret"]) == (f"{flag}={COVER}",)


@pytest.mark.parametrize(
    "flag", ["--max-num-batched-tokens", "--tokenizer", "--keyfile-mode", "monkey", "--port"]
)
def test_what_takes_none(flag: str) -> None:
    assert not takes_secret(flag)
    assert covered([flag, "value"]) == (flag, "value")


def test_a_secret_that_looks_like_a_flag_is_covered_too() -> None:
    assert covered(["--api-key", "--token", "next"]) == ("--api-key", COVER, "next")
