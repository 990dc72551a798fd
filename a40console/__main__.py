"""`python -m a40console`."""

import sys

from a40console.cli import main

if __name__ == "__main__":
    sys.exit(main())
