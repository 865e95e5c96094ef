"""Sentences name their subjects, and sentences of pages are short. Names of classes: test_class_words.py."""

import re
from pathlib import Path

import pytest

from .conformance.compatibility import read_sections
from .docs_support import PAGES, PATTERNS, ROOT, page_text
from .markdown import sentences
from .words import comments, docstrings, files, hiding, hiding_actors, hiding_words, python_texts

SENTENCE_WORDS_MAX = 25
PROTOCOL = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "protocol").glob("*.md"))


@pytest.mark.parametrize("page", PAGES + PROTOCOL + PATTERNS)
def test_sentences_of_a_page_are_short(page: str) -> None:
    assert long_sentences(page_text(page)) == []


def test_sentences_of_behaviours_are_short() -> None:
    texts = [text for each in read_sections() for row in each.behaviours for text in (row.does, row.why)]
    assert [long for text in texts for long in long_sentences(text)] == []


def long_sentences(text: str) -> list[str]:
    return [each for each in sentences(text) if len(each.split()) > SENTENCE_WORDS_MAX]


def test_sentences_are_of_paragraphs_items_and_cells() -> None:
    page = (
        "# A title\n\nOne `a b`\nline. [Two](x.md)!\n\n- three\n  lines\n- four\n\n| five | six. seven |\n|---|---|\n"
    )
    found = [each.strip() for each in sentences(page) if each.strip(" -\n")]
    assert found == ["A title", "One CODE line.", "Two!", "three lines", "four", "five", "six.", "seven"]


def test_no_file_has_words_that_hide_a_subject() -> None:
    assert hiding_words() == {}, "name the subject of these sentences"


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


def test_actors_are_found_in_comments_and_whole_docstrings() -> None:
    source = '"""First.\n\nNobody waits for those that `who` calls."""\nwho = 1  # whoever asks\n'
    assert hiding_actors(source) == ["whoever", "Nobody"]


def test_first_lines_of_docstrings_are_read() -> None:
    source = '"""First.\n\nSecond."""\nasync def f():\n    """Third."""\n    return "fourth"\n'
    assert list(python_texts(source)) == ["First.", "Third."]
    assert list(python_texts(source, messages=True)) == ["First.", "Third.", "fourth"]


PACKAGE = re.compile(
    r"\bpip3? install\b[^\n#]*?[ '\"]lazulite(?:-patterns)?(?=[\s'\"\[=<>~!`]|$)|\blazulite(?:-patterns)?\[[a-z]"
)
"""A package of this project by its name, which anyone may register on the public index."""
NAMING = {"tests/test_deploy.py": "it reads what the package needs"}
"""The file that may name the package, and why."""


def test_no_file_has_a_command_that_installs_a_package_of_this_name_from_the_index() -> None:
    for wrong in ("pip install lazulite", "pip install -U 'lazulite'", "`pip install lazulite`", "lazulite" + "[all]"):
        assert PACKAGE.search(wrong), wrong
    for right in ("pip install .", "pip install ../lazulite pytest", "pip install './patterns[queue]'"):
        assert not PACKAGE.search(right), right
    named = []
    for path in (*files(), *(ROOT / "deploy").iterdir(), ROOT / "Makefile"):
        name = str(path.relative_to(ROOT))
        if path != Path(__file__) and name not in NAMING and PACKAGE.search(path.read_text(encoding="utf-8")):
            named.append(name)
    assert named == []


def test_comments_and_docstrings_are_read() -> None:
    source = 'first = "second"  # third\n"""Fourth."""\n'
    assert list(comments(source)) == ["# third"]
    assert list(docstrings(source)) == ["Fourth."]
