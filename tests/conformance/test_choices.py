"""What Lazulite itself chose where the reference leaves a behaviour open, or where Lazulite differs.

The other files ask no more of an endpoint than that a client survives; this one pins what the page of behaviours says
of ours (docs/compatibility.md), and is skipped when another endpoint is under test.
"""

import json
import os
from typing import NamedTuple
from urllib.parse import quote

import pytest

from .atom import element, writing
from .atom import entity as atom_entity
from .batches import CRLF, PLAIN, Layout, body, changeset, insert, operation, query_body, query_part, sole_part, submit
from .batches import url as url_of
from .client import NONE, Client, HeaderChanges
from .sas import Fields, account_sas, table_sas
from .service_properties import document, put
from .signing import anonymous
from .tables import STALE, Table, entity

pytestmark = pytest.mark.skipif("LAZULITE_TEST_ENDPOINT" in os.environ, reason="the choices are those of Lazulite")

ROW = '{"PartitionKey":"p","RowKey":"r","T":true,"I":5,"D":1.5,"S":"s"}'
AT = "(PartitionKey='p',RowKey='r')"
NOT_VALID = "One of the request inputs is not valid."
PROCESSING = "An error occurred while processing this request."


@pytest.fixture
def row(table: Table) -> Table:
    """A table with one row (p, r)."""
    table.insert(ROW).expect(201)
    return table


class Rejected(NamedTuple):
    """A request below the table's address (`/` first: below the account's), and its rejection; no message: any."""

    method: str
    path: str
    status: int
    code: str
    message: str | None = None
    query: str = ""
    headers: HeaderChanges | None = None
    body: str | None = None


def filtered(text: str, status: int, code: str) -> Rejected:
    """A filter that is rejected."""
    return Rejected("GET", "", status, code, query=f"$filter={quote(text)}")


def posted(text: str, code: str, message: str | None = None) -> Rejected:
    """An entity that is rejected."""
    return Rejected("POST", "", 400, code, message, body=text)


def option(query: str, status: int, code: str, path: str = "") -> Rejected:
    """A query option that is rejected."""
    return Rejected("GET", path, status, code, query=query)


REJECTED = {
    "a number above a number": filtered("1 eq 1", 400, "InvalidInput"),
    "a text beside a text": filtered("'a' eq 'a'", 400, "InvalidInput"),
    "a property beside a property": filtered("I eq D", 400, "InvalidInput"),
    "operator in upper case": filtered("T EQ true", 400, "InvalidInput"),
    "and in upper case": filtered("I eq 5 AND T", 400, "InvalidInput"),
    "literal in upper case": filtered("T eq True", 400, "InvalidInput"),
    "function": filtered("startswith(S,'s')", 501, "NotImplemented"),
    "arithmetic": filtered("I add 1 eq 6", 501, "NotImplemented"),
    "nesting": filtered("(" * 2_000 + "I eq 5" + ")" * 2_000, 400, "InvalidInput"),
    "orderby": option("$orderby=RowKey", 501, "NotImplemented"),
    "skip": option("$skip=1", 501, "NotImplemented"),
    "count": option("$count=true", 501, "NotImplemented"),
    "inlinecount": option("$inlinecount=allpages", 501, "NotImplemented"),
    "expand": option("$expand=A", 501, "NotImplemented"),
    "empty top": option("$top=", 400, "InvalidInput"),
    "top with blanks": option("$top=%203%20", 400, "InvalidInput"),
    "negative timeout": option("timeout=-1", 400, "InvalidQueryParameterValue"),
    "token that is no base64": option("NextPartitionKey=1!8!***", 400, "InvalidQueryParameterValue"),
    "token of another length": option("NextPartitionKey=1!4!U21pdGg-", 400, "InvalidQueryParameterValue"),
    "token that is no text": option("NextPartitionKey=1!4!/w--", 400, "InvalidQueryParameterValue"),
    "delete without condition": Rejected("DELETE", AT, 400, "InvalidInput"),
    "merge if none match": Rejected("MERGE", AT, 400, "InvalidInput", headers={"If-None-Match": "*"}, body="{}"),
    "post to an entity": Rejected("POST", AT, 405, "MethodNotAllowed", body="{}"),
    "unknown verb": Rejected("FOO", "", 400, "InvalidHttpVerb"),
    "number for a key": posted('{"PartitionKey":5,"RowKey":"r"}', "InvalidInput", PROCESSING),
    "long key": posted(f'{{"PartitionKey":"{"k" * 1025}","RowKey":"r"}}', "KeyValueTooLarge"),
    "empty name": posted('{"PartitionKey":"p","RowKey":"n","":1}', "PropertyNameInvalid"),
    "integer beyond Int32": posted('{"PartitionKey":"p","RowKey":"n","A":2147483648}', "InvalidInput", PROCESSING),
    "value of another type": posted(
        '{"PartitionKey":"p","RowKey":"n","A@odata.type":"Edm.Int32","A":"x"}', "InvalidInput", PROCESSING
    ),
    "tables as a name": Rejected("POST", "/Tables", 400, "InvalidResourceName", body='{"TableName":"tables"}'),
    "short name": Rejected(
        "POST",
        "/Tables",
        400,
        "OutOfRangeInput",
        "The specified resource name length is not within the permissible limits.",
        body='{"TableName":"ab"}',
    ),
    "body of no type": Rejected(
        "PUT",
        AT,
        415,
        "MediaTypeNotSupported",
        "None of the provided media types are supported",
        headers={"Content-Type": "text/plain"},
        body="{}",
    ),
    "other answer": Rejected("GET", "", 415, "MediaTypeNotSupported", headers={"Accept": "text/html"}),
    "metadata document": Rejected("GET", "/$metadata", 404, "TableNotFound"),
    "service document": Rejected("GET", "/", 400, "InvalidUri"),
    "stats of the primary": Rejected("GET", "/", 400, "InvalidQueryParameterValue", query="restype=service&comp=stats"),
}


