"""Beginnings of code, dense in short repeats: what drafts by n-gram latch on to. Our own text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Probe:
    """Code that a model is to go on with."""

    name: str
    prompt: str


PROBES: tuple[Probe, ...] = (
    Probe(
        "arithmetic",
        "def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):\n    return a - b\n\n\n"
        "def multiply(a, b):\n    return a * b\n\n\ndef divide(a, b):\n",
    ),
    Probe(
        "fibonacci",
        "def fibonacci(n):\n    if n < 2:\n        return n\n"
        "    return fibonacci(n-1) + fibonacci(n-2)\n\n\n"
        "def tribonacci(n):\n    if n < 3:\n        return n\n",
    ),
    Probe(
        "parentheses",
        "assert (((1 + 2) * 3) - 4) == 5\nassert (((2 + 3) * 4) - 5) == 15\n"
        "assert (((3 + 4) * 5) - 6) == 29\nassert (((4 + 5) * 6) - 7)",
    ),
    Probe(
        "dictionary",
        'prices = {\n    "apple": {"unit": 1, "net": 0.5},\n    "pear": {"unit": 1, "net": 0.7},\n'
        '    "plum": {"unit": 2, "net": 0.3},\n    "cherry"',
    ),
    Probe(
        "constructor",
        "class Point:\n    def __init__(self, x, y, z):\n        self.x = x\n        self.y = y\n"
        "        self.z = z\n\n    def moved(self, dx, dy, dz):\n"
        "        return Point(self.x + dx, self.y + dy,",
    ),
    Probe(
        "branches",
        "def grade(score):\n    if score >= 90:\n        return 'A'\n    if score >= 80:\n"
        "        return 'B'\n    if score >= 70:\n        return 'C'\n    if score",
    ),
    Probe(
        "types",
        "def first(values: list[int]) -> int:\n    return values[0]\n\n\n"
        "def last(values: list[int]) -> int:\n    return values[-1]\n\n\n"
        "def total(values: list[int]) -> int:\n",
    ),
    Probe(
        "json",
        '[{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": ["b", "c"]}, '
        '{"id": 3, "tags": ["c", "d"]}, {"id": 4,',
    ),
    Probe(
        "matrix",
        "identity = [\n    [1, 0, 0, 0],\n    [0, 1, 0, 0],\n    [0, 0, 1, 0],\n    [0,",
    ),
    Probe(
        "shell",
        'for f in *.log; do\n    if [ -s "$f" ]; then gzip "$f"; fi\ndone\n'
        'for f in *.txt; do\n    if [ -s "$f" ]; then',
    ),
    Probe(
        "c-loop",
        "for (int i = 0; i < n; i++) {\n    for (int j = 0; j < n; j++) {\n"
        "        c[i][j] = 0;\n        for (int k = 0; k < n; k++) {\n            c[i][j] +=",
    ),
    Probe(
        "sql",
        "INSERT INTO readings (id, at, value) VALUES (1, '10:00', 20.5);\n"
        "INSERT INTO readings (id, at, value) VALUES (2, '10:05', 20.7);\n"
        "INSERT INTO readings (id, at, value) VALUES (3,",
    ),
)
