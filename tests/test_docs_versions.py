"""docs/versions.md has the rows of the table in protocol/version.py, word for word and in its order."""

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path

from lazulite.protocol import version

from .docs_support import page_text, table_rows

PAGE = "docs/versions.md"


def changes() -> Iterator[list[str]]:
    """Return since, what and before of each constant, from the text that stands below it."""
    statements = ast.parse(Path(version.__file__).read_text(encoding="utf-8")).body
    for statement, following in itertools.pairwise(statements):
        match statement, following:
            case (
                ast.Assign(targets=[ast.Name(id=str(name))], value=ast.Constant(value=str(since))),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if name.endswith(("_SINCE", "_BEFORE")):
                what, _, before = " ".join(text.split()).partition(" Before: ")
                yield [since, what, before[:1].upper() + before[1:]]


def test_the_page_has_the_rows_of_the_table() -> None:
    found = list(changes())
    assert len(found) == sum(name.endswith(("_SINCE", "_BEFORE")) for name in vars(version))
    assert [row for row in table_rows(PAGE) if row[0][:2] == "20"] == found


def test_the_page_has_the_versions_of_requests_that_name_none() -> None:
    text = " ".join(page_text(PAGE).split())
    assert f"names none of them gets {version.NEWEST} if" in text
    assert f"else {version.UNSTATED}." in text


def test_no_version_stands_anywhere_else_in_the_code() -> None:
    known = {row[0] for row in changes()}
    root = Path(version.__file__).parent.parent
    for path in root.rglob("*.py"):
        if path == Path(version.__file__):
            continue
        strings = {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not strings & known, path
