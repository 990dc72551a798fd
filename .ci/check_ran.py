"""Fails unless every test that a list names ran and passed: a skip is not a pass.

Usage: check_ran.py LIST JUNIT_XML...
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree


def passed(reports: list[Path]) -> set[str]:
    """Names (`file::test`, without parameters) of the tests that passed and never did otherwise."""
    good: set[str] = set()
    bad: set[str] = set()
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            module = case.get("classname", "").replace(".", "/")
            name = f"{module}.py::{case.get('name', '').split('[')[0]}"
            (bad if any(child.tag in _BAD for child in case) else good).add(name)
    return good - bad


_BAD = {"skipped", "failure", "error"}


def main(names: Path, reports: list[Path]) -> int:
    """The exit code: 1 when a named test did not pass."""
    wanted = {line.strip() for line in names.read_text().splitlines() if line.strip()}
    absent = sorted(wanted - passed(reports))
    for name in absent:
        print(f"did not run and pass: {name}")
    print(f"{len(wanted) - len(absent)} of {len(wanted)} named tests ran and passed")
    return 1 if absent else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), [Path(report) for report in sys.argv[2:]]))
