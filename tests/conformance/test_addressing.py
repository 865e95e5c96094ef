"""Reference §1: how a resource is addressed, and how a path is decoded and encoded."""

import pytest

from .batches import PLAIN, body, insert, operation, query_body, query_part, sole_part, submit, url
from .client import FULL, Client
from .sas import table_sas
from .signing import Endpoint, anonymous
from .tables import Table, entity

DECODED = [
    ("%2520", "%20"),
    ("%25", "%"),
    ("%2527", "%27"),
    ("a%27%27b", "a'b"),
    ("a''b", "a'b"),
    ("a'%27b", "a'b"),
    ("a+b", "a+b"),
    ("a%2Bb", "a+b"),
    ("a%20b", "a b"),
    ("%C3%B4", "ô"),
    ("%F0%9F%98%80", "😀"),
    ("a%26b%3Dc", "a&b=c"),
    ("a&b", "a&b"),
    ("a%2Cb", "a,b"),
    ("a,b", "a,b"),
    ("a=b", "a=b"),
    ("(x)", "(x)"),
    ("a%29", "a)"),
    ("%e2%82%ac", "€"),
    ("~!@$*-._:;", "~!@$*-._:;"),
    ("%22", '"'),
    ("%20%20", "  "),
    ("", ""),
]


@pytest.mark.parametrize(("raw", "key"), DECODED)
def test_a_path_is_decoded_once(shared_table: Table, raw: str, key: str) -> None:
    shared_table.write("PUT", f"{shared_table.path}(PartitionKey='{raw}',RowKey='{raw}')", {}).expect(204)
    row = shared_table.get(key, key).expect(200).json()
    assert (row["PartitionKey"], row["RowKey"]) == (key, key)


EMITTED = [
    ("partition1-ô- -'-\"-%20-%27-pk", "partition1-%C3%B4-%20-''-%22-%2520-%2527-pk"),
    ("table@x", "table%40x"),
    ("a-b.c_d!e*f", "a-b.c_d!e*f"),
    ("a(b)c,d=e$f+g", "a(b)c%2Cd%3De%24f%2Bg"),
    ("',RowKey='", "''%2CRowKey%3D''"),
    ("a+b&c:d;e", "a%2Bb%26c%3Ad%3Be"),
    ("o''neil", "o''''neil"),
    ("😀", "%F0%9F%98%80"),
    ("", ""),
]


@pytest.mark.parametrize(("key", "encoded"), EMITTED)
def test_keys_are_encoded_in_location(shared_table: Table, key: str, encoded: str) -> None:
    answer = shared_table.insert(entity(key, "location"), Accept=FULL).expect(201)
    relative = f"{shared_table.name}(PartitionKey='{encoded}',RowKey='location')"
    assert answer.header("Location") == shared_table.client.endpoint.base + relative
    assert answer.json()["odata.id"] == shared_table.client.endpoint.base + relative
    assert answer.json()["odata.editLink"] == relative


def test_parentheses_after_the_set_are_optional(table: Table) -> None:
    table.client.send("POST", f"{table.path}()", body='{"PartitionKey":"p","RowKey":"r"}').expect(201)
    for path in (table.path, f"{table.path}()"):
        answer = table.client.send("GET", path).expect(200)
        assert len(answer.json()["value"]) == 1
    table.client.send("GET", "/Tables()").expect(200)


@pytest.mark.parametrize(
    "written",
    [
        "(RowKey='r',PartitionKey='p')",
        "(PartitionKey='p',%20RowKey='r')",
        "(RowKey='r',%20PartitionKey='p')",
        "%28PartitionKey=%27p%27,RowKey=%27r%27%29",
        "(PartitionKey='p'%2CRowKey='r')",
        "(PartitionKey%3D'p',RowKey%3D'r')",
    ],
)
def test_the_key_predicate_has_several_spellings(table: Table, written: str) -> None:
    table.add(entity("p", "r"))
    answer = table.client.send("GET", table.path + written).expect(200)
    assert (answer.json()["PartitionKey"], answer.json()["RowKey"]) == ("p", "r")


