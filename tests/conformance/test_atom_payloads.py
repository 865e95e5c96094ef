"""Reference §7: what Atom answers look like, to the byte where the reference says so."""

import json
import re

import pytest

from .answers import Answer
from .atom import (
    DECLARATION,
    ENTRY_TYPE,
    ERROR_TYPE,
    FEED_TYPE,
    METADATA,
    NAMESPACES,
    VERSIONS,
    element,
    entity,
    entry,
    old,
    read_entry,
    read_feed,
    writing,
)
from .client import Client
from .tables import Table

ALL_TYPES = {
    "Text": "<x> & 'y' \"z\"",
    "Empty": "",
    "Blank": " \t\n x ",
    "Is": True,
    "Int32": -5,
    "Int64@odata.type": "Edm.Int64",
    "Int64": "9007199254740993",
    "Double": 10.0,
    "NaN@odata.type": "Edm.Double",
    "NaN": "NaN",
    "High@odata.type": "Edm.Double",
    "High": "Infinity",
    "Low@odata.type": "Edm.Double",
    "Low": "-Infinity",
    "When@odata.type": "Edm.DateTime",
    "When": "2014-05-07T08:20:53.2Z",
    "Guid@odata.type": "Edm.Guid",
    "Guid": "c9da6455-213d-42c9-9a79-3e9149a57833",
    "Bytes@odata.type": "Edm.Binary",
    "Bytes": "AAEC",
}
IN_ATOM = {
    "Text": ("Edm.String", "<x> & 'y' \"z\""),
    "Empty": ("Edm.String", ""),
    "Blank": ("Edm.String", " \t\n x "),
    "Is": ("Edm.Boolean", "true"),
    "Int32": ("Edm.Int32", "-5"),
    "Int64": ("Edm.Int64", "9007199254740993"),
    "NaN": ("Edm.Double", "NaN"),
    "High": ("Edm.Double", "INF"),
    "Low": ("Edm.Double", "-INF"),
    "When": ("Edm.DateTime", "2014-05-07T08:20:53.2Z"),
    "Guid": ("Edm.Guid", "c9da6455-213d-42c9-9a79-3e9149a57833"),
    "Bytes": ("Edm.Binary", "AAEC"),
}


def get(table: Table, path: str, query: str = "", version: str = "2011-08-18") -> Answer:
    return table.client.send("GET", path, query, headers=old(version))


@pytest.mark.parametrize("version", VERSIONS)
def test_an_entity_with_every_type(table: Table, version: str) -> None:
    table.add({"PartitionKey": "O'Neil", "RowKey": "%20", **ALL_TYPES})
    answer = get(table, table.at("O'Neil", "%20"), version=version).expect(200)
    found = read_entry(answer)
    base, link = table.client.endpoint.base, f"{table.name}(PartitionKey='O''Neil',RowKey='%2520')"
    assert (found.id, found.edit, found.title) == (base + link, link, table.name)
    assert found.term == f"{table.client.endpoint.account}.{table.name}"
    assert found.etag == answer.etag
    timestamp = answer.etag.split("'")[1].replace("%3A", ":")
    system = {
        "PartitionKey": ("Edm.String", "O'Neil"),
        "RowKey": ("Edm.String", "%20"),
        "Timestamp": ("Edm.DateTime", timestamp),
    }
    double = found.properties.pop("Double")
    assert (double[0], float(double[1] or "")) == ("Edm.Double", 10.0)
    assert found.properties == {**system, **IN_ATOM}
    assert list(found.properties)[:3] == list(system)


