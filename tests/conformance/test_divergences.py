"""Reference §21: where the emulator that everyone uses differs from the real service, and what the real service does.

Each test is named for one reported divergence; its docstring says what was reported and what is true.
"""

import json

import pytest

from .batches import Layout, body, changeset, insert, operation, run, submit, url
from .client import NONE
from .sas import table_sas
from .signing import anonymous
from .tables import Table, entity

GUID_ZERO = "00000000-0000-0000-0000-000000000000"


def test_1929_ne_with_an_absent_property(table: Table) -> None:
    """Reported: `Foo ne ''` returns rows without Foo. The service leaves them out."""
    table.add(entity("p", "with", Foo="x"), entity("p", "empty", Foo=""), entity("p", "without"))
    assert table.row_keys("Foo ne ''") == ["with"]


def test_2471_eq_null(table: Table) -> None:
    """Reported: `col eq null` works. The service rejects it."""
    table.add(entity("p", "r", Col="x"))
    assert table.filter("Col eq null").rejection == (400, "InvalidInput", "One of the request inputs is not valid.")


def test_2535_select_of_an_absent_property(table: Table) -> None:
    """Reported: the property is omitted. The service returns it as null."""
    table.add(entity("p", "r", A=1))
    assert table.get("p", "r", "$select=A,xyz", accept=NONE).json() == {"A": 1, "xyz": None}
    assert table.query("$select=xyz", accept=NONE).json() == {"value": [{"xyz": None}]}


def test_1599_constant_on_the_left(table: Table) -> None:
    """Reported: rejected. The service accepts it, for keys and properties."""
    table.add(entity("2022-07-12", "r", INT32=23))
    assert table.row_keys("'2022-07-12' eq PartitionKey") == ["r"]
    assert table.row_keys("23 eq INT32") == ["r"]


def test_1573_empty_filter(table: Table) -> None:
    """Reported: 400. The service takes an empty `$filter=` and `$select=` for none."""
    table.add(entity("p", "r", A=1))
    for query in ("$filter=", "$select=", "$select=&$filter=", "$filter=&$top=10"):
        assert [row["A"] for row in table.page(query).rows] == [1]


def test_675_filter_on_query_tables(table: Table, shared_table: Table) -> None:
    """Reported: ignored. The service applies it."""
    for each in (table, shared_table):
        answer = table.client.send("GET", "/Tables", f"$filter=TableName%20eq%20'{each.name}'").expect(200)
        assert [row["TableName"] for row in answer.json()["value"]] == [each.name]


def test_1233_and_745_tags_in_batches(table: Table) -> None:
    """Reported: a batch ignores tags and leaves stale ones. The service enforces them and returns fresh ones."""
    old = table.insert(entity("p", "r", A=1)).expect(201).etag
    address = url(table, table.at("p", "r"))
    fresh = run(table.client, operation("MERGE", address, {"A": 2}, If_Match=old))[0].header("ETag")
    assert fresh == table.get("p", "r").etag != old
    assert run(table.client, operation("MERGE", address, {"A": 3}, If_Match=old))[0].status == 412
    assert run(table.client, operation("DELETE", address, If_Match=old))[0].status == 412
    assert table.get("p", "r").json()["A"] == 2
    assert run(table.client, operation("DELETE", address, If_Match=str(fresh)))[0].status == 204


def test_1192_batch_with_extra_line_ends_and_encoded_urls(table: Table) -> None:
    """Reported: 400 for batches of the older .NET SDK. The service accepts them."""
    table.add(entity("p", "it's"))
    address = url(table, table.at("p", "it's")).replace("'", "%27").replace("(", "%28").replace(")", "%29")
    changes = [operation("DELETE", address, "\r\n", If_Match="*"), insert(table, entity("p", "new"))]
    layout = Layout(before_boundary="\r\n", preamble="\r\n")
    parts = changeset(submit(table.client, body(changes, layout), layout).expect(202))
    assert [part.status for part in parts] == [204, 204]
    assert table.row_keys() == ["new"]


def test_2013_malformed_tag(table: Table) -> None:
    """Reported: another code. The service answers 400 InvalidInput."""
    table.add(entity("p", "r"))
    assert table.write("PUT", table.at("p", "r"), {}, If_Match="foo").code == (400, "InvalidInput")