@pytest.mark.parametrize("case", REJECTED.values(), ids=REJECTED)
def test_choice_is_rejected(row: Table, case: Rejected) -> None:
    path = case.path if case.path.startswith("/") else row.path + case.path
    rejection = row.client.send(case.method, path, case.query, headers=case.headers, body=case.body).rejection
    assert rejection[:2] == (case.status, case.code)
    assert case.message in {None, rejection.message}


FOUND = {
    "suffix f": "$filter=D%20eq%201.5f",
    "suffix m": "$filter=D%20eq%201.5m",
    "order of Booleans": "$filter=T%20gt%20false",
    "top with a plus": "$top=%2B3",
    "no timeout": "timeout=0",
    "empty timeout": "timeout=",
    "raw token": "NextPartitionKey=2!8!U21pdGg-",
}
NOT_FOUND = {
    "key against a number": "$filter=PartitionKey%20gt%205",
    "date against a text": "$filter=Timestamp%20eq%20'x'",
    "top of nothing": "$top=0",
}


@pytest.mark.parametrize("query", FOUND.values(), ids=FOUND)
def test_filter_choice_finds_the_row(row: Table, query: str) -> None:
    assert len(row.page(query).rows) == 1


@pytest.mark.parametrize("query", NOT_FOUND.values(), ids=NOT_FOUND)
def test_filter_choice_finds_nothing(row: Table, query: str) -> None:
    assert row.page(query).rows == []


def test_guids_are_in_the_order_of_their_text(table: Table) -> None:
    for number in "19a":
        value = {"G@odata.type": "Edm.Guid", "G": f"0000000{number}-ffff-0000-0000-000000000000"}
        table.add(entity("p", number) | value)
    assert table.row_keys("G gt guid'00000001-ffff-0000-0000-000000000000'") == ["9", "a"]


@pytest.mark.parametrize("query", ["$filter=A%20eq%202", "$top=0"])
def test_a_point_query_ignores_options_of_collections(row: Table, query: str) -> None:
    assert row.get("p", "r", query).expect(200).body == row.get("p", "r").body


@pytest.mark.parametrize("tag", ["*", STALE])
def test_a_read_ignores_conditions(row: Table, tag: str) -> None:
    row.client.send("GET", row.at("p", "r"), headers={"If-None-Match": tag}).expect(200)


def test_head_is_not_for_entities(row: Table) -> None:
    row.client.send("HEAD", row.at("p", "r")).expect(405)


STORED = {
    "infinity of XML": ('"A@odata.type":"Edm.Double","A":"INF"', '"A":"Infinity"'),
    "minus zero": ('"A":-0.0', '"A":-0.0'),
    "underflow": ('"A":1e-400', '"A":0.0'),
    "nine digits": ('"A@odata.type":"Edm.DateTime","A":"2014-05-07T08:20:53.123456789Z"', '08:20:53.1234567Z"'),
    "half a pair": ('"A":"\\ud83d"', '"A":"\\ud83d"'),
    "another key": ('"PartitionKey":"other","A":1', '"PartitionKey":"p",'),
    "declared key": ('"PartitionKey@odata.type":"Edm.Int32","PartitionKey":"p"', '"PartitionKey":"p",'),
}


@pytest.mark.parametrize(("members", "kept"), STORED.values(), ids=STORED)
def test_value_choice_is_stored(table: Table, members: str, kept: str) -> None:
    table.write("PUT", table.at("p", "r"), f"{{{members}}}").expect(204)
    assert kept in table.get("p", "r").body.decode()


