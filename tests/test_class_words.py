"""Each word in the name of a class is a term of the field or of the glossary, as a reviewed list has it.

`class_words.txt` has one word a line, in order. A new noun needs a line there, which a review can question.
`class_names_to_replace.txt` has classes whose names are no such terms, with the names that were proposed for them.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCES = ("src/lazulite", "patterns/src", "patterns/simulation/src")
LIST, TO_REPLACE = TESTS / "class_words.txt", TESTS / "class_names_to_replace.txt"
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z]|\d|$)|[A-Z]?[a-z]+|\d+")


def words_of(name: str) -> list[str]:
    """Return the words of a class's name, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def class_names() -> Iterator[tuple[str, str]]:
    """Yield the name of each class of the sources, and its file."""
    for folder in SOURCES:
        for path in sorted((TESTS.parent / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    yield node.name, str(path.relative_to(TESTS.parent))


def test_each_word_of_a_class_name_is_a_term() -> None:
    known = set(LIST.read_text(encoding="utf-8").split())
    replaced = {line.partition(" -> ")[0] for line in TO_REPLACE.read_text(encoding="utf-8").splitlines()}
    unknown = {
        f"{word}: {name} in {file}"
        for name, file in class_names()
        if name not in replaced
        for word in words_of(name)
        if word not in known
    }
    assert sorted(unknown) == [], (
        f"choose a term of the field or of docs/glossary.md; if it is one, add the word to {LIST.name}, in its order"
    )


@pytest.mark.parametrize("path", [LIST, TO_REPLACE], ids=lambda path: path.name)
def test_the_lists_are_sorted(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines == sorted(set(lines)), f"sort {path.name}, one line for each"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("TlsAcceptor", ["tls", "acceptor"]),
        ("_CORSRule", ["cors", "rule"]),
        ("Crc64", ["crc", "64"]),
        ("XMLReader2", ["xml", "reader", "2"]),
    ],
)
def test_words_of_a_name(name: str, words: list[str]) -> None:
    assert words_of(name) == words
