"""The words that hide a sentence's subject, and the texts of the project in which they are looked for.

`tests/words_to_rewrite.txt` lists the files that still have some. `python -m tests.words` drops from that list the
files that are rewritten or gone. Nothing adds a file to it.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from .markdown import without_fences

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("words_to_rewrite.txt")
FOLDERS = ("src/lazulite", "tests", "benchmarks", "examples")
MESSAGES = (ROOT / "src" / "lazulite" / "cli", ROOT / "src" / "lazulite" / "app")
"""Packages whose string literals are messages for people."""

_HIDING = re.compile(r"\b(?:who|whoever|nobody|everybody|somebody|those\s+(?:that|who))\b", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def hiding(text: str) -> list[str]:
    """Return the words of a text that hide a subject, in order; code in backticks is left out."""
    return _HIDING.findall(_CODE.sub("", text))


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
    yield from ROOT.glob("*.md")
    yield from (ROOT / "docs").rglob("*.md")
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".md"} and "node_modules" not in path.parts:
                yield path


def hiding_files() -> set[str]:
    """Return the files that have such a word, named from the repository's root."""
    return {str(path.relative_to(ROOT)) for path in files() if any(map(hiding, texts(path)))}


def listed() -> list[str]:
    """Return the files that are not rewritten yet."""
    return LIST.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    found = hiding_files()
    LIST.write_text("".join(f"{name}\n" for name in listed() if name in found), encoding="utf-8")
