"""`python -m lazulite`, the same as the command `lazulite`."""

import sys

from lazulite.cli import main

if __name__ == "__main__":
    sys.exit(main())