@pytest.mark.parametrize(
    "written",
    [
        "(partitionkey='p',rowkey='r')",
        "(PartitionKey='p',Row='r')",
        "(PartitionKey='p')",
        "(RowKey='r')",
        "('p')",
        "('p','r')",
        "(PartitionKey='p',RowKey='r'",
        "(PartitionKey='p,RowKey='r')",
        "(PartitionKey=p,RowKey=r)",
        "(PartitionKey='p',RowKey='r',Other='x')",
        "(PartitionKey='p',RowKey='r')/Value",
        "(PartitionKey='p'RowKey='r')",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_other_key_predicates_are_rejected(shared_table: Table, method: str, written: str) -> None:
    body = None if method != "PUT" else "{}"
    answer = shared_table.client.send(method, shared_table.path + written, body=body, headers={"If-Match": "*"})
    assert answer.status in {400, 404}
    assert answer.rejection.code in {"InvalidInput", "InvalidUri", "ResourceNotFound", "RequestUrlFailedToParse"}


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_one_key_is_not_enough(shared_table: Table, method: str) -> None:
    body = "{}" if method == "PUT" else None
    answer = shared_table.client.send(
        method, f"{shared_table.path}(PartitionKey='p')", body=body, headers={"If-Match": "*"}
    )
    assert answer.code == (400, "InvalidInput")
    assert answer.rejection.message.startswith(
        "The number of keys specified in the URI does not match number of key properties for the resource '"
    )


def test_the_word_tables_has_any_case(client: Client, table: Table) -> None:
    for word in ("tables", "TABLES", "Tables"):
        assert client.send("GET", f"/{word}('{table.name}')").expect(200).json()["TableName"] == table.name


def test_table_names_have_any_case_in_addresses(table: Table) -> None:
    table.add(entity("p", "r"))
    answer = table.client.send("GET", f"/{table.name.upper()}(PartitionKey='p',RowKey='r')").expect(200)
    assert answer.json()["RowKey"] == "r"


def test_a_plus_is_a_blank_in_a_query(table: Table) -> None:
    table.add(entity("a b", "1"), entity("a+b", "2"))
    assert [row["RowKey"] for row in table.page("$filter=PartitionKey+eq+'a+b'").rows] == ["1"]
    assert [row["RowKey"] for row in table.page("$filter=PartitionKey%20eq%20'a%2Bb'").rows] == ["2"]


@pytest.mark.parametrize("path", ["/Tables('", "/Tables(", "/a/b/c", "/$metadata/x", "/%zz", "/t%FF"])
def test_a_path_that_is_no_resource_is_rejected_cleanly(client: Client, path: str) -> None:
    answer = client.send("GET", path)
    assert answer.status in {400, 404}
    assert answer.rejection.code != ""


NAMES_NO_TABLE = "The specifed resource name contains invalid characters."
NO_KEYS = "The number of keys specified in the URI does not match number of key properties for the resource '"


@pytest.mark.parametrize("name", ["a%2F%2F", "a%2f%2f", "abc%2Fdef", "%2F%2F%2F", "abc%2F", "Tables%2F"])
def test_an_encoded_slash_is_part_of_a_name(client: Client, name: str) -> None:
    key = "(PartitionKey='p',RowKey='r')"
    for method, path, query, content in [
        ("POST", f"/{name}", "", '{"PartitionKey":"p","RowKey":"r"}'),
        ("PATCH", f"/{name}{key}", "", "{}"),
        ("DELETE", f"/{name}{key}", "", None),
        ("GET", f"/{name}", "", None),
        ("GET", f"/{name}()", "", None),
        ("GET", f"/{name}", "comp=acl", None),
    ]:
        answer = client.send(method, path, query, body=content, headers={"If-Match": "*"} if not content else {})
        assert answer.rejection == (400, "InvalidResourceName", NAMES_NO_TABLE)
    inner = f"{client.endpoint.base.rstrip('/')}/{name}{key}"
    part = sole_part(submit(client, body([operation("PATCH", inner, {})])).expect(202))
    assert part.rejection[:2] == (400, "InvalidResourceName")


@pytest.mark.parametrize("path", ["{path}/Tables", "{path}/tables", "{path}/Tables()"])
def test_a_table_below_a_table_is_not_created(table: Table, missing: Table, path: str) -> None:
    for text in ('{"TableName":"neverCreated"}', '{"PartitionKey":"p","RowKey":"r"}'):
        nowhere = table.client.send("POST", path.format(path=missing.path), body=text)
        assert nowhere.rejection == (404, "TableNotFound", "The table specified does not exist.")
        needed = table.client.send("POST", path.format(path=table.path), body=text)
        message = "The values are not specified for all properties in the entity."
        assert needed.rejection == (400, "PropertiesNeedValue", message)
    assert table.page().rows == []
    table.client.send("GET", "/Tables('neverCreated')").expect(404)


@pytest.mark.parametrize("written", ["Tables('{name}')", "Tables(%27{name}%27)", "tables('{name}')"])
def test_a_table_below_a_table_is_not_deleted(table: Table, missing: Table, written: str) -> None:
    """§25: 404 while the table above is missing."""
    for method in ("DELETE", "GET"):
        answer = table.client.send(method, f"{table.path}/{written.format(name=table.name)}")
        assert answer.code == (400, "InvalidInput")
        assert answer.rejection.message.startswith(NO_KEYS)
        for name in (table.name, missing.name):
            answer = table.client.send(method, f"{missing.path}/{written.format(name=name)}")
            assert answer.rejection == (404, "TableNotFound", "The table specified does not exist.")
    table.client.send("GET", f"/Tables('{table.name}')").expect(200)


def test_a_batch_below_a_table_is_not_run(table: Table, missing: Table) -> None:
    for above in (table, missing):
        headers = {"Content-Type": PLAIN.content_type}
        text = body([insert(table, entity("p", "r"))])
        answer = table.client.send("POST", f"{above.path}/$batch", headers=headers, body=text)
        assert answer.rejection == (415, "MediaTypeNotSupported", "None of the provided media types are supported")
    assert table.page().rows == []


def test_tables_below_a_table_are_not_listed(table: Table) -> None:
    answer = table.client.send("GET", f"{table.path}/Tables")
    message = "The requested operation is not implemented on the specified resource."
    assert answer.rejection == (501, "NotImplemented", message)


def test_what_lies_below_a_table_needs_its_permission(table: Table, missing: Table) -> None:
    """Without it, nothing is disclosed of the table."""
    for above in (table, missing):
        for method, letters in (("POST", "rud"), ("GET", "aud")):
            sas = table_sas(table.client.endpoint, above.name, {"sp": letters})
            content = "{}" if method == "POST" else None
            answer = table.client.send(method, f"{above.path}/Tables", sas, body=content, signer=anonymous)
            assert answer.code == (403, "AuthorizationPermissionMismatch")


def test_a_table_name_said_twice_is_rejected_cleanly(table: Table) -> None:
    for predicate in ("", "()", "(PartitionKey='p',RowKey='r')"):
        answer = table.client.send("GET", f"{table.path}{table.path}{predicate}")
        assert answer.status in {400, 404}
        assert answer.rejection.code != ""


def test_an_unknown_account_is_not_served(client: Client, endpoint: Endpoint) -> None:
    if not endpoint.is_path_style:
        pytest.skip("in host style, DNS rejects")
    answer = client.send("GET", "/nosuchaccount1/Tables", absolute=True)
    assert answer.status in {403, 404}


def test_the_base_is_the_host_header_that_was_sent(client: Client, endpoint: Endpoint) -> None:
    if not endpoint.is_path_style:
        pytest.skip("in host style, the host names the account")
    answer = client.send("GET", "/Tables", "$top=1", headers={"Host": "localhost:12345"}).expect(200)
    assert answer.json()["odata.metadata"] == f"{endpoint.scheme}://localhost:12345{endpoint.prefix}/$metadata#Tables"


def test_the_secondary_reads(table: Table, secondary: Client) -> None:
    table.add(entity("p", "r", A=1))
    assert secondary.send("GET", table.at("p", "r")).expect(200).json()["A"] == 1
    assert len(secondary.send("GET", table.path).expect(200).json()["value"]) == 1
    secondary.send("GET", f"/Tables('{table.name}')").expect(200)


@pytest.mark.parametrize("named", ["secondary", "primary", "neither"])
def test_a_query_in_a_batch_on_the_secondary(table: Table, secondary: Client, named: str) -> None:
    """§25: the Java SDK names the primary."""
    table.add(entity("p", "r", A=1))
    bases = {"secondary": secondary.endpoint.base, "primary": table.client.endpoint.base, "neither": "/"}
    inner = operation("GET", f"{bases[named]}{table.at('p', 'r')[1:]}")
    part = query_part(submit(secondary, query_body([inner])).expect(202))
    assert (part.status, part.json()["A"]) == (200, 1)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/Tables", '{"TableName":"neverCreated"}'),
        ("POST", "{path}", '{"PartitionKey":"p","RowKey":"n"}'),
        ("PUT", "{path}(PartitionKey='p',RowKey='n')", "{}"),
        ("MERGE", "{path}(PartitionKey='p',RowKey='n')", "{}"),
        ("DELETE", "{path}(PartitionKey='p',RowKey='r')", None),
        ("DELETE", "/Tables('{name}')", None),
    ],
)
def test_the_secondary_does_not_write(
    table: Table, secondary: Client, method: str, path: str, body: str | None
) -> None:
    table.add(entity("p", "r"))
    headers = {"If-Match": "*"} if method == "DELETE" else {}
    answer = secondary.send(method, path.format(path=table.path, name=table.name), body=body, headers=headers)
    assert answer.rejection == (403, "InsufficientAccountPermissions", "Write operations are not allowed.")
    assert [row["RowKey"] for row in table.page().rows] == ["r"]


