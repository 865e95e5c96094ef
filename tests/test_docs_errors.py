"""docs/errors.md has a row for each error code that the service returns, and the messages of commands."""

import ast
import re
from functools import cache

import pytest

import lazulite.queue  # noqa: F401 - it registers its codes
from lazulite.blob.errors import CONTAINER_MESSAGES, MESSAGES
from lazulite.protocol.errors import CATALOGUE
from lazulite.table.errors import MESSAGES as TABLE_MESSAGES

from .docs_support import ROOT, page_text, table_rows

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


def code_rows() -> dict[str, tuple[int, str]]:
    rows = [row for row in table_rows(PAGE) if len(row) == 4 and row[0].startswith("`")]
    found = {row[0].strip("`"): (int(row[1]), row[2]) for row in rows}
    assert len(found) == len(rows), "a code has two rows"
    return found


def returned() -> set[str]:
    """Return the codes that the service returns."""
    return CATALOGUE.keys() & literals()


def test_each_returned_code_has_a_row_with_its_status_and_message() -> None:
    assert code_rows() == {code: CATALOGUE[code] for code in returned()}


def test_the_other_codes_are_listed_as_never_returned() -> None:
    text = page_text(PAGE).partition("## Codes that")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", text)) == CATALOGUE.keys() - returned()


def test_other_messages_are_those_of_services_and_containers() -> None:
    expected = [("Blob service", MESSAGES), ("container", CONTAINER_MESSAGES), ("Table service", TABLE_MESSAGES)]
    rows = [row for row in table_rows(PAGE) if len(row) == 3 and row[0].startswith("`")]
    assert rows == [[f"`{code}`", where, text] for where, messages in expected for code, text in messages.items()]


def messages() -> list[str]:
    return [row[0] for row in table_rows(PAGE) if len(row) == 2 and row[0] not in {"message", "---"}]


@pytest.mark.parametrize("message", messages())
def test_messages_of_commands_are_those_of_the_code(message: str) -> None:
    fixed = max((part.strip() for part in re.split(r"\b[A-Z]{3,}\b", message)), key=len)
    assert any(fixed in literal for literal in literals()), fixed


def test_messages_of_commands_are_found() -> None:
    assert len(messages()) > 8
