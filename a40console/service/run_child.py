"""The process of one run: measures, writes its records, and ends; started by the service.

Run as `python -P -m a40console.service.run_child FOLDER`, in a session of its own: it outlives the
console and the service. Its secrets come by its environment.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from a40console import spared_imports


def main(arguments: list[str]) -> int:
    """Carry a run out; 0 where its records say how it ended."""
    os.umask(0o077)  # whatever is written here is this user's alone
    spared_imports.spare_unused()
    from a40console.service.run_work import carry_out

    return carry_out(Path(arguments[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
