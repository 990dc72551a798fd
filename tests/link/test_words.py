"""The words that are sent to the other machine, read by the shells that may read them there."""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a40console.commands.far import lead
from a40console.errors import UsageError
from a40console.link.ssh import Forward, Ssh, through_login_shell
from a40console.link.target import parse_target
from a40console.paths import locate

SHELLS = tuple(
    found for name in ("sh", "bash", "zsh", "fish", "tcsh") if (found := shutil.which(name))
)
WORDS = [
    *("a b", "it's", "ba\\ck\\\\s", "!x!!", "$HOME `id` %d %%", "new\nline\n", '"q"', "ü€"),
    *("*?[a]~{b}", "#c;&|<>()", "", "-n", "\t", "\\n", "\\'"),
]
words = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12))


def read_by(outer: str, login: str, call: list[str]) -> list[str]:
    """The arguments that arrive, where sshd starts one shell and the login is another's."""
    line = through_login_shell(["printf", r"%s\0", "first", *call])
    done = subprocess.run(
        [outer, "-c", line],
        env={**os.environ, "SHELL": login},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=20,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().split("\0")[1:-1]


@pytest.mark.parametrize(("outer", "login"), product(SHELLS, SHELLS))
def test_every_pair_of_shells_hands_on_the_same_words(outer: str, login: str) -> None:
    assert read_by(outer, login, WORDS) == WORDS


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=15, deadline=None)
@given(words)
def test_no_word_means_anything_to_a_shell(shell: str, call: list[str]) -> None:
    assert read_by(shell, "/bin/sh", call) == call


def test_our_own_variable_does_not_stay_behind() -> None:
    line = through_login_shell(["env"])
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=True)
    assert "A40CONSOLE_CALL" not in done.stdout


def test_the_master_is_told_without_the_operators_configuration() -> None:
    ssh = Ssh(parse_target("me@pod:22"), Path("/run/m"), Path("/run/log"), ("ssh", "-F", "/cfg"))
    assert ssh.control("forward", Forward("127.0.0.1:1", "127.0.0.1:2")) == [
        *("ssh", "-F", "/cfg", "-F", "none", "-S", "/run/m", "-O", "forward"),
        *("-L", "127.0.0.1:1:127.0.0.1:2", "-p", "22", "-l", "me", "pod"),
    ]


@pytest.mark.parametrize(("command", "instead"), [("serve", "endpoint --start"), ("demo", "demo")])
def test_what_is_of_no_use_over_there_is_refused_before_any_login(
    command: str, instead: str, tmp_path: Path
) -> None:
    paths = locate({"A40CONSOLE_HOME": str(tmp_path)})
    with pytest.raises(UsageError) as caught:
        lead(paths, "nowhere.invalid", there="a40console", words=[command])
    assert f"{command} does not run over a link" in caught.value.message
    assert instead in caught.value.remedy