def test_1536_odata_members_in_a_body(table: Table) -> None:
    """Reported: stored and returned. The service drops them; a property named `etag` is another matter."""
    text = json.dumps(entity("p", "r", etag="mine") | {"odata.etag": 'W/"x"', "odata.type": "a.b", "odata.id": "x"})
    table.insert(text).expect(201)
    row = table.get("p", "r", accept=NONE).json()
    assert set(row) == {"PartitionKey", "RowKey", "Timestamp", "etag"}
    assert table.get("p", "r").json()["odata.etag"] != 'W/"x"'


def test_2169_empty_string_and_the_zero_guid(table: Table) -> None:
    """Reported: `'' eq guid'000…'` is true. The service finds them different."""
    table.insert(entity("p", "text", V="")).expect(201)
    table.insert(entity("p", "guid") | {"V@odata.type": "Edm.Guid", "V": GUID_ZERO}).expect(201)
    assert table.row_keys(f"V eq guid'{GUID_ZERO}'") == ["guid"]
    assert table.row_keys("V eq ''") == ["text"]


def test_2069_microseconds_in_date_filters(table: Table) -> None:
    """Reported: such rows are missed. The service compares to 100 ns."""
    for row, fraction in [("a", "1234567"), ("b", "1234568"), ("c", "123456")]:
        date = {"D@odata.type": "Edm.DateTime", "D": f"2022-07-12T10:11:12.{fraction}Z"}
        table.insert(entity("p", row) | date).expect(201)
    assert table.row_keys("D eq datetime'2022-07-12T10:11:12.1234567Z'") == ["a"]
    assert table.row_keys("D gt datetime'2022-07-12T10:11:12.1234567Z'") == ["b"]
    assert table.row_keys("D eq datetime'2022-07-12T10:11:12.123456Z'") == ["c"]
    timestamp = table.get("p", "a").json()["Timestamp"]
    assert table.row_keys(f"Timestamp eq datetime'{timestamp}'") == ["a"]


def test_2385_int64_filters(table: Table) -> None:
    """Reported: compared as text. The service compares numbers."""
    for number in (9, 10, 100, -5):
        table.insert(entity("p", f"{number}") | {"V@odata.type": "Edm.Int64", "V": f"{number}"}).expect(201)
    assert set(table.row_keys("V gt 9L")) == {"10", "100"}
    assert set(table.row_keys("V lt 10L")) == {"9", "-5"}
    assert set(table.row_keys("V ge -5L and V le 9L")) == {"9", "-5"}


def test_2387_double_beyond_the_maximum(table: Table) -> None:
    """Reported: accepted. The service rejects it."""
    for value in ("1e400", "-1e400", "1.8976931348623157e308"):
        assert table.insert(f'{{"PartitionKey":"p","RowKey":"r","V":{value}}}').status == 400


def test_2450_filter_false(table: Table) -> None:
    """Reported: 400. The service returns 200 without rows; health checks of .NET rely on it."""
    table.add(entity("p", "r"))
    assert table.row_keys("false") == []
    answer = table.client.send("GET", "/Tables", "$filter=false").expect(200)
    assert answer.json()["value"] == []


@pytest.mark.unverified
def test_1428_top_of_zero(table: Table) -> None:
    """Reported: all rows. The service's answer is not recorded; an empty page does no harm."""
    table.add(entity("p", "r"))
    assert table.page("$top=0").rows == []


def test_1359_sas_with_an_upper_case_table_name(table: Table) -> None:
    """Reported: 403. The service lower-cases the name before it checks the signature."""
    for name in (table.name.upper(), table.name.capitalize()):
        sas = table_sas(table.client.endpoint, name, {})
        table.client.send("GET", f"/{name}", sas, signer=anonymous).expect(200)
        table.client.send("GET", table.path, sas, signer=anonymous).expect(200)


def test_2208_signature_of_a_secondary_url(table: Table) -> None:
    """Reported: 403. The service accepts it."""
    table.add(entity("p", "r"))
    from_secondary = Table(type(table.client)(table.client.endpoint.secondary), table.name)
    from_secondary.get("p", "r").expect(200)
    from_secondary.client.close()


def test_changelog_filters_without_blanks(table: Table) -> None:
    """Reported: rejected. The service accepts `)and(` and `not(`."""
    table.add(entity("p", "r", A=1, B=2))
    for text in ("(A eq 1)and(B eq 2)", "(A eq 5)or(B eq 2)", "not(A eq 5)", "(A eq 1)and not(B eq 5)"):
        assert table.row_keys(text) == ["r"]


