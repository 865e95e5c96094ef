"""Reference §11.1, §11.3, §23: every operation in a batch, and every layout that a batch may have."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from .batches import (
    PLAIN,
    Layout,
    Operation,
    body,
    changeset,
    insert,
    operation,
    query_body,
    query_part,
    run,
    submit,
    url,
)
from .client import NONE, Client
from .tables import KEYS, STALE, Entity, Table, entity, page


class Kind(NamedTuple):
    """An operation on (p, r), which holds A=1 beforehand, and what is there afterwards (None: nothing)."""

    method: str
    headers: dict[str, str]
    after: Entity | None


KINDS = {
    "replace": Kind("PUT", {"If_Match": "*"}, {"B": 2}),
    "merge": Kind("MERGE", {"If_Match": "*"}, {"A": 1, "B": 2}),
    "patch": Kind("PATCH", {"If_Match": "*"}, {"A": 1, "B": 2}),
    "insert or replace": Kind("PUT", {}, {"B": 2}),
    "insert or merge": Kind("MERGE", {}, {"A": 1, "B": 2}),
    "insert or patch": Kind("PATCH", {}, {"A": 1, "B": 2}),
    "tunnelled merge": Kind("POST", {"X_HTTP_Method": "MERGE"}, {"A": 1, "B": 2}),
    "repeated merge": Kind("MERGE", {"X_HTTP_Method": "MERGE", "If_Match": "*"}, {"A": 1, "B": 2}),
    "repeated insert or merge": Kind("MERGE", {"X_HTTP_Method": "MERGE"}, {"A": 1, "B": 2}),
    "tunnelled replace": Kind("POST", {"X_HTTP_Method": "PUT", "If_Match": "*"}, {"B": 2}),
    "delete": Kind("DELETE", {"If_Match": "*"}, None),
    "tunnelled delete": Kind("POST", {"X_HTTP_Method": "DELETE", "If_Match": "*"}, None),
}


def properties(table: Table) -> Entity | None:
    """The own properties of (p, r)."""
    answer = table.get("p", "r", accept=NONE)
    if answer.status == 404:
        return None
    return {name: value for name, value in answer.json().items() if name not in {*KEYS, "Timestamp"}}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_operation_is_accepted_in_a_part(table: Table, kind: Kind) -> None:
    table.add(entity("p", "r", A=1))
    content = None if kind.after is None else {"B": 2}
    (part,) = run(table.client, operation(kind.method, url(table, table.at("p", "r")), content, **kind.headers))
    assert (part.status, part.reason, part.body) == (204, "No Content", b"")
    assert properties(table) == kind.after


def test_operations_run_in_order_and_together(table: Table) -> None:
    tag = table.insert(entity("p", "changed", A=1)).expect(201).etag
    table.add(entity("p", "gone"), entity("p", "merged", A=1))
    parts = run(
        table.client,
        insert(table, entity("p", "new", A=1)),
        operation("PUT", url(table, table.at("p", "changed")), {"A": 2}, If_Match=tag),
        operation("DELETE", url(table, table.at("p", "gone")), If_Match="*"),
        operation("PATCH", url(table, table.at("p", "merged")), {"B": 2}),
        operation("PUT", url(table, table.at("p", "put")), {"C": 3}),
    )
    assert [part.status for part in parts] == [204] * 5
    rows = {row["RowKey"]: row for row in table.page().rows}
    assert set(rows) == {"new", "changed", "merged", "put"}
    assert (rows["changed"]["A"], rows["merged"]["A"], rows["merged"]["B"], rows["put"]["C"]) == (2, 1, 2, 3)


@pytest.mark.parametrize("count", [1, 2, 99, 100])
def test_up_to_a_hundred_operations(table: Table, count: int) -> None:
    parts = run(table.client, *(insert(table, entity("p", f"{row:03}")) for row in range(count)))
    assert [part.status for part in parts] == [204] * count
    assert table.row_keys() == [f"{row:03}" for row in range(count)]


LAYOUTS = {
    "plain": PLAIN,
    "bare line feeds": Layout(eol="\n"),
    "quoted boundaries": Layout(
        content_type='multipart/mixed; boundary="batch_1"', changeset_type='multipart/mixed; boundary="changeset_1"'
    ),
    "charset before the boundary": Layout(content_type='multipart/mixed; charset="utf-8"; boundary=batch_2'),
    "no blank before the boundary": Layout(content_type="multipart/mixed;boundary=batch_3"),
    "capitals": Layout(content_type="Multipart/Mixed; Boundary=batch_4".replace("Boundary", "boundary")),
    "no closing delimiters": Layout(closed=False),
    "blank lines before delimiters": Layout(before_boundary="\r\n\r\n"),
    "preamble": Layout(preamble="This is a batch.\r\n"),
    "blank line first": Layout(preamble="\r\n"),
    "content length": Layout(content_length=True),
    "lower-case part headers": Layout(
        content_headers=("content-type: application/http", "content-transfer-encoding:binary")
    ),
    "no transfer encoding": Layout(content_headers=("Content-Type: application/http",)),
    "uuid boundaries": Layout(
        content_type="multipart/mixed; boundary=36522ad7-fc75-4b56-8c71-56071383e77b",
        changeset_type="multipart/mixed; boundary=77162fcd-b8da-41ac-a9f8-9357efbbd621",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts_of_a_part_are_accepted(table: Table, layout: Layout) -> None:
    table.add(entity("p", "0"))
    changes = [
        insert(table, entity("p", "1", Text="--batch\r\n--changeset_8a28b620--\n")),
        operation("DELETE", url(table, table.at("p", "0")), If_Match="*"),
        operation("MERGE", url(table, table.at("p", "2")), {"B": 2}),
    ]
    parts = changeset(submit(table.client, body(changes, layout), layout).expect(202))
    assert [part.status for part in parts] == [204, 204, 204]
    assert table.row_keys() == ["1", "2"]
    assert table.get("p", "1").json()["Text"] == "--batch\r\n--changeset_8a28b620--\n"


def test_more_blank_lines_after_a_part_without_body(table: Table) -> None:
    table.add(entity("p", "0"), entity("p", "1"))
    changes = [operation("DELETE", url(table, table.at("p", row)), "\r\n\r\n", If_Match="*") for row in "01"]
    parts = changeset(submit(table.client, body(changes)).expect(202))
    assert [part.status for part in parts] == [204, 204]


Spell = Callable[[Table, str], str]
SPELLINGS: dict[str, Spell] = {
    "absolute": lambda table, path: table.client.endpoint.base.rstrip("/") + path,
    "relative": lambda table, path: table.client.endpoint.prefix + path,
    "no account": lambda table, path: f"{table.client.endpoint.scheme}://{table.client.endpoint.host}{path}",
    "relative, no account": lambda table, path: path,
    "no leading slash": lambda table, path: path.removeprefix("/"),
    "other host": lambda table, path: f"http://localhost:1{table.client.endpoint.prefix}{path}",
    "parentheses encoded": lambda table, path: url(table, path.replace("(", "%28").replace(")", "%29")),
    "quotes encoded": lambda table, path: url(table, path.replace("'", "%27")),
    "format": lambda table, path: url(table, path) + "?$format=application/json;odata=nometadata",
    "upper-case table": lambda table, path: url(table, path.replace(table.name, table.name.upper())),
}
AZURE_REJECTS = {"no account", "relative, no account", "no leading slash", "other host"}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_inner_url_forms_are_accepted(table: Table, spelling: str) -> None:
    if spelling in AZURE_REJECTS and not table.client.endpoint.is_path_style:
        pytest.skip("these URLs are those of path-style clients")
    table.add(entity("p", "r'x(y)", A=1))
    spell = SPELLINGS[spelling]
    parts = run(
        table.client,
        operation("POST", spell(table, table.path), entity("p", "new"), Prefer="return-no-content"),
        operation("MERGE", spell(table, table.at("p", "r'x(y)")), {"B": 2}, If_Match="*"),
    )
    assert [part.status for part in parts] == [204, 204]
    assert table.get("p", "r'x(y)").json()["B"] == 2
    table.get("p", "new").expect(200)


def test_parentheses_after_the_set(table: Table) -> None:
    (part,) = run(table.client, operation("POST", url(table) + "()", entity("p", "r")))
    assert part.status == 201


@pytest.mark.parametrize("name", ["If-Match", "if-match", "IF-MATCH"])
def test_header_names_have_any_case(table: Table, name: str) -> None:
    table.add(entity("p", "r"))
    change = Operation("PUT", url(table, table.at("p", "r")), {}, ((name, STALE),))
    assert run(table.client, change)[0].status == 412


def test_host_header_in_a_part(table: Table) -> None:
    change = operation("POST", table.client.endpoint.prefix + table.path, entity("p", "r"))
    host = ("Host", table.client.endpoint.host)
    assert run(table.client, change._replace(headers=(host,)))[0].status == 201


def test_non_ascii_content(table: Table) -> None:
    change = operation("POST", url(table), '{"PartitionKey":"日","RowKey":"😀","V":"é"}', Prefer="return-no-content")
    (part,) = run(table.client, change)
    assert part.header("Location") == url(table) + "(PartitionKey='%E6%97%A5',RowKey='%F0%9F%98%80')"
    assert table.get("日", "😀").json()["V"] == "é"


QUERIES = {
    "point": ("(PartitionKey='p',RowKey='b')", ["b"]),
    "point by select": ("(PartitionKey='p',RowKey='b')?$select=PartitionKey,RowKey", ["b"]),
    "filter": ("()?$filter=RowKey%20gt%20'a'", ["b", "c"]),
    "everything": ("()", ["a", "b", "c"]),
    "top": ("?$top=1", ["a"]),
    "nothing": ("()?$filter=false", []),
}


@pytest.mark.parametrize(("suffix", "found"), QUERIES.values(), ids=QUERIES)
def test_batch_of_one_query(table: Table, suffix: str, found: list[str]) -> None:
    table.add(*(entity("p", row) for row in "abc"))
    get = operation("GET", url(table) + suffix)
    part = query_part(submit(table.client, query_body([get])).expect(202))
    assert (part.status, part.reason) == (200, "OK")
    document = part.json()
    rows = document.get("value", [document])
    assert [row["RowKey"] for row in rows] == found


def test_what_a_batch_wrote_is_seen_by_queries(table: Table) -> None:
    run(table.client, *(insert(table, entity("p", f"{row}")) for row in range(3)))
    assert [row["RowKey"] for row in page(table.query()).rows] == ["0", "1", "2"]


@pytest.mark.parametrize("query", ["timeout=30", "timeout=5&unknown=1"])
def test_outer_query_options(table: Table, query: str) -> None:
    answer = submit(table.client, body([insert(table, entity("p", "r"))]), query=query).expect(202)
    assert changeset(answer)[0].status == 204


def test_accept_of_the_outer_request_does_not_matter(table: Table, client: Client) -> None:
    for number, accept in enumerate(("application/json", "*/*", None, "application/atom+xml", "multipart/mixed")):
        text = body([insert(table, entity("p", str(number)))])
        assert changeset(submit(client, text, headers={"Accept": accept}).expect(202))[0].status == 204