def test_an_entry_to_the_byte(table: Table) -> None:
    table.add({"PartitionKey": "p", "RowKey": "r", "Age@odata.type": "Edm.Int64", "Age": "5", "Blank": " "})
    answer = get(table, table.at()).expect(200)
    endpoint, name = table.client.endpoint, table.name
    timestamp = answer.etag.split("'")[1]
    link = f"{name}(PartitionKey='p',RowKey='r')"
    expected = (
        f'{DECLARATION}<entry xml:base="{endpoint.base}" {NAMESPACES} m:etag="W/&quot;datetime\'{timestamp}\'&quot;">'
        f'<id>{endpoint.base}{link}</id><title type="text"></title><updated>NOW</updated><author><name /></author>'
        f'<link rel="edit" title="{name}" href="{link}" /><category term="{endpoint.account}.{name}" '
        'scheme="http://schemas.microsoft.com/ado/2007/08/dataservices/scheme" /><content type="application/xml">'
        "<m:properties><d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey>"
        f'<d:Timestamp m:type="Edm.DateTime">{timestamp.replace("%3A", ":")}</d:Timestamp>'
        '<d:Age m:type="Edm.Int64">5</d:Age><d:Blank xml:space="preserve"> </d:Blank>'
        "</m:properties></content></entry>"
    )
    assert re.sub(r"<updated>[^<]*<", "<updated>NOW<", answer.body.decode()) == expected


def test_a_table_and_its_list(client: Client, table: Table) -> None:
    base, account = client.endpoint.base, client.endpoint.account
    one = read_entry(get(table, f"/Tables('{table.name}')").expect(200))
    assert one.properties == {"TableName": ("Edm.String", table.name)}
    assert (one.id, one.edit) == (f"{base}Tables('{table.name}')", f"Tables('{table.name}')")
    assert (one.title, one.term, one.etag) == ("Tables", f"{account}.Tables", None)
    feed = read_feed(get(table, "/Tables", f"$filter=TableName%20eq%20'{table.name}'"))
    assert (feed.base, feed.id, feed.title) == (base, f"{base}Tables", "Tables")
    assert [each._replace(updated="") for each in feed.entries] == [one._replace(updated="")]


def test_creating_a_table(client: Client, name: str) -> None:
    answer = client.send("POST", "/Tables", headers=writing(), body=entry(element("TableName", name))).expect(201)
    assert read_entry(answer).properties == {"TableName": ("Edm.String", name)}
    assert answer.header("Location") == f"{client.endpoint.base}Tables('{name}')"
    again = client.send("POST", "/Tables", headers=writing(), body=entry(element("TableName", name)))
    assert again.rejection == (409, "TableAlreadyExists", "The table specified already exists.")
    assert again.header("Content-Type") == ERROR_TYPE
    client.send("DELETE", f"/Tables('{name}')", headers=old()).expect(204)


def test_a_feed_of_entities(table: Table) -> None:
    empty = read_feed(get(table, f"{table.path}()"))
    assert (empty.title, empty.id, empty.entries) == (table.name, f"{table.client.endpoint.base}{table.name}", [])
    table.add({"PartitionKey": "p", "RowKey": "1"}, {"PartitionKey": "p", "RowKey": "2"})
    answer = get(table, table.path)
    feed = read_feed(answer)
    assert [each.properties["RowKey"][1] for each in feed.entries] == ["1", "2"]
    assert answer.header("ETag") is None
    for each in feed.entries:
        single = get(table, table.at("p", each.properties["RowKey"][1] or ""))
        assert each.etag == single.etag
        assert each._replace(updated="") == read_entry(single)._replace(updated="")


def test_pages_continue_by_headers(table: Table) -> None:
    table.add(*({"PartitionKey": "p", "RowKey": str(row)} for row in range(5)))
    seen: list[str | None] = []
    query = "$top=2"
    for _ in range(3):
        answer = get(table, table.path, query)
        seen += [each.properties["RowKey"][1] for each in read_feed(answer).entries]
        partition = answer.header("x-ms-continuation-NextPartitionKey")
        row = answer.header("x-ms-continuation-NextRowKey")
        query = f"$top=2&NextPartitionKey={partition}&NextRowKey={row}"
    assert seen == ["0", "1", "2", "3", "4"]
    assert partition is None


def test_a_projection_has_nulls(table: Table) -> None:
    table.add({"PartitionKey": "p", "RowKey": "r", "A": 1, "B": "2"})
    for path in (table.at(), table.path):
        answer = get(table, path, "$select=B,Gone,RowKey")
        found = read_entry(answer) if path == table.at() else read_feed(answer).entries[0]
        expected = {"B": ("Edm.String", "2"), "Gone": ("", None), "RowKey": ("Edm.String", "r")}
        assert found.properties == expected
        assert list(found.properties) == list(expected)
        assert found.etag


