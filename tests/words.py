"""Words that hide the subject of a sentence."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from .docs_support import ROOT_PAGES
from .markdown import without_fences

ROOT = Path(__file__).parents[1]
FOLDERS = ("src/lazulite", "tests", "benchmarks", "examples", "patterns")
MESSAGES = (ROOT / "src" / "lazulite" / "cli", ROOT / "src" / "lazulite" / "app")
"""Packages whose string literals are messages for people."""

_HIDING = re.compile(r"\b(?:who|whoever|nobody|everybody|somebody|those\s+(?:that|who))\b", re.IGNORECASE)
_ACTORS = re.compile(r"\b(?:who|whoever|nobody|everybody|somebody)\b", re.IGNORECASE)
"""Of these words, the ones that comments and the rest of a docstring do without, too."""
_CODE = re.compile(r"`[^`]*`")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def hiding(text: str) -> list[str]:
    """Return the words of a text that hide a subject, in order; code in backticks is left out."""
    return _HIDING.findall(_CODE.sub("", text))


def comments(source: str) -> Iterator[str]:
    """Yield the comments of a module."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def docstrings(source: str) -> Iterator[str]:
    """Yield the docstrings of a module, those of its fields included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def python_texts(source: str, messages: bool = False) -> Iterator[str]:
    """Yield the first line of each docstring of a module, and with `messages` its other string literals."""
    docstrings = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and (docstring := ast.get_docstring(node, clean=False)):
            docstrings.add(docstring)
            yield docstring.strip().partition("\n")[0]
    if messages:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in docstrings:
                yield node.value


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a file that the rule is about: a page's prose, or what `python_texts` finds."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield without_fences(source)
    else:
        yield from python_texts(source, any(path.is_relative_to(each) for each in MESSAGES))


def files() -> Iterator[Path]:
    """Yield every page and every module, but for generated and installed ones."""
    yield from ROOT_PAGES
    yield from (ROOT / "docs").rglob("*.md")
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".md"} and "node_modules" not in path.parts:
                yield path


def hiding_actors(source: str) -> list[str]:
    """Return the words of a module's comments and docstrings that stand for an actor; code in backticks is left out."""
    return [word for text in (*comments(source), *docstrings(source)) for word in _ACTORS.findall(_CODE.sub("", text))]


def hiding_words() -> dict[str, list[str]]:
    """Return such words by their file, named from the repository's root."""
    found = {}
    for path in files():
        if not _HIDING.search(path.read_text(encoding="utf-8")):  # To parse all others takes a minute, and finds none.
            continue
        words = [word for text in texts(path) for word in hiding(text)]
        if path.suffix == ".py" and path != Path(__file__):
            words += hiding_actors(path.read_text(encoding="utf-8"))
        if words:
            found[str(path.relative_to(ROOT))] = words
    return found
