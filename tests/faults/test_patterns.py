"""Patterns of names, compared with regular expressions."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.faults.patterns import pattern

TEXTS = st.text("ab/", max_size=12)


@settings(max_examples=400, deadline=None)
@given(st.text("ab/*", max_size=12), TEXTS)
def test_a_star_is_any_text(spelled: str, text: str) -> None:
    expression = ".*".join(map(re.escape, spelled.split("*")))
    assert pattern(spelled).matches(text) is (re.fullmatch(expression, text, re.DOTALL) is not None)


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4), TEXTS)
def test_a_text_is_of_the_patterns_that_it_is_made_of(parts: list[str], between: str) -> None:
    assert pattern("*".join(parts)).matches(between.join(parts))


def test_a_pattern_of_many_stars_takes_no_longer() -> None:
    """A backtracking matcher would not end."""
    assert not pattern("*a" * 500 + "*b").matches("a" * 1000)
