"""A response's opening is made of constants, stored text and checked values: nothing of a request begins a line."""

import ast
from pathlib import Path

import pytest

import lazulite

from .world import ENTITY, JSON, World

SOURCE = Path(lazulite.__file__).parent
MAKERS = {
    "blob/blobs/read_blob.py",
    "blob/requests/operation.py",
    "protocol/message.py",
    "queue/operations/messages.py",
    "service/kernel.py",
    "table/batch/transaction.py",
    "table/operations/entity_read.py",
    "table/operations/entity_writes.py",
    "table/operations/tables.py",
    "table/responses.py",
}
"""The modules that make lines of a head; a review of one more adds it here."""
NAMES = {
    "Cache-Control", "Content-Type", "DataServiceId", "DataServiceVersion", "Date", "ETag", "Location",
    "Preference-Applied", "Server", "Server-Timing", "X-Content-Type-Options", "x-ms-client-request-id",
    "x-ms-request-id", "x-ms-version",
}  # fmt: skip
HOSTILE = "a\r\nSet-Cookie: x"


def _makes_lines(source: str) -> bool:
    """Return whether a module makes a response with an `opening`, or sets one."""
    for node in ast.walk(ast.parse(source)):
        called = node.func if isinstance(node, ast.Call) else None
        makes = isinstance(called, ast.Name) and called.id == "Response"
        if makes and isinstance(node, ast.Call) and any(each.arg in ("opening", None) for each in node.keywords):
            return True
        if isinstance(node, ast.Attribute) and node.attr == "opening" and isinstance(node.ctx, ast.Store):
            return True
    return False


def test_only_reviewed_modules_make_openings() -> None:
    found = {
        str(path.relative_to(SOURCE))
        for part in ("protocol", "service", "table", "queue", "blob")
        for path in (SOURCE / part).rglob("*.py")
        if _makes_lines(path.read_text(encoding="utf-8"))
    }
    assert found <= MAKERS


@pytest.mark.parametrize("name", ["x-ms-client-request-id", "origin", "host", "prefer", "user-agent", "x-ms-date"])
@pytest.mark.parametrize("steady", [True, False])
async def test_no_field_of_a_request_begins_a_line(name: str, *, steady: bool) -> None:
    world = await World().prepare()
    for version in ("2019-02-02", "2013-08-15"):
        headers = {"x-ms-version": version, name: HOSTILE, "accept": JSON}
        for number in range(4):
            body = {"PartitionKey": "p", "RowKey": f"{HOSTILE}{version}{number}"}
            for method, path, sent in (("GET", ENTITY, b""), ("PUT", ENTITY, {"A": HOSTILE}), ("POST", "orders", body)):
                answer = await world.ask(method, path, body=sent, headers=headers, steady=steady)
                assert "Set-Cookie" not in dict(answer.fields)
                if answer.status < 300 and name != "host":
                    assert {field for field, _ in answer.fields} <= NAMES
                    assert not any(set("\r\n\0") & set(value) for _, value in answer.fields)


@pytest.mark.parametrize(
    "option", [f"$format={HOSTILE}", f"timeout=5{HOSTILE}", f"$select={HOSTILE}", f"api-version={HOSTILE}"]
)
async def test_no_option_of_a_request_begins_a_line(option: str) -> None:
    world = await World().prepare()
    for _ in range(3):
        answer = await world.ask("GET", query=f"{option}&{world.sas()}")
        assert "Set-Cookie" not in dict(answer.fields)
