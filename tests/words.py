"""Words that the project does not use: they hide a sentence's subject, or stand for one of the glossary's terms."""

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
_REPLACED = re.compile(
    r"""(?x)(?<![A-Za-z])(?:
        remember(?:s|ed|ing)?  # cached, kept
        | told                 # reported, notified
        | refus(?:e|es|ed|ing|als?)(?![ _]to\b)  # reject; a start is refused, and a connection of TCP
        | paced                # scheduled fairly
        | stamps?              # timestamp; an ETag
        | doorman | newcomer | foresight | foresee | heir | crumbs | outlet | inlet | outbox
    )(?![A-Za-z])""",
    re.IGNORECASE,
)
"""Words of the project's own, with the glossary's terms for them."""
_ALLOWED = re.compile(
    r"(?i)connections?[ _](?:attempts[ _])?(?:is|are|was|were)?[ _]?refused|connection is refused|refused? connections?"
)
"""TCP's own term."""
POSTGRES = ("src/lazulite/engine/postgres/", "tests/engine/postgres/")
"""Folders with SQL, whose column `stamp` keeps its name."""
PATTERNS = "patterns/"
"""The library that has the pattern of the transactional outbox."""
_CODE = re.compile(r"`[^`]*`")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def hiding(text: str) -> list[str]:
    """Return the words of a text that hide a subject, in order; code in backticks is left out."""
    return _HIDING.findall(_CODE.sub("", text))


def replaced(text: str) -> list[str]:
    """Return the words of a text that the glossary has other terms for, in order."""
    return _REPLACED.findall(_ALLOWED.sub("", text))


def names_and_comments(source: str) -> Iterator[str]:
    """Yield the names and comments of a module."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in {tokenize.NAME, tokenize.COMMENT}:
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


def files_with(words: re.Pattern[str]) -> Iterator[Path]:
    """Yield the files in which words stand anywhere: to parse all others takes a minute, and finds none."""
    return (path for path in files() if words.search(path.read_text(encoding="utf-8")))


def hiding_actors(source: str) -> list[str]:
    """Return the words of a module's comments and docstrings that stand for an actor; code in backticks is left out."""
    comments = [text for text in names_and_comments(source) if text.startswith("#")]
    return [word for text in (*comments, *docstrings(source)) for word in _ACTORS.findall(_CODE.sub("", text))]


def hiding_words() -> dict[str, list[str]]:
    """Return such words by their file, named from the repository's root."""
    found = {}
    for path in files_with(_HIDING):
        words = [word for text in texts(path) for word in hiding(text)]
        if path.suffix == ".py" and path != Path(__file__):
            words += hiding_actors(path.read_text(encoding="utf-8"))
        if words:
            found[str(path.relative_to(ROOT))] = words
    return found


def replaced_words() -> dict[str, list[str]]:
    """Return such words by their file, named from the repository's root.

    Of a module the names, comments and docstrings count. Of a page only words for which no other meaning is usual.
    """
    found = {}
    for path in files_with(_REPLACED):
        name = str(path.relative_to(ROOT))
        words: list[str] = []
        if path.suffix == ".md":
            prose = replaced(without_fences(path.read_text(encoding="utf-8")))
            words = [word for word in prose if word.lower() in {"told", "remembers", "remembered"}]
        if path.suffix == ".py" and path != Path(__file__):
            source = path.read_text(encoding="utf-8")
            words = [word for text in (*names_and_comments(source), *docstrings(source)) for word in replaced(text)]
            words = [word for word in words if "stamp" not in word.lower() or not name.startswith(POSTGRES)]
            words = [word for word in words if word.lower() != "outbox" or not name.startswith(PATTERNS)]
        if words:
            found[name] = words
    return found
