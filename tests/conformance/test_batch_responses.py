"""Reference §11.4: the parts of a batch response, header by header. The layout itself is the parser's concern."""

import json
import re

import pytest

from .batches import (
    Operation,
    Part,
    body,
    changeset,
    insert,
    operation,
    query_body,
    query_part,
    run,
    sole_part,
    submit,
    url,
)
from .client import FULL, MINIMAL, NONE
from .tables import STALE, Table, entity

NO_STORE = ["X-Content-Type-Options", "Cache-Control"]
INSERT = [*NO_STORE, "Preference-Applied", "DataServiceVersion", "Location", "DataServiceId", "ETag"]
ECHO = ["DataServiceVersion", "Content-Type", *NO_STORE, "Preference-Applied", "Location", "ETag"]
ECHO_UNASKED = [name for name in ECHO if name != "Preference-Applied"]
UPDATE = [*NO_STORE, "DataServiceVersion", "ETag"]
DELETE = [*NO_STORE, "DataServiceVersion"]
QUERY = ["DataServiceVersion", "Content-Type", *NO_STORE, "ETag"]
JSON_TYPE = f"{MINIMAL};streaming=true;charset=utf-8"


def values(part: Part) -> tuple[str | None, ...]:
    """The headers that have one value only."""
    return tuple(part.header(name) for name in ("X-Content-Type-Options", "Cache-Control", "DataServiceVersion"))


def test_insert_without_echo(table: Table) -> None:
    (part,) = run(table.client, insert(table, entity("p", "r")))
    assert (part.status, part.reason, part.body) == (204, "No Content", b"")
    assert part.names == INSERT
    assert values(part) == ("nosniff", "no-cache", "3.0;")
    location = f"{table.client.endpoint.base}{table.name}(PartitionKey='p',RowKey='r')"
    assert (part.header("Location"), part.header("DataServiceId")) == (location, location)
    assert part.header("Preference-Applied") == "return-no-content"
    assert part.header("ETag") == table.get("p", "r").etag


@pytest.mark.parametrize("level", [NONE, MINIMAL, FULL])
@pytest.mark.parametrize("prefer", [True, False])
def test_insert_with_echo(table: Table, level: str, prefer: bool) -> None:
    headers = {"Accept": level} | ({"Prefer": "return-content"} if prefer else {})
    (part,) = run(table.client, operation("POST", url(table), entity("p", "r", A=1), **headers))
    assert (part.status, part.reason) == (201, "Created")
    assert part.names == (ECHO if prefer else ECHO_UNASKED)
    assert values(part) == ("nosniff", "no-cache", "3.0;")
    assert part.header("Content-Type") == f"{level};streaming=true;charset=utf-8"
    assert part.body == table.get("p", "r", accept=level).body


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
@pytest.mark.parametrize("condition", [None, "*"])
def test_part_of_an_update(table: Table, method: str, condition: str | None) -> None:
    table.add(entity("p", "r"))
    headers = {"If_Match": condition} if condition else {}
    (part,) = run(table.client, operation(method, url(table, table.at("p", "r")), {"A": 1}, **headers))
    assert (part.status, part.reason, part.body) == (204, "No Content", b"")
    assert part.names == UPDATE
    assert values(part) == ("nosniff", "no-cache", "1.0;")
    assert part.header("ETag") == table.get("p", "r").etag


def test_part_of_a_delete(table: Table) -> None:
    table.add(entity("p", "r"))
    (part,) = run(table.client, operation("DELETE", url(table, table.at("p", "r")), If_Match="*"))
    assert (part.status, part.reason, part.body) == (204, "No Content", b"")
    assert part.names == DELETE
    assert values(part) == ("nosniff", "no-cache", "1.0;")


def test_part_of_a_query(table: Table) -> None:
    table.add(entity("p", "r", A=1))
    get = operation("GET", url(table, table.at("p", "r")))
    part = query_part(submit(table.client, query_body([get])).expect(202))
    assert [name for name in part.names if name != "Server-Timing"] == QUERY
    assert values(part) == ("nosniff", "no-cache", "3.0;")
    assert part.body == table.get("p", "r").body
    assert part.header("ETag") == table.get("p", "r").etag


def test_collection_query(table: Table) -> None:
    table.add(entity("p", "r", A=1))
    part = query_part(submit(table.client, query_body([operation("GET", url(table) + "()")])).expect(202))
    assert [name for name in part.names if name != "Server-Timing"] == QUERY[:-1]
    assert part.body == table.query().body


def test_a_query_with_more_carries_the_continuation(table: Table) -> None:
    table.add(entity("p", "1"), entity("p", "2"))
    part = query_part(submit(table.client, query_body([operation("GET", url(table) + "?$top=1")])).expect(202))
    assert part.header("x-ms-continuation-NextPartitionKey")
    assert part.header("x-ms-continuation-NextRowKey")


