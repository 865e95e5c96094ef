"""Sentences name their subjects: no text says "who" or "nobody", but in files that are still to be rewritten."""

import pytest

from .words import hiding, hiding_files, listed, python_texts

LISTED_MAX = 94
"""How many files may be on the list. Lower it whenever the list gets shorter; never raise it."""


def test_words_that_hide_a_subject_are_in_listed_files_only() -> None:
    assert hiding_files() - set(listed()) == set(), "name the subject of these sentences"


def test_rewritten_files_are_off_the_list() -> None:
    assert set(listed()) - hiding_files() == set(), "run: python -m tests.words"


def test_list_of_files_to_rewrite_only_shrinks() -> None:
    assert len(set(listed())) == len(listed()) <= LISTED_MAX
    assert listed() == sorted(listed())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Who asks waits.", ["Who"]),
        ("The client that asks waits.", []),
        ("tell whoever listens, and nobody else", ["whoever", "nobody"]),
        ("Those that wait go; those keys stay.", ["Those that"]),
        ("those\nwho", ["those\nwho"]),
        ("the whole of it", []),
        ("`nobody` is a user", []),
    ],
)
def test_a_hiding_word_is_found_as_a_word(text: str, words: list[str]) -> None:
    assert hiding(text) == words


def test_first_lines_of_docstrings_are_read() -> None:
    source = '"""First.\n\nSecond."""\nasync def f():\n    """Third."""\n    return "fourth"\n'
    assert list(python_texts(source)) == ["First.", "Third."]
    assert list(python_texts(source, messages=True)) == ["First.", "Third.", "fourth"]
