"""What is secret on a command line is told apart from what only sounds alike."""

from __future__ import annotations

import json

import pytest

from a40console.model.secrets import COVER, covered, covered_within, takes_secret


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
    "flag",
    [
        "--eos-token",
        "--pad_token",
        "--allow-credentials",
        "--max-num-batched-tokens",
        "--tokenizer",
        "--keyfile-mode",
        "monkey",
        "--port",
    ],
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
        ("postgres://u:s3@cr3t@host/a@b", f"postgres://{COVER}@host/a@b"),
        ('{"api_key":"a\\"s3cret"}', f'{{"api_key": "{COVER}"}}'),
        ('{"api_key": ["s3cret"], "n": [1]}', f'{{"api_key": "{COVER}", "n": [1]}}'),
        ('[{"h": {"Authorization": "Bearer s"}}]', f'[{{"h": {{"Authorization": "{COVER}"}}}}]'),
        ('--x={"url":"//u:s@3@h","b":"x@y"}', f'--x={{"url": "//{COVER}@h", "b": "x@y"}}'),
        ('{"x": {"token": "s"}, "x": 1}', f'{{"x": {{"token": "{COVER}"}}, "x": 1}}'),
        ('{\\"api_key\\": \\"s3cret\\"}', f'{{\\"api_key\\": \\"{COVER}\\"}}'),
        ('{"api_key": "s3cret" "broken', f'{{"api_key": "{COVER}" "broken'),
        ("a,api_key=s3cret,b", f"a,api_key={COVER},b"),
        ("Authorization: Bearer s3cret", f"Authorization: {COVER}"),
        ('{"eos_token": "</s>", "pad_token": 1}', '{"eos_token": "</s>", "pad_token": 1}'),
        ("org/monkey:latest", "org/monkey:latest"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_what_is_secret_within_a_word_is_covered(word: str, told: str) -> None:
    assert covered(["--flag", word]) == ("--flag", told)


def test_json_within_json_is_covered_and_stays_json() -> None:
    inner = json.dumps({"hf_token": 's"3cret', "n": 1})
    told = covered_within("--x=" + json.dumps({"kept": "é", "inner": inner}))
    assert "3cret" not in told
    read = json.loads(told.removeprefix("--x="))
    assert read["kept"] == "é"
    assert json.loads(read["inner"]) == {"hf_token": COVER, "n": 1}
