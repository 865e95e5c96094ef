"""docs/versions.md has the rows of protocol/version.py and of each service, and no version stands elsewhere."""

import ast
from pathlib import Path
from types import ModuleType

from lazulite.auth.sas import SIGNED_VERSION
from lazulite.cli import service_client
from lazulite.protocol import version

from .docs_support import page_text
from .pages import MODULES, changes, versions_page

PAGE = "docs/versions.md"

SENT = {SIGNED_VERSION, service_client._VERSION}
"""The versions that Lazulite itself signs tokens with and sends, which decide nothing."""


def path_of(module: ModuleType) -> Path:
    assert module.__file__ is not None
    return Path(module.__file__)


def test_the_page_has_the_rows_of_the_modules() -> None:
    found = [row for module in MODULES for row in changes(module)]
    assert len(found) == sum(name.endswith(("_SINCE", "_BEFORE")) for module in MODULES for name in vars(module))
    assert page_text(PAGE) == versions_page(page_text(PAGE)), "stale: run `make pages`"


def test_the_page_has_the_versions_of_requests_that_name_none() -> None:
    text = " ".join(page_text(PAGE).split())
    assert f"names none of them gets {version.NEWEST} if" in text
    assert f"other requests that name no version get {version.DEFAULT_VERSION}." in text


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
