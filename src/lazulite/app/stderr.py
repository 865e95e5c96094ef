"""What is told to people."""

import sys


def report(text: str) -> None:
    """Tell people something, in one line."""
    print(f"lazulite: {text}", file=sys.stderr)
