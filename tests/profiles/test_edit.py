"""One key of a profile is changed; every other byte of the file stays."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.profiles.edit import NotEditableError, Setting, with_setting

QWEN = (files("a40console.profiles") / "qwen3-coder-30b.toml").read_text(encoding="utf-8")
SEEN = next(line for line in QWEN.splitlines() if line.startswith("prefix_caching"))
ARRAY = """arguments = [
  "--a",         # the first
  "--b", "3",
  '--c',         # the third
]
[environment]    # theirs
KEY = "x"
"""


def changed(before: str, after: str) -> list[tuple[str, str]]:
    """Lines that differ, of two texts of equal length."""
    pairs = zip(before.splitlines(), after.splitlines(), strict=True)
    return [(old, new) for old, new in pairs if old != new]


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("max_model_len", 131072, "max_model_len = 262144", "max_model_len = 131072"),
        ("speculation.enabled", True, "enabled = false", "enabled = true"),
        ("kv_cache_dtype", "auto", 'kv_cache_dtype = "fp8"', 'kv_cache_dtype = "auto"'),
        ("prefix_caching", False, SEEN, SEEN.replace("true ", "false")),
    ],
)
def test_a_value_is_replaced_and_its_comment_stays_in_its_column(
    key: str, value: Setting, old: str, new: str
) -> None:
    assert changed(QWEN, with_setting(QWEN, key, value)) == [(old, new)]


def test_a_new_key_goes_behind_the_last_one_of_its_table() -> None:
    assert with_setting("a = 1\n\n# of b\n[b]\nc = 2\n", "d", "x") == (
        'a = 1\nd = "x"\n\n# of b\n[b]\nc = 2\n'
    )
    assert with_setting("[b]\nc = 2\n\n[e]\n", "b.d", 3) == "[b]\nc = 2\nd = 3\n\n[e]\n"


def test_a_table_that_is_not_there_is_made() -> None:
    assert with_setting("a = 1", "environment.NCCL_P2P_DISABLE", "1") == (
        'a = 1\n\n[environment]\nNCCL_P2P_DISABLE = "1"\n'
    )


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        ("b = 2\n", ""),
        ("b = 2  # two\n", "# two\n"),
        ("b = 2  # two\r\n", "# two\r\n"),
        ('  b = "with # inside"  # two\n', "  # two\n"),
        ('b = [  # first\n  "x",  # of x\n  # alone\n  "#y",\n]  # last\n', None),
        ('b = """\n# no comment\n"""  # two\n', "# two\n"),
    ],
)
def test_a_key_is_taken_out_and_its_comments_stay_as_lines_of_their_own(
    taken: str, left: str | None
) -> None:
    left = "# first\n# of x\n# alone\n# last\n" if left is None else left
    assert with_setting(f"a = 1\n{taken}c = 3\n", "b", None) == f"a = 1\n{left}c = 3\n"


def test_words_of_an_array_go_with_the_comment_that_was_theirs_alone() -> None:
    assert with_setting(ARRAY, "arguments", ("--b", "3", "--c")) == ARRAY.replace(
        '  "--a",         # the first\n', ""
    )
    assert with_setting(ARRAY, "arguments", ("--a", "--c")) == ARRAY.replace('  "--b", "3",\n', "")
    assert with_setting(ARRAY, "arguments", ("--a", "--b", "3")) == ARRAY.replace(
        "  '--c',         # the third\n", ""
    )


def test_a_dotted_key_and_foreign_line_ends_are_kept() -> None:
    text = "\ufeffspeculation.tokens = 3\r\nspeculation.enabled = true\r\n"
    assert with_setting(text, "speculation.enabled", False) == (
        "\ufeffspeculation.tokens = 3\r\nspeculation.enabled = false\r\n"
    )


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("speculation = { tokens = 3, enabled = true }\n", "speculation.enabled", False),
        (ARRAY, "arguments", ("--x",)),  # its comments would be lost
        ("speculation.tokens = 3\n", "speculation.enabled", True),  # a table of the same name
        ("not toml", "a", 1),
    ],
)
def test_what_cannot_be_changed_alone_is_refused(text: str, key: str, value: Setting) -> None:
    with pytest.raises(NotEditableError, match="cannot be set in this file"):
        with_setting(text, key, value)


LEAVES = st.one_of(
    st.integers(-(2**31), 2**31), st.booleans(), st.text(max_size=8).filter(str.isprintable)
)


@given(
    lines=st.lists(
        st.sampled_from(
            [
                "# a comment with [brackets] and = signs",
                "",
                'text = "with # inside"  # and a comment',
                "words = [\n  'a', # [x]\n  \"b\"\n]",
                'long = """\n[table]\nkey = 1\n"""',
                "number = 0x10",
                "[table]",
                "[[rows]]\nkey = 2",
            ]
        ),
        unique=True,
    ),
    key=st.sampled_from(["number", "text", "words", "new", "table.key", "other.key"]),
    value=LEAVES,
)
def test_nothing_but_the_key_ever_changes(lines: list[str], key: str, value: Setting) -> None:
    text = "\n".join(lines) + "\n"
    before = tomllib.loads(text)
    try:
        after = tomllib.loads(with_setting(text, key, value))
    except NotEditableError:
        return
    table, _, name = key.rpartition(".")
    place = after[table] if table else after
    assert place.pop(name) == value
    (before.get(table, {}) if table else before).pop(name, None)
    if table and not before.get(table) and not place:
        before.pop(table, None)
        after.pop(table)
    assert after == before
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert all(comment in with_setting(text, key, value) for comment in comments)


@pytest.mark.parametrize("key", ["max_model_len", "environment.KEY"])
def test_what_is_added_ends_its_lines_as_the_file_does(key: str) -> None:
    edited = with_setting('model = "m"\r\n', key, "x")
    assert edited.count("\n") == edited.count("\r\n") > 1
