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


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("https://joe:s3cret@host/x", f"https://{COVER}@host/x"),
        ("--middleware=https://s3cret@host", f"--middleware=https://{COVER}@host"),
        ('{"hf_token": "s3cret", "a": 1}', f'{{"hf_token": "{COVER}", "a": 1}}'),
        ("--kv={'password':'s3cret'}", f"--kv={{'password':\"{COVER}\"}}"),
        ('{"num_speculative_tokens": 5}', '{"num_speculative_tokens": 5}'),
        ('{"tokenizer": "a/b", "method": "ngram"}', '{"tokenizer": "a/b", "method": "ngram"}'),
        ("https://host/a@b", "https://host/a@b"),
    ],
)
def test_what_is_secret_within_a_word_is_covered(word: str, told: str) -> None:
    assert covered(["--flag", word]) == ("--flag", told)
