"""Keys in the style of the design guide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite_patterns.keys import Key, KeyFormatError, KeyValueError, integer, literal, text


class Reviews(Key):
    employee: str = text()
    year: int = integer(4)


class Tagged(Key):
    kind: str = literal("empid")
    name: str = text()
    rest: str = text()


STYLE = Reviews.guide_style(sep="_")
TAGGED = Tagged.guide_style()
WORDS = st.text(st.sampled_from("ab .!"), max_size=4)


def test_the_example_of_the_guide() -> None:
    assert STYLE.encode(Reviews("000123", 2012)) == "000123_2012"
    assert STYLE.decode("000123_2012") == Reviews("000123", 2012)
    assert "000123_2012" in STYLE.prefix(employee="000123")
    assert STYLE.encode(Reviews("000123", 2012)) in STYLE.prefix(employee="000123", year=2012)


@given(WORDS, st.text(st.sampled_from("ab_ "), max_size=4), WORDS)
def test_keys_come_back_and_a_prefix_is_exact(name: str, rest: str, other: str) -> None:
    text = TAGGED.encode(Tagged(name, rest))
    assert TAGGED.decode(text) == Tagged(name, rest)
    assert (text in TAGGED.prefix(name=other)) is (name == other)


@pytest.mark.parametrize("employee", ["a_b", "a/b", "a%b"])
def test_what_would_need_an_escape_is_rejected(employee: str) -> None:
    with pytest.raises(KeyValueError, match=r"Reviews\.employee"):
        STYLE.encode(Reviews(employee, 2012))


@pytest.mark.parametrize("text", ["000123", "000123_12", "a/b_2012", "x_y_2012"])
def test_foreign_keys_are_rejected(text: str) -> None:
    with pytest.raises(KeyFormatError):
        STYLE.decode(text)


@pytest.mark.parametrize("sep", ["", "ab", "/", "\x00"])
def test_a_separator_is_one_allowed_character(sep: str) -> None:
    with pytest.raises(ValueError, match="is no separator"):
        Reviews.guide_style(sep)


def test_long_keys_and_gaps_are_rejected() -> None:
    with pytest.raises(KeyValueError, match="1024 are allowed"):
        STYLE.encode(Reviews("x" * 1020, 2012))
    with pytest.raises(KeyValueError, match="without a gap"):
        STYLE.prefix(year=2012)
