"""The command line, with the stub in the place of the service that it starts."""

from __future__ import annotations

import sys
from pathlib import Path

from a40console.cli import main
from a40console.commands import running

running.SERVE_COMMAND = (sys.executable, str(Path(__file__).with_name("service_stub.py")), "serve")

if __name__ == "__main__":
    sys.exit(main())
