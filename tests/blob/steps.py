"""Counting the steps of long work."""

from lazulite.protocol.steps import Steps


def steps_of(work: Steps[object]) -> int:
    """Run work to its end; return the number of its pauses."""
    return sum(1 for _ in work)