def test_the_name_in_an_address_is_echoed_as_it_is(row: Table) -> None:
    upper = row.name.upper()
    answer = row.client.send("GET", f"/{upper}()").expect(200)
    assert answer.json()["odata.metadata"].endswith(f"$metadata#{upper}")


def test_a_token_of_tables_is_the_name(table: Table, shared_table: Table) -> None:
    first, second = sorted([table.name, shared_table.name])
    query = f"$filter=TableName%20eq%20'{first}'%20or%20TableName%20eq%20'{second}'&$top=1"
    answer = table.client.send("GET", "/Tables", query, headers={"Accept": NONE}).expect(200)
    assert [each["TableName"] for each in answer.json()["value"]] == [first]
    assert answer.required("x-ms-continuation-NextTableName").startswith("1!")


def test_letters_of_tokens(table: Table) -> None:
    """The base64 of the second key has a plus and a slash."""
    table.add(entity("a", ""), entity("a\u03ff", ""))
    assert table.query("$top=1").required("x-ms-continuation-NextPartitionKey") == "1!4!Yc*_"
    for token in ("1!4!Yc*_", "1!4!Yc%2B/"):
        assert [row["PartitionKey"] for row in table.page(f"NextPartitionKey={token}").rows] == ["a\u03ff"]


def test_headers_of_answers(row: Table) -> None:
    for answer in (row.get("p", "r"), row.get("p", "none"), row.filter("aaa bbb ccc")):
        assert answer.header("Transfer-Encoding") is None
        assert answer.header("x-ms-error-code") == (answer.rejection.code or None)
    assert row.get("p", "r").required("Server-Timing").startswith("query;")


def test_dashes_in_names_were_never_allowed(table: Table) -> None:
    dashed = atom_entity("p", "r", element("a-b", "x"))
    answer = table.client.send("POST", table.path, headers=writing("2008-10-27"), body=dashed)
    assert answer.code == (400, "PropertyNameInvalid")


def test_headers_of_rejected_credentials(client: Client) -> None:
    xml = client.send("GET", "/", "restype=service&comp=properties", signer=anonymous).expect(401)
    assert xml.body.startswith(b"<?xml")
    assert xml.required("Content-Type") == "application/xml"
    data = client.send("GET", "/Tables", signer=anonymous).expect(401)
    assert (data.header("X-Content-Type-Options"), data.header("Cache-Control")) == ("nosniff", "no-cache")


def test_a_conflict_repeats_each_preference(table: Table) -> None:
    text = f'{{"TableName":"{table.name}"}}'
    answer = table.client.send("POST", "/Tables", body=text, headers={"Prefer": "return-content"}).expect(409)
    assert answer.header("Preference-Applied") == "return-content"


def test_an_unknown_account_is_a_missing_resource(client: Client) -> None:
    assert client.send("GET", "/nobody/Tables", absolute=True).code == (404, "ResourceNotFound")


@pytest.mark.parametrize("name", ["DefaultServiceVersion", "DeleteRetentionPolicy", "StaticWebsite"])
def test_what_belongs_to_blobs_is_unsupported(client: Client, name: str) -> None:
    assert put(client, document(f"<{name}/>")).code == (400, "InvalidXmlDocument")


PHRASES = {
    "address": ({"sip": "10.9.8.7"}, True),
    "permission": ({"sp": "d"}, False),
    "resource type": ({"srt": "s"}, False),
}
"""Fields of a token that does not reach, and whether the message is the reason phrase."""


@pytest.mark.parametrize(("fields", "is_message"), PHRASES.values(), ids=PHRASES)
def test_reason_phrases_of_rejected_tokens(shared_table: Table, fields: Fields, is_message: bool) -> None:
    sas = account_sas(shared_table.client.endpoint, fields)
    answer = shared_table.client.send("GET", shared_table.path, sas, signer=anonymous).expect(403)
    assert answer.reason == (answer.rejection.message if is_message else "Forbidden")


def test_reason_phrases_of_other_formats(shared_table: Table) -> None:
    atom = shared_table.client.send("GET", shared_table.path, headers={"Accept": "application/atom+xml"}).expect(415)
    assert atom.reason == "Atom format is not supported."


SAS_FAILURES: dict[str, Fields] = {
    "row bound alone": {"srk": "1"},
    "protocol http": {"spr": "http"},
    "protocol ftp": {"spr": "ftp"},
}


@pytest.mark.parametrize("fields", SAS_FAILURES.values(), ids=SAS_FAILURES)
def test_a_table_sas_fails(shared_table: Table, fields: Fields) -> None:
    sas = table_sas(shared_table.client.endpoint, shared_table.name, fields)
    answer = shared_table.client.send("GET", shared_table.path, sas, signer=anonymous)
    assert answer.code == (403, "AuthenticationFailed")


