"""The list of the findings' codes, and the README's."""

from __future__ import annotations

import re
from pathlib import Path

from a40console.advisor import advice
from a40console.advisor.findings import CODES


def test_every_code_is_in_the_list_and_every_entry_of_it_is_a_code() -> None:
    folder = Path(advice.__file__).parent
    written = {
        code
        for path in folder.glob("*findings.py")
        for code in re.findall(r'(?:code=|as_finding\(\s*)"([a-z-]+)"', path.read_text())
    }
    assert written == set(CODES)


def test_the_readme_lists_every_code() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    for code, meaning in CODES.items():
        assert f"| `{code}` | {meaning} |" in readme
    listed = re.findall(r"^\| `([a-z-]+)` \| [^|]* \|$", readme, re.MULTILINE)
    assert [code for code in listed if code in CODES] == list(CODES)