def test_parts_stand_in_the_order_of_requests(table: Table) -> None:
    table.add(entity("p", "b"))
    parts = run(
        table.client,
        insert(table, entity("p", "c")),
        operation("DELETE", url(table, table.at("p", "b")), If_Match="*"),
        operation("POST", url(table), entity("p", "a")),
        operation("MERGE", url(table, table.at("p", "d")), {}),
    )
    assert [part.names for part in parts] == [INSERT, DELETE, ECHO_UNASKED, UPDATE]
    assert str(parts[0].header("Location")).endswith("RowKey='c')")


def test_content_id_among_the_inner_headers_is_echoed_first(table: Table) -> None:
    table.add(entity("p", "gone"))
    changes = [
        insert(table, entity("p", "a"), Content_ID="1"),
        operation("MERGE", url(table, table.at("p", "b")), {}, Content_ID="2"),
        operation("DELETE", url(table, table.at("p", "gone")), If_Match="*", Content_ID="37"),
        insert(table, entity("p", "c")),
    ]
    parts = run(table.client, *changes)
    assert [part.header("Content-ID") for part in parts] == ["1", "2", "37", None]
    assert [part.names[0] for part in parts[:3]] == ["Content-ID"] * 3
    assert parts[0].names == ["Content-ID", *INSERT]


@pytest.mark.unverified
def test_content_id_among_the_part_headers_does_no_harm(table: Table) -> None:
    changes = [insert(table, entity("p", f"{row}"))._replace(mime=(("Content-ID", f"{row}"),)) for row in range(3)]
    parts = run(table.client, *changes)
    assert [part.status for part in parts] == [204] * 3
    assert all(part.header("Content-ID") in {None, f"{row}"} for row, part in enumerate(parts))


def test_part_of_an_error(table: Table) -> None:
    table.add(entity("p", "r"))
    answer = submit(table.client, body([insert(table, entity("p", "a")), insert(table, entity("p", "r"))])).expect(202)
    (part,) = changeset(answer)
    assert (part.status, part.reason) == (409, "Conflict")
    assert part.names == [*NO_STORE, "Preference-Applied", "DataServiceVersion", "Content-Type"]
    assert values(part) == ("nosniff", "no-cache", "3.0;")
    assert part.header("Preference-Applied") == "return-no-content"
    assert part.header("Content-Type") == JSON_TYPE
    text = part.json()["odata.error"]["message"]["value"]
    expected = r"1:The specified entity already exists\.\nRequestId:(.*)\nTime:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z"
    match = re.fullmatch(expected, text)
    assert match, text
    assert match[1] == answer.header("x-ms-request-id")
    body_text = json.dumps(
        {"odata.error": {"code": "EntityAlreadyExists", "message": {"lang": "en-US", "value": text}}}
    )
    assert part.body.decode() == body_text.replace('": ', '":').replace('", "', '","')


REASONS = {
    404: ("Not Found", "ResourceNotFound"),
    412: ("Precondition Failed", "UpdateConditionNotSatisfied"),
    409: ("Conflict", "EntityAlreadyExists"),
    400: ("Bad Request", "InvalidInput"),
}


@pytest.mark.parametrize("status", REASONS)
def test_natural_statuses(table: Table, status: int) -> None:
    table.add(entity("p", "r"))
    changes: dict[int, Operation] = {
        404: operation("PUT", url(table, table.at("p", "none")), {}, If_Match="*"),
        412: operation("PUT", url(table, table.at("p", "r")), {}, If_Match=STALE),
        409: insert(table, entity("p", "r")),
        400: operation("POST", url(table), '{"PartitionKey":"p","RowKey":"x","A":{}}'),
    }
    part = sole_part(submit(table.client, body([changes[status]])).expect(202))
    assert (part.status, part.reason, part.rejection[1]) == (status, *REASONS[status])


def test_a_lone_query_that_fails(table: Table) -> None:
    get = operation("GET", url(table, table.at("p", "none")))
    part = sole_part(submit(table.client, query_body([get])).expect(202))
    assert part.rejection[:2] == (404, "ResourceNotFound")
    assert part.rejection[2:] in {
        (0, "The specified resource does not exist."),
        (None, "The specified resource does not exist."),
    }
    assert part.header("Content-Type") == JSON_TYPE


def test_only_the_failing_operation_answers(table: Table) -> None:
    table.add(entity("p", "5"))
    parts = run(table.client, *(insert(table, entity("p", f"{row}")) for row in range(10)))
    assert [part.rejection for part in parts] == [
        (409, "EntityAlreadyExists", 5, "The specified entity already exists.")
    ]
