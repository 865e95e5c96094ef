"""Reference §19, §23: requests as real clients send them, header for header."""

import json
from urllib.parse import quote

import pytest

from .batches import Layout, body, changeset, insert, operation, submit, url
from .client import HeaderChanges
from .signing import shared_key
from .tables import Table, entity

NET_FORMAT = "$format=application%2Fjson%3Bodata%3Dminimalmetadata"
PYTHON: HeaderChanges = {
    "x-ms-version": "2019-02-02",
    "DataServiceVersion": "3.0",
    "MaxDataServiceVersion": None,
    "Accept": "application/json;odata=minimalmetadata",
    "User-Agent": "azsdk-python-data-tables/12.7.0",
}
JAVASCRIPT_NULLS = {"A@odata.type": "Edm.String", "A": None, "B@odata.type": "Edm.Int32", "B": None}


def test_python_writes_with_plain_json_and_both_dates(table: Table) -> None:
    from_python = {**PYTHON, "Accept": "application/json", "Content-Type": "application/json;odata=nometadata"}
    text = json.dumps(
        {
            "PartitionKey": "p'q",
            "PartitionKey@odata.type": "Edm.String",
            "RowKey": "r",
            "RowKey@odata.type": "Edm.String",
            "N": "5",
            "N@odata.type": "Edm.Int64",
            "When": "2022-07-12T10:11:12.123456Z",
            "When@odata.type": "Edm.DateTime",
        }
    )
    address = f"{table.path}(PartitionKey='p%27%27q',RowKey='r')"
    table.client.send("PATCH", address, headers=from_python, body=text).expect(204)
    row = table.client.send("GET", address, headers=PYTHON).expect(200).json()
    assert (row["PartitionKey"], row["N"], row["When"]) == ("p'q", "5", "2022-07-12T10:11:12.123456Z")
    delete: HeaderChanges = {"Accept": "application/json", "If-Match": "*", "DataServiceVersion": None}
    table.client.send("DELETE", address, headers=delete).expect(204)


def test_net_creates_inserts_and_reads_by_format(table: Table) -> None:
    headers = {"Prefer": "return-no-content", "x-ms-return-client-request-id": "true", "Accept-Charset": "UTF-8"}
    text = '{"PartitionKey":"p","RowKey":"r","Timestamp":null,"D@odata.type":"Edm.Double","D":4}'
    table.client.send("POST", table.path, NET_FORMAT, headers=headers, body=text).expect(204)
    answer = table.client.send("GET", f"{table.path}()", NET_FORMAT).expect(200)
    assert '"D":4.0' in answer.body.decode()


def test_java_sends_typed_nulls(table: Table) -> None:
    table.insert(entity("p", "r", C=1) | JAVASCRIPT_NULLS).expect(201)
    assert {"A", "B"}.isdisjoint(table.get("p", "r").json())


def test_types_of_types_are_ignored(table: Table) -> None:
    text = '{"PartitionKey":"p","RowKey":"r","A@odata.type@odata.type":"Edm.String","A@odata.type":"Edm.Int64","A":"5"}'
    table.insert(text).expect(201)
    row = table.get("p", "r").json()
    assert (row["A"], row["A@odata.type"]) == ("5", "Edm.Int64")
    assert not any("@odata.type@" in name for name in row)


def test_old_node_sends_merge_and_the_l_suffix(table: Table) -> None:
    headers = {"x-ms-version": "2018-03-28", "DataServiceVersion": "3.0;", "MaxDataServiceVersion": "3.0;NetFx"}
    text = '{"PartitionKey":"p","RowKey":"r","N@odata.type":"Edm.Int64","N":"5","B@odata.type":"Edm.Binary","B":"AQI="}'
    table.client.send("MERGE", table.at("p", "r"), headers=headers, body=text).expect(204)
    assert table.row_keys("N eq 5L and B eq X'0102'") == ["r"]


def test_storage_explorer_sends_empty_options(table: Table) -> None:
    table.add(entity("p", "r"))
    answer = table.client.send(
        "GET",
        f"{table.path}()",
        "$select=&$filter=&$top=1000",
        headers={"Accept": "application/json;odata=fullmetadata"},
    )
    assert len(answer.expect(200).json()["value"]) == 1


def test_health_checks_filter_by_false(table: Table) -> None:
    table.client.send("GET", "/Tables", "$filter=false&$top=1").expect(200)
    table.client.send("GET", f"{table.path}()", f"$filter=false&{NET_FORMAT}").expect(200)


def test_legacy_existence_check(table: Table, missing: Table) -> None:
    table.client.send("GET", f"/Tables('{table.name}')").expect(200)
    table.client.send("GET", f"/Tables('{missing.name}')").expect(404)