def test_an_account_sas_of_an_old_version_fails(shared_table: Table) -> None:
    sas = account_sas(shared_table.client.endpoint, {"sv": "2015-02-21"})
    answer = shared_table.client.send("GET", shared_table.path, sas, signer=anonymous)
    assert answer.code == (403, "AuthenticationFailed")


def test_a_field_in_sas_and_policy_fails(table: Table) -> None:
    policy = "<Id>p</Id><AccessPolicy><Permission>r</Permission></AccessPolicy>"
    text = f"<SignedIdentifiers><SignedIdentifier>{policy}</SignedIdentifier></SignedIdentifiers>"
    table.client.send("PUT", table.path, "comp=acl", body=text).expect(204)
    sas = table_sas(table.client.endpoint, table.name, {"si": "p"})
    answer = table.client.send("GET", table.path, sas, signer=anonymous)
    assert answer.code == (403, "AuthenticationFailed")


def test_the_header_counts_and_the_sas_does_not(shared_table: Table) -> None:
    sas = table_sas(shared_table.client.endpoint, shared_table.name, {"sp": "d"})
    shared_table.client.send("GET", shared_table.path, sas).expect(200)


def test_a_batch_has_one_timestamp(table: Table) -> None:
    changes = [insert(table, entity("p", f"{row}")) for row in range(5)]
    parts = changeset(submit(table.client, body(changes)).expect(202))
    assert len({part.header("ETag") for part in parts}) == 1


EMPTY_BATCHES = {
    "nothing": ("", 400),
    "no change set": (f"--{PLAIN.batch}--{CRLF}", 400),
    "empty change set": (body([]), 202),
}


@pytest.mark.parametrize(("text", "status"), EMPTY_BATCHES.values(), ids=EMPTY_BATCHES)
def test_empty_batch_choice(client: Client, text: str, status: int) -> None:
    answer = submit(client, text).expect(status)
    if status == 202:
        assert b"changesetresponse_" in answer.body
        assert b"HTTP/1.1" not in answer.body


def test_a_second_change_set_is_rejected_outside(table: Table) -> None:
    first = body([insert(table, entity("p", "1"))], Layout(closed=False))
    second = body([insert(table, entity("p", "2"))], Layout(changeset_type="multipart/mixed; boundary=changeset_other"))
    text = f"{first}--{PLAIN.changeset}--{CRLF}{CRLF}{second}"
    assert submit(table.client, text).rejection == (400, "InvalidInput", NOT_VALID)


def test_errors_of_batch_parts(row: Table) -> None:
    """A lone operation's error has no index, a lone query's has."""
    missing = operation("PUT", url_of(row, row.at("p", "none")), {}, If_Match="*")
    (part,) = changeset(submit(row.client, body([missing])).expect(202))
    assert part.rejection == (404, "ResourceNotFound", None, "The specified resource does not exist.")
    text = query_body([operation("GET", url_of(row, row.at("p", "none")))])
    part = query_part(submit(row.client, text).expect(202))
    assert part.rejection == (404, "ResourceNotFound", 0, "The specified resource does not exist.")
    nowhere = operation("POST", url_of(row) + "x", entity("p", "1"))
    (part,) = changeset(submit(row.client, body([nowhere])).expect(202))
    assert part.rejection[:3] == (404, "TableNotFound", 0)


def test_content_id_choices(row: Table) -> None:
    """One among the part's headers is not echoed; a reference to one is no address."""
    first = insert(row, entity("p", "1"))._replace(mime=(("Content-ID", "7"),))
    assert [part.header("Content-ID") for part in changeset(submit(row.client, body([first])).expect(202))] == [None]
    changes = [insert(row, entity("p", "2"), Content_ID="1"), operation("MERGE", "$1", {"A": 1})]
    part = sole_part(submit(row.client, body(changes)).expect(202))
    assert part.rejection == (400, "InvalidInput", 1, NOT_VALID)


def test_a_delete_without_condition_in_a_batch(row: Table) -> None:
    change = operation("DELETE", url_of(row, row.at("p", "r")))
    (part,) = changeset(submit(row.client, body([change])).expect(202))
    assert part.rejection[:2] == (400, "InvalidInput")


def test_an_old_sas_without_permission_rejects_a_batch_outside(table: Table) -> None:
    sas = table_sas(table.client.endpoint, table.name, {"sv": "2014-02-14", "sp": "r"})
    answer = submit(table.client, body([insert(table, entity("p", "r"))]), query=sas, signer=anonymous)
    assert answer.code == (404, "ResourceNotFound")


def test_members_of_an_error(row: Table) -> None:
    """Code and message, nothing else: a decoder of the Python SDK breaks on more."""
    assert list(json.loads(row.get("p", "none").body)["odata.error"]) == ["code", "message"]
