"""A module holds one noun and everything that runs with it; two nouns are what divides it.

So a long module is suspected of two nouns, and a short one with a single importer of being a part of its importer.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
LINES_MAX = {
    "src": 600,
    "benchmarks": 600,
    "tests": 800,
    "patterns/src": 600,
    "patterns/simulation/src": 600,
    "patterns/tests": 800,
}
"""The lines beyond which a module is suspected of two nouns, by folder."""
LINES_MIN = 60
"""A shorter module of the server belongs into its single importer, unless it is a table of constants."""
APART: Mapping[str, str] = {
    "lazulite.blob.blobs.snapshots": "an operation, as its neighbours are; the table of routes names them all",
    "lazulite.blob.storage.expiry": "rows below the call of an operation, which only starts them",
    "lazulite.blob.tags.blob_tags": "an operation, as its neighbours are; the table of routes names them all",
    "lazulite.cli.transfer_flags": "the arguments of two commands, beside the parser of all",
    "lazulite.server.middleware.by_host": "a middleware: servers choose among them",
    "lazulite.server.middleware.scheduling": "a middleware: applications choose among them",
    "lazulite.server.observability.debug_log": "a log: processes choose among them",
}
"""Short modules with a single importer that stay apart, and why."""
PAGES = "lazulite.ui.pages."
"""Modules that stay apart, too: each has the pages of one noun, and the table of routes names them all."""


def longer() -> Iterator[str]:
    """Yield the modules that exceed their folder's limit, named from the repository's root."""
    for folder, lines_max in LINES_MAX.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "node_modules" not in path.parts and len(path.read_text(encoding="utf-8").splitlines()) > lines_max:
                yield path.relative_to(ROOT).as_posix()


def trees() -> dict[str, ast.Module]:
    """Return the modules of the server, by name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module imports, as if each were a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def parts_of_another() -> Iterator[str]:
    """Yield the short modules that define a function or a class, and that one module alone imports."""
    modules = trees()
    importers: dict[str, set[str]] = {name: set() for name in modules}
    for importer, tree in modules.items():
        for name in imported(tree):
            importers.get(name, set()).add(importer)
    for name, tree in modules.items():
        defines = any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in tree.body)
        is_short = (tree.body[-1].end_lineno or 0) < LINES_MIN if tree.body else False
        if defines and is_short and len(importers[name]) == 1 and not name.startswith(PAGES):
            yield name


def test_modules_are_short() -> None:
    assert list(longer()) == [], "look for a second noun in these modules"


def test_a_short_module_with_a_single_importer_is_a_part_of_it() -> None:
    assert sorted(parts_of_another()) == sorted(APART), "join each with its importer, or say in APART why not"