def test_old_python_batches_have_bare_line_feeds_and_short_urls(table: Table) -> None:
    layout = Layout(eol="\n", content_type='multipart/mixed; charset="utf-8"; boundary=batch_a1e9d677')
    host = f"{table.client.endpoint.scheme}://{table.client.endpoint.host}"
    changes = [
        operation("POST", f"{host}{table.path}", entity("p", "1"), Content_ID="1"),
        operation("PUT", f"{host}{table.at('p', '2')}", {}, Content_ID="2"),
    ]
    if not table.client.endpoint.is_path_style:
        pytest.skip("only path-style URLs have an account to leave out")
    parts = changeset(submit(table.client, body(changes, layout), layout).expect(202))
    assert [part.status for part in parts] == [201, 204]


JAVA_8 = {
    "X-HTTP-Method": "MERGE",
    "Accept": "application/json;odata=minimalmetadata",
    "Content-Type": "application/json",
    "MaxDataServiceVersion": "3.0;NetFx",
    "Content-ID": "0",
}
"""The headers of a merge in a batch of the Java SDK 8."""


@pytest.mark.parametrize("method", ["MERGE", "POST"])
@pytest.mark.parametrize("condition", [{"If-Match": "*"}, {}], ids=["merge", "insert or merge"])
def test_java_8_batches_name_the_method_of_a_merge_in_a_header_too(
    table: Table, method: str, condition: dict[str, str]
) -> None:
    table.add(entity("p", "1", A=1), entity("p", "2", A=1))
    headers = tuple((JAVA_8 | condition).items())
    changes = [operation(method, url(table, table.at("p", row)), {"B": 2})._replace(headers=headers) for row in "12"]
    changes.append(insert(table, entity("p", "3")))
    layout = Layout(content_length=True)
    parts = changeset(submit(table.client, body(changes, layout), layout, headers=PYTHON).expect(202))
    assert [part.status for part in parts] == [204, 204, 204]
    assert [(row.get("A"), row.get("B")) for row in table.page().rows] == [(1, 2), (1, 2), (None, None)]


def test_lower_case_headers_in_batch_parts(table: Table) -> None:
    table.add(entity("p", "r"))
    changes = [
        operation("PATCH", url(table, table.at("p", "r")), {"A": 1})._replace(
            headers=(("if-match", "*"), ("content-type", "application/json"), ("accept", "application/json"))
        ),
        operation("POST", url(table), entity("p", "n"))._replace(headers=(("prefer", "return-no-content"),)),
    ]
    parts = changeset(submit(table.client, body(changes)).expect(202))
    assert [part.status for part in parts] == [204, 204]


def test_a_string_under_a_declared_type_is_converted(table: Table) -> None:
    text = (
        '{"PartitionKey":"p","RowKey":"r","B@odata.type":"Edm.Boolean","B":"False","D@odata.type":"Edm.Double","D":"3.14",'
        '"I@odata.type":"Edm.Int32","I":"12345","L@odata.type":"Edm.Int64","L":"12345"}'
    )
    table.insert(text).expect(201)
    row = table.get("p", "r").json()
    assert (row["B"], row["D"], row["I"], row["L"]) == (False, 3.14, 12345, "12345")
    assert table.row_keys("B eq false and D eq 3.14 and I eq 12345 and L eq 12345L") == ["r"]


@pytest.mark.parametrize("path", ["{name}/{name}()", "{name}/{name}(PartitionKey='p',RowKey='r')", "{name}/Other"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_a_table_in_the_endpoint_url_is_a_clean_error(table: Table, method: str, path: str) -> None:
    content = None if method in {"GET", "DELETE"} else '{"PartitionKey":"p","RowKey":"r","TableName":"x"}'
    headers = {"If-Match": "*"} if method == "DELETE" else {}
    answer = table.client.send(method, "/" + path.format(name=table.name), headers=headers, body=content)
    assert answer.status in {400, 404, 405}
    assert answer.rejection.code != ""


def test_an_empty_change_set_is_answered(table: Table) -> None:
    assert submit(table.client, body([])).status in {202, 400}
    assert submit(table.client, body([insert(table, entity("p", "r"))]), signer=shared_key).status == 202


def test_paging_repeats_the_query(table: Table) -> None:
    table.add(*(entity("p", f"{row}", A=row % 2) for row in range(6)))
    query = f"$filter={quote('A eq 1', safe='')}&$select=RowKey&$top=2"
    first = table.page(query)
    second = table.page(f"{query}&{first.next}")
    assert [row["RowKey"] for row in first.rows + second.rows] == ["1", "3", "5"]
    assert second.next == ""
