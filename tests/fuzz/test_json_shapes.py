"""Patterns of shapes against the general path: a part of `python -m tests.fuzz.json_shapes`."""

from .json_shapes import Counts, compare


def test_patterns_agree_with_the_general_path() -> None:
    counts = compare(4000, seed=2026)
    assert counts == Counts(bodies=4000, matched=counts.matched)
    assert counts.matched > 400