@pytest.mark.parametrize("key", ["it's", "100%", "a,b", "%25", "'", "''", "(a)", "é,'%"])
def test_changelog_keys_with_quotes_percents_and_commas(table: Table, key: str) -> None:
    """Reported: not found or mangled. The service treats them as any key."""
    table.add(entity(key, key, A=1))
    table.get(key, key).expect(200)
    table.write("MERGE", table.at(key, key), {"A": 2}, If_Match="*").expect(204)
    assert table.row_keys(f"PartitionKey eq '{key.replace(chr(39), chr(39) * 2)}'") == [key]
    table.write("DELETE", table.at(key, key), If_Match="*").expect(204)


def test_changelog_empty_keys(table: Table) -> None:
    """Reported: rejected. The service accepts empty keys everywhere."""
    table.add(entity("", "", A=1))
    assert table.get("", "").json()["A"] == 1
    assert table.row_keys("PartitionKey eq '' and RowKey eq ''") == [""]
    assert run(table.client, operation("DELETE", url(table, table.at("", "")), If_Match="*"))[0].status == 204


def test_changelog_continuation_with_non_ascii_keys(table: Table) -> None:
    """Reported: a crash. The service's tokens are ASCII whatever the keys."""
    table.add(*(entity("日本", f"キー{row}") for row in range(3)))
    first = table.page("$top=2")
    assert [row["RowKey"] for row in table.page(first.next).rows] == ["キー2"]


def test_changelog_four_mebibyte_bodies(table: Table) -> None:
    """Reported: no limit. The service answers 413 outside the batch."""
    big = [insert(table, entity("p", f"{row}", A="x" * 32_000, B="x" * 32_000)) for row in range(70)]
    assert submit(table.client, body(big)).code == (413, "RequestBodyTooLarge")
    assert table.page().rows == []


def test_changelog_long_strings_and_binaries(table: Table) -> None:
    """Reported: other limits. The service takes 32 K characters of text and 64 KiB of binary, no more."""
    binary = "A" * 87_380 + "AA=="  # 65,536 bytes
    content = entity("p", "r", S="x" * 32_768) | {"B@odata.type": "Edm.Binary", "B": binary}
    table.insert(content).expect(201)
    assert table.insert(entity("p", "s", S="x" * 32_769)).code == (400, "PropertyValueTooLarge")


def test_changelog_patch_in_a_batch(table: Table) -> None:
    """Reported: unsupported. The service treats PATCH as MERGE."""
    table.add(entity("p", "r", A=1))
    assert run(table.client, operation("PATCH", url(table, table.at("p", "r")), {"B": 2}))[0].status == 204
    row = table.get("p", "r").json()
    assert (row["A"], row["B"]) == (1, 2)


def test_changelog_deleting_a_table_whose_name_begins_another(table: Table) -> None:
    """Reported: both are gone. The service deletes the one that is named."""
    longer = Table(table.client, f"{table.name}x")
    table.client.send("POST", "/Tables", body=f'{{"TableName":"{longer.name}"}}').expect(201)
    table.add(entity("p", "r"))
    longer.client.send("DELETE", f"/Tables('{longer.name}')").expect(204)
    assert table.row_keys() == ["r"]


def test_type_blind_comparison(table: Table) -> None:
    """Reported: a Long 123 equals '123'. The service compares within types."""
    table.insert(entity("p", "long") | {"V@odata.type": "Edm.Int64", "V": "123"}).expect(201)
    table.insert(entity("p", "text", V="123")).expect(201)
    assert table.row_keys("V eq '123'") == ["text"]
    assert table.row_keys("V eq 123L") == ["long"]


def test_acl_stats_cors_and_conditions_are_whole(table: Table) -> None:
    """Reported: partial. The service has them whole; their own files hold the detail, this is a reminder of each."""
    table.client.send("GET", table.path, "comp=acl").expect(200)
    table.client.send("HEAD", table.path, "comp=acl").expect(200)
    answer = table.client.send("OPTIONS", table.path, headers={"Origin": "http://x"}, signer=anonymous)
    assert answer.code == (400, "InvalidHeaderValue")
    assert table.filter("not (A eq 1) and (B ge 2 or C lt 'x')").status == 200