def test_a_null_is_not_stored(table: Table) -> None:
    body = entity("p", "r", '<d:A m:null="true" />', '<d:B m:type="Edm.Int32" m:null="true"></d:B>')
    table.client.send("POST", table.path, headers=writing(), body=body).expect(201)
    assert set(read_entry(get(table, table.at())).properties) == {"PartitionKey", "RowKey", "Timestamp"}


def test_headers_of_answers(table: Table) -> None:
    created = table.client.send("POST", table.path, headers=writing(), body=entity()).expect(201)
    assert created.header("Content-Type") == ENTRY_TYPE
    assert created.header("Location") == f"{table.client.endpoint.base}{table.name}(PartitionKey='p',RowKey='r')"
    assert created.etag == read_entry(created).etag
    queried = get(table, table.path).expect(200)
    assert queried.header("Content-Type") == FEED_TYPE
    for answer in (created, queried):
        assert answer.header("DataServiceVersion") == "1.0;NetFx"
        assert answer.header("Cache-Control") == "no-cache"
        assert answer.header("X-Content-Type-Options") == "nosniff"
        assert answer.header("x-ms-version") == "2011-08-18"
    merged = table.client.send("MERGE", table.at(), headers=writing(If_Match="*"), body=entity()).expect(204)
    assert merged.header("DataServiceVersion") == "1.0;NetFx"
    assert merged.header("Content-Type") is None


def test_json_of_the_atom_era_names_its_odata_version(table: Table) -> None:
    json_headers = {"x-ms-version": "2013-08-15", "Accept": "application/json"}
    answer = table.client.send("GET", table.path, headers=json_headers).expect(200)
    assert answer.header("DataServiceVersion") == "3.0;NetFx"
    assert json.loads(answer.body)["value"] == []


def test_an_error_to_the_byte(table: Table) -> None:
    answer = get(table, table.at())
    assert answer.header("Content-Type") == ERROR_TYPE
    tail = answer.body.decode().partition("\nRequestId:")
    expected = (
        f'{DECLARATION}<error xmlns="{METADATA}"><code>ResourceNotFound</code>'
        '<message xml:lang="en-US">The specified resource does not exist.'
    )
    assert tail[0] == expected
    assert re.fullmatch(r"[0-9a-f-]{36}\nTime:[0-9T:.-]{27}Z</message></error>", tail[2])
    assert answer.rejection == (404, "ResourceNotFound", "The specified resource does not exist.")


UNWRITABLE = ["a\x01", "\ud800", "\ufffe", "\x00"]


@pytest.mark.unverified
@pytest.mark.parametrize("text", UNWRITABLE)
def test_what_xml_cannot_carry_is_rejected_and_stays_readable_as_json(table: Table, text: str) -> None:
    table.insert(f'{{"PartitionKey":"p","RowKey":"r","Text":{json.dumps(text)},"Age":5}}').expect(201)
    for path in (table.at(), table.path):
        answer = get(table, path)
        assert answer.code == (415, "AtomFormatNotSupported")
        assert "'Text'" in answer.rejection.message
        selected = get(table, path, "$select=Age")
        assert (read_entry(selected) if path == table.at() else read_feed(selected).entries[0]).properties["Age"][
            1
        ] == "5"
    assert table.get().expect(200).json()["Text"] == text


@pytest.mark.unverified
def test_an_echo_that_xml_cannot_carry_is_rejected_before_it_is_stored(table: Table) -> None:
    headers = old("2013-08-15", Content_Type="application/json", MaxDataServiceVersion="3.0;NetFx")
    body = '{"PartitionKey":"p","RowKey":"r","Text":"\\u0001"}'
    answer = table.client.send("POST", table.path, headers=headers, body=body)
    assert answer.code == (415, "AtomFormatNotSupported")
    assert table.page().rows == []
    quiet = {**headers, "Prefer": "return-no-content"}
    table.client.send("POST", table.path, headers=quiet, body=body).expect(204)
