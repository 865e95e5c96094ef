"""No regular expression repeats a group possessively.

Before 3.11.5, Python accepts what such a repetition matched of an iteration that failed (python/cpython, issue 106052).
Debian 12 has 3.11.2. An atomic group around a greedy repetition means the same, and matches rightly on all versions.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_ESCAPED, _CLASS = re.compile(r"\\."), re.compile(r"\[\^?\]?[^\]]*\]")
_POSSESSIVE_GROUP = re.compile(r"(?:\)|%[bs])(?:[*+?]|\{[0-9,%d]*\})\+")


def repeats_a_group(expression: str) -> bool:
    return ("(?" in expression or "%b" in expression) and _POSSESSIVE_GROUP.search(
        _CLASS.sub("c", _ESCAPED.sub("c", expression))
    ) is not None


def literals(source: str) -> Iterator[tuple[int, str]]:
    """Yield each string and its line; bytes are read as Latin-1."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            value = node.value
            yield node.lineno, value if isinstance(value, str) else value.decode("latin-1")


def test_groups_are_not_repeated_possessively() -> None:
    folders = ("src", "patterns/src", "patterns/simulation/src")
    modules = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in modules
        for line, text in literals(path.read_text(encoding="utf-8"))
        if repeats_a_group(text)
    ]
    assert modules
    assert not found, "\n".join(found)


@pytest.mark.parametrize("expression", ["(?:ab?c)*+", "(?:a|b){1,%d}+", r"(?s)x(\))?+", "<%b*+>"])
def test_possessive_groups_are_found(expression: str) -> None:
    assert repeats_a_group(expression)


@pytest.mark.parametrize("expression", ["(?>(?:ab?c)*)", "(?:[)*+]a)", r"(?:\)*+)", "(?:[^']*+')", "(?:a)[b]*+"])
def test_other_repetitions_are_accepted(expression: str) -> None:
    assert not repeats_a_group(expression)
