"""Fails unless every test that a list names ran and passed: a skip is not a pass.

Usage: check_ran.py LIST JUNIT_XML...      a test in several reports counts as in the last of them
       check_ran.py --failed N JUNIT_XML   fails unless at most N tests failed
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree


def outcomes(report: Path) -> Iterator[tuple[str, bool]]:
    """Each test of a report (`file::test[parameters]`), and whether it passed."""
    for case in ElementTree.parse(report).iter("testcase"):
        module = case.get("classname", "").replace(".", "/")
        passed = not any(child.tag in _BAD for child in case)
        yield f"{module}.py::{case.get('name', '')}", passed


_BAD = {"skipped", "failure", "error"}


def passed(reports: list[Path]) -> set[str]:
    """Names (`file::test`, without parameters) of the tests that passed with all parameters."""
    last = {name: good for report in reports for name, good in outcomes(report)}
    bad = {_plain(name) for name, good in last.items() if not good}
    return {_plain(name) for name in last} - bad


def _plain(name: str) -> str:
    return name.split("[")[0]


def failures(report: Path) -> int:
    """How many tests of a report failed, or broke before or after."""
    cases = ElementTree.parse(report).iter("testcase")
    return sum(any(child.tag in {"failure", "error"} for child in case) for case in cases)


def ran(names: Path, reports: list[Path]) -> int:
    """The exit code: 1 when a named test did not pass."""
    wanted = {line.strip() for line in names.read_text().splitlines() if line.strip()}
    absent = sorted(wanted - passed(reports))
    for name in absent:
        print(f"did not run and pass: {name}")
    print(f"{len(wanted) - len(absent)} of {len(wanted)} named tests ran and passed")
    return 1 if absent else 0


def main(arguments: list[str]) -> int:
    """The exit code of either use."""
    if arguments[0] == "--failed":
        return int(failures(Path(arguments[2])) > int(arguments[1]))
    return ran(Path(arguments[0]), [Path(report) for report in arguments[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
