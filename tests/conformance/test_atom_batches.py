"""Reference §11.4: entity group transactions whose operations are spelled in Atom."""

from xml.etree import ElementTree as ET

import pytest

from .answers import Answer
from .atom import ENTRY_TYPE, FEED_TYPE, METADATA, VERSIONS, element, entity, old
from .batches import Layout, Operation, Part, body, changeset, operation, query_body, query_part, submit, url
from .tables import Table

ACCEPT = "application/atom+xml,application/xml"
LAYOUT = Layout(content_length=False)


def change(method: str, address: str, content: str | None = None, **headers: str) -> Operation:
    """An operation as WCF Data Services writes it."""
    typed = {} if content is None else {"Content_Type": "application/atom+xml;type=entry"}
    return operation(
        method, address, content, **{"Accept": ACCEPT, "DataServiceVersion": "1.0;NetFx", **typed, **headers}
    )


def send(table: Table, text: str, version: str = "2011-08-18") -> Answer:
    headers = {**old(version, Accept=None), "Content-Type": LAYOUT.content_type}
    return submit(table.client, text, LAYOUT, headers=headers).expect(202)


def run(table: Table, *changes: Operation, version: str = "2011-08-18") -> list[Part]:
    return changeset(send(table, body(list(changes)), version))


def inserts(table: Table, *rows: str) -> list[Operation]:
    return [change("POST", url(table), entity("p", row, element("A", "1", "Edm.Int32"))) for row in rows]


def rejection(part: Part) -> tuple[int, str, str]:
    root = ET.fromstring(part.body)
    assert root.tag == f"{{{METADATA}}}error"
    code, message = root
    return part.status, code.text or "", (message.text or "").partition("\n")[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_operation_in_an_atom_batch(table: Table, version: str) -> None:
    first = run(table, *inserts(table, "1", "2", "3"), version=version)
    assert [part.status for part in first] == [201, 201, 201]
    second = run(
        table,
        change("MERGE", url(table, table.at("p", "1")), entity("p", "1", element("B", "b")), If_Match="*"),
        change("PUT", url(table, table.at("p", "2")), entity("p", "2", element("C", "c")), If_Match="*"),
        change("DELETE", url(table, table.at("p", "3")), If_Match="*"),
        version=version,
    )
    assert [part.status for part in second] == [204, 204, 204]
    found = {row["RowKey"]: row for row in table.page().rows}
    assert set(found) == {"1", "2"}
    assert (found["1"]["A"], found["1"]["B"]) == (1, "b")
    assert ("A" in found["2"], found["2"]["C"]) == (False, "c")
    for part in second:
        assert ("DataServiceVersion", "1.0;") in part.headers


def test_the_part_of_an_insert(table: Table) -> None:
    (part,) = run(table, *inserts(table, "1"))
    headers = dict(part.headers)
    assert [name for name, _ in part.headers] == [
        "DataServiceVersion",
        "Content-Type",
        "X-Content-Type-Options",
        "Cache-Control",
        "Location",
        "ETag",
    ]
    assert (headers["DataServiceVersion"], headers["Content-Type"]) == ("1.0;", ENTRY_TYPE)
    root = ET.fromstring(part.body)
    assert root.get(f"{{{METADATA}}}etag") == headers["ETag"]


def test_a_rejection_is_xml(table: Table) -> None:
    table.add({"PartitionKey": "p", "RowKey": "2"})
    (part,) = run(table, *inserts(table, "1", "2"))
    assert rejection(part) == (409, "EntityAlreadyExists", "1:The specified entity already exists.")
    headers = dict(part.headers)
    assert (headers["Content-Type"], headers["DataServiceVersion"]) == ("application/xml", "1.0;")
    assert [row["RowKey"] for row in table.page().rows] == ["2"]


@pytest.mark.parametrize(
    ("markup", "code"),
    [
        ("<d:A>&#x1;</d:A>", "InvalidInput"),
        ("<d:A>", "InvalidInput"),
        (element("A", "x", "Edm.Int32"), "InvalidInput"),
        (element("a-b", "x"), "PropertyNameInvalid"),
    ],
)
def test_a_malformed_entry_is_rejected_with_its_index(table: Table, markup: str, code: str) -> None:
    bad = change("POST", url(table), entity("p", "2", markup))
    (part,) = run(table, *inserts(table, "1"), bad)
    assert rejection(part)[:2] == (400, code)
    assert rejection(part)[2].startswith("1:")
    assert table.page().rows == []


def test_a_delete_without_a_body_is_rejected_in_xml(table: Table) -> None:
    (part,) = run(table, operation("DELETE", url(table, table.at("p", "1")), If_Match="*", Accept="*/*"))
    assert rejection(part)[:2] == (404, "ResourceNotFound")


@pytest.mark.parametrize("point", [True, False])
def test_query_in_an_atom_batch(table: Table, point: bool) -> None:
    run(table, *inserts(table, "1"))
    address = url(table, table.at("p", "1")) if point else f"{url(table)}()?$filter=RowKey%20eq%20'1'"
    part = query_part(send(table, query_body([change("GET", address)])))
    headers = dict(part.headers)
    assert (part.status, headers["DataServiceVersion"]) == (200, "1.0;")
    assert headers["Content-Type"] == (ENTRY_TYPE if point else FEED_TYPE)
    assert b'<d:A m:type="Edm.Int32">1</d:A>' in part.body


def test_a_query_of_what_is_not_there(table: Table) -> None:
    part = query_part(send(table, query_body([change("GET", url(table, table.at("p", "1")))])))
    assert rejection(part) == (404, "ResourceNotFound", "0:The specified resource does not exist.")


def test_json_and_atom_in_one_batch(table: Table) -> None:
    mixed = [
        *inserts(table, "1"),
        operation("POST", url(table), {"PartitionKey": "p", "RowKey": "2"}, Content_Type="application/json"),
    ]
    atom, json = run(table, *mixed, version="2013-08-15")
    assert dict(atom.headers)["Content-Type"] == ENTRY_TYPE
    assert dict(json.headers)["Content-Type"].startswith("application/json")
    assert dict(json.headers)["DataServiceVersion"] == "3.0;"


def test_text_with_line_ends_survives_a_batch(table: Table) -> None:
    run(table, change("POST", url(table), entity("p", "1", "<d:A>a&#xD;&#xA;b\n  </d:A>")))
    assert table.get("p", "1").json()["A"] == "a\r\nb\n  "


@pytest.mark.parametrize("version", ["2015-12-11", "2019-02-02"])
def test_atom_in_a_batch_is_rejected_since_2015_12_11(table: Table, version: str) -> None:
    (part,) = run(table, *inserts(table, "1"), version=version)
    assert (part.status, b"AtomFormatNotSupported" in part.body) == (415, True)
    assert table.page().rows == []
