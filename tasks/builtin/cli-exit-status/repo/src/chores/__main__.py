"""Entry point of ``python -m chores``."""

import sys

from chores.cli import main

if __name__ == "__main__":
    sys.exit(main())
