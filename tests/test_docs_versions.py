"""docs/versions.md has the rows of protocol/version.py and of each service, word for word and oldest first."""

import ast
import itertools
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from types import ModuleType

from lazulite.auth.sas import SIGNED_VERSION
from lazulite.blob import versions as blob_versions
from lazulite.cli import service_client
from lazulite.protocol import version
from lazulite.queue import versions as queue_versions
from lazulite.table import versions as table_versions

from .docs_support import page_text, table_rows

PAGE = "docs/versions.md"
MODULES = (table_versions, queue_versions, blob_versions, version)

SENT = {SIGNED_VERSION, service_client._VERSION}
"""The versions that Lazulite itself signs tokens with and sends, which decide nothing."""


def path_of(module: ModuleType) -> Path:
    assert module.__file__ is not None
    return Path(module.__file__)


def changes(module: ModuleType) -> Iterator[list[str]]:
    """Yield since, what and before of each constant of a module, from the text that stands below it."""
    statements = ast.parse(path_of(module).read_text(encoding="utf-8")).body
    for statement, following in itertools.pairwise(statements):
        match statement, following:
            case (
                ast.Assign(targets=[ast.Name(id=str(name))], value=ast.Constant(value=str(since))),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if name.endswith(("_SINCE", "_BEFORE")):
                what, _, before = " ".join(text.split()).partition(" Before: ")
                yield [since, what, before[:1].upper() + before[1:]]


def test_the_page_has_the_rows_of_the_table() -> None:
    found = [row for module in MODULES for row in changes(module)]
    assert len(found) == sum(name.endswith(("_SINCE", "_BEFORE")) for module in MODULES for name in vars(module))
    assert [row for row in table_rows(PAGE) if row[0][:2] == "20"] == sorted(found, key=itemgetter(0))


def test_the_page_has_the_headers_and_elements_of_blobs() -> None:
    found = [[f"`{name}`", "response header", since, ""] for name, since in blob_versions.RESPONSE_HEADERS.items()]
    for (operation, name), since in blob_versions.LATER_HEADERS.items():
        found.append([f"`{name}`", f"response header of {operation}", since, ""])
    for what, versions in (
        ("element of a blob", blob_versions.BLOB_ELEMENTS),
        ("element of a snapshot", blob_versions.SNAPSHOT_ELEMENTS),
        ("element of a container", blob_versions.CONTAINER_ELEMENTS),
        ("word of `include` of blobs", blob_versions.BLOB_INCLUDES),
        ("word of `include` of containers", blob_versions.CONTAINER_INCLUDES),
    ):
        found += [[f"`{name}`", what, since, ""] for name, since in versions.items()]
    found += [[f"`{name}`", "element of a list", "", until] for name, until in blob_versions.ENDED_ELEMENTS.items()]
    assert sorted(row for row in table_rows(PAGE) if len(row) == 4 and row[0].startswith("`")) == sorted(found)


def test_the_page_has_the_versions_of_requests_that_name_none() -> None:
    text = " ".join(page_text(PAGE).split())
    assert f"names none of them gets {version.NEWEST} if" in text
    assert f"other requests that name no version get {version.UNSTATED}." in text


def test_no_version_stands_anywhere_else_in_the_code() -> None:
    known = {row[0] for module in MODULES for row in changes(module)} - SENT
    root = path_of(version).parent.parent
    for path in root.rglob("*.py"):
        if path in map(path_of, MODULES):
            continue
        strings = {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not strings & known, path
