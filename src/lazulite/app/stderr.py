"""Messages for users."""

import sys


def report(text: str) -> None:
    """Print one line for users."""
    print(f"lazulite: {text}", file=sys.stderr)