def test_the_secondary_takes_a_batch_of_a_query(table: Table, secondary: Client) -> None:
    table.add(entity("p", "r", A=1))
    there = Table(secondary, table.name)
    point = query_part(submit(secondary, query_body([operation("GET", url(there, there.at("p", "r")))])).expect(202))
    assert point.json()["A"] == 1
    every = query_part(submit(secondary, query_body([operation("GET", url(there) + "()")])).expect(202))
    assert len(every.json()["value"]) == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
def test_the_secondary_takes_no_change_set(table: Table, secondary: Client, method: str) -> None:
    there = Table(secondary, table.name)
    address = url(there) if method == "POST" else url(there, there.at("p", "r"))
    content = None if method == "GET" else entity("p", "r")
    answer = submit(secondary, body([operation(method, address, content)]))
    assert answer.rejection == (403, "InsufficientAccountPermissions", "Write operations are not allowed.")
    assert table.page().rows == []


def test_the_secondary_takes_no_write_in_place_of_a_query(table: Table, secondary: Client) -> None:
    there = Table(secondary, table.name)
    for each in (insert(there, entity("p", "r")), operation("PUT", url(there, there.at("p", "r")), {})):
        part = query_part(submit(secondary, query_body([each])).expect(202))
        assert part.rejection[:2] == (400, "InvalidInput")
    assert table.page().rows == []


@pytest.mark.unverified
def test_query_option_words_of_the_service_have_any_case(table: Table) -> None:
    table.add(entity("p", "1"), entity("p", "2"))
    page = table.page("$top=1")
    lowered = page.next.replace("NextPartitionKey", "nextpartitionkey").replace("NextRowKey", "NEXTROWKEY")
    assert [row["RowKey"] for row in table.page(f"TIMEOUT=10&{lowered}").rows] == ["2"]


def test_a_browser_at_the_root_gets_a_page(client: Client) -> None:
    fields = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "x-ms-version": None}
    page = client.send("GET", "/", headers=fields, signer=anonymous, absolute=True).expect(200)
    assert dict(page.headers)["Content-Type"].startswith("text/html")
    assert b"This is Lazulite" in page.body
    assert client.send("GET", "/", signer=anonymous, absolute=True).status >= 400
    assert client.send("GET", "/", "comp=list", headers=fields, signer=anonymous, absolute=True).status >= 400
