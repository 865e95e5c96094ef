"""docs/errors.md has a row for each error code that the service returns, and the messages of commands."""

import ast
import re
from functools import cache

import pytest

from lazulite.protocol.errors import CATALOGUE

from .docs_support import ROOT, page_text, table_rows
from .pages import errors_page, with_messages

PAGE = "docs/errors.md"
SOURCES = sorted((ROOT / "src").rglob("*.py"))
LISTS = ast.Assign | ast.AnnAssign
"""What an `errors.py` has its codes in."""


@cache
def literals() -> set[str]:
    """Return all string literals of the sources, without the lists of codes."""
    statements = (
        statement
        for path in SOURCES
        for statement in ast.parse(path.read_text(encoding="utf-8")).body
        if path.name != "errors.py" or not isinstance(statement, LISTS)
    )
    nodes = (node for statement in statements for node in ast.walk(statement))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def code_rows() -> set[str]:
    rows = [row[0].strip("`") for row in table_rows(PAGE) if len(row) == 4 and row[0].startswith("`")]
    assert len(set(rows)) == len(rows), "a code has two rows"
    return set(rows)


def returned() -> set[str]:
    """Return the codes that the service returns."""
    return CATALOGUE.keys() & literals()


def test_each_returned_code_has_a_row_with_its_status_and_message() -> None:
    assert code_rows() == returned(), "give each code a row with its cause and remedy"
    assert page_text(PAGE) == errors_page(page_text(PAGE)), "stale: run `make pages`"


def test_a_row_of_a_code_gets_its_status_and_message() -> None:
    page = "| `InvalidUri` | | | A cause. |\n| other | | | row |\n"
    status, message = CATALOGUE["InvalidUri"]
    assert with_messages(page) == f"| `InvalidUri` | {status} | {message} | A cause. |\n| other | | | row |\n"


def test_the_other_codes_are_listed_as_never_returned() -> None:
    text = page_text(PAGE).partition("## Codes that")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", text)) == CATALOGUE.keys() - returned()


def messages() -> list[str]:
    return [row[0] for row in table_rows(PAGE) if len(row) == 2 and row[0] not in {"message", "---"}]


@pytest.mark.parametrize("message", messages())
def test_messages_of_commands_are_those_of_the_code(message: str) -> None:
    fixed = max((part.strip() for part in re.split(r"\b[A-Z]{3,}\b", message)), key=len)
    assert any(fixed in literal for literal in literals()), fixed


def test_messages_of_commands_are_found() -> None:
    assert len(messages()) > 8
