"""Reference §11.2, §11.3, §23: what a batch may hold at all — size, queries, change sets, kinds of operation."""

import json

import pytest

from .batches import (
    CRLF,
    PLAIN,
    Layout,
    Operation,
    body,
    changeset,
    insert,
    operation,
    query_body,
    sole_part,
    submit,
    url,
)
from .client import Client
from .tables import Table, entity

BATCH_BYTES_MAX = 4 * 1024 * 1024


def _padded(table: Table, size: int) -> str:
    """A batch of one insert, padded to a size in bytes by blanks in its JSON."""
    content = json.dumps(entity("p", "r"))
    text = body([operation("POST", url(table), content)])
    return text.replace(content, content[:-1] + " " * (size - len(text.encode())) + "}")


def test_batch_body_of_four_mebibytes_is_accepted(table: Table) -> None:
    text = _padded(table, BATCH_BYTES_MAX)
    assert len(text) == BATCH_BYTES_MAX
    assert changeset(submit(table.client, text).expect(202))[0].status == 201


def test_more_than_four_mebibytes(table: Table) -> None:
    rejection = submit(table.client, _padded(table, BATCH_BYTES_MAX + 1)).rejection
    message = "The request body is too large and exceeds the maximum permissible limit."
    assert rejection == (413, "RequestBodyTooLarge", message)
    assert table.page().rows == []


def test_a_query_and_a_change_do_not_mix(table: Table) -> None:
    get = operation("GET", url(table) + "()")
    text = query_body([get], [insert(table, entity("p", "1"))])
    answer = submit(table.client, text)
    code = answer.code if answer.status != 202 else sole_part(answer).rejection[:2]
    assert code == (400, "InvalidInput")
    assert table.page().rows == []


def test_two_queries_do_not_mix(table: Table) -> None:
    answer = submit(table.client, query_body([operation("GET", url(table) + "()")] * 2))
    code = answer.code if answer.status != 202 else sole_part(answer).rejection[:2]
    assert code == (400, "InvalidInput")


def test_a_query_inside_a_change_set_is_rejected(table: Table) -> None:
    answer = submit(table.client, body([insert(table, entity("p", "1")), operation("GET", url(table) + "()")]))
    code = answer.code if answer.status != 202 else sole_part(answer).rejection[:2]
    assert code == (400, "InvalidInput")
    assert table.page().rows == []


def test_two_change_sets_are_rejected(table: Table) -> None:
    first = body([insert(table, entity("p", "1"))], Layout(closed=False))
    second = body([insert(table, entity("p", "2"))], Layout(changeset_type="multipart/mixed; boundary=changeset_other"))
    text = f"{first}--{PLAIN.changeset}--{CRLF}{CRLF}{second}"
    answer = submit(table.client, text)
    status = answer.status if answer.status != 202 else sole_part(answer).status
    assert status == 400
    assert table.page().rows == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"--{PLAIN.batch}--{CRLF}",
        body([]),
        f"--{PLAIN.batch}{CRLF}Content-Type: {PLAIN.changeset_type}{CRLF}{CRLF}{CRLF}--{PLAIN.batch}--{CRLF}",
    ],
    ids=["nothing", "no change set", "empty change set", "change set without delimiters"],
)
@pytest.mark.unverified
def test_an_empty_batch_is_answered(client: Client, text: str) -> None:
    answer = submit(client, text)
    assert answer.status in {202, 400}


BROKEN = {
    "no boundary": ("multipart/mixed", None),
    "another boundary": ("multipart/mixed; boundary=batch_other", None),
    "not multipart": ("application/json", None),
    "nonsense": (PLAIN.content_type, "nonsense"),
    "part without request": (
        PLAIN.content_type,
        f"--{PLAIN.batch}{CRLF}Content-Type: {PLAIN.changeset_type}{CRLF}{CRLF}--{PLAIN.changeset}{CRLF}"
        f"Content-Type: application/http{CRLF}{CRLF}{CRLF}--{PLAIN.changeset}--{CRLF}--{PLAIN.batch}--{CRLF}",
    ),
    "part with a broken request line": (
        PLAIN.content_type,
        f"--{PLAIN.batch}{CRLF}Content-Type: {PLAIN.changeset_type}{CRLF}{CRLF}--{PLAIN.changeset}{CRLF}"
        f"Content-Type: application/http{CRLF}{CRLF}NONSENSE{CRLF}{CRLF}"
        f"--{PLAIN.changeset}--{CRLF}--{PLAIN.batch}--{CRLF}",
    ),
}


@pytest.mark.parametrize(("content_type", "text"), BROKEN.values(), ids=BROKEN)
def test_a_malformed_batch_fails_outside(table: Table, content_type: str, text: str | None) -> None:
    text = text if text is not None else body([insert(table, entity("p", "1"))])
    answer = submit(table.client, text, headers={"Content-Type": content_type})
    assert answer.status in {400, 415}
    assert answer.rejection.code != ""
    assert table.page().rows == []


INNER = {
    "table operation": operation("POST", "/Tables", {"TableName": "neverMade"}),
    "batch in a batch": operation("POST", "/$batch", "x"),
    "no such resource": operation("PUT", "/a/b/c", {}),
    "properties": operation("PUT", "/?restype=service&comp=properties", "<x/>"),
    "unknown verb": operation("FETCH", "/t(PartitionKey='p',RowKey='r')", {}),
}


@pytest.mark.parametrize("change", INNER.values(), ids=INNER)
def test_other_operations_do_not_belong_in_a_batch(client: Client, change: Operation) -> None:
    whole = change._replace(url=client.endpoint.base.rstrip("/") + change.url)
    answer = submit(client, body([whole]))
    status = answer.status if answer.status != 202 else sole_part(answer).status
    assert 400 <= status < 500 or status == 501


def test_access_policies_are_not_set_in_a_batch(table: Table) -> None:
    answer = submit(table.client, body([operation("PUT", url(table) + "?comp=acl", "<SignedIdentifiers/>")]))
    status = answer.status if answer.status != 202 else sole_part(answer).status
    assert 400 <= status < 500 or status == 501


@pytest.mark.unverified
def test_references_to_content_ids_are_rejected(table: Table) -> None:
    changes = [insert(table, entity("p", "1"), Content_ID="1"), operation("MERGE", "$1", {"A": 1})]
    answer = submit(table.client, body(changes))
    status = answer.status if answer.status != 202 else sole_part(answer).status
    assert 400 <= status < 500
    assert table.page().rows == []
