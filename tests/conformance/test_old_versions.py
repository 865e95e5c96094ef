"""Reference §2, §2.1, §9, §12, §14, §15: what a version did not have yet, and what the next one brought.

Requests are of the kind that the version had: in Atom, or without a payload. What the body of an answer is in, other
tests ask.
"""

import pytest

from .batches import body, changeset, insert, operation, submit, url
from .client import Client, HeaderChanges
from .sas import account_sas, table_sas
from .service_properties import (
    DEFAULTS,
    HOUR_OFF,
    LOGGING_OFF,
    METRICS_OFF,
    MINUTE_OFF,
    QUERY,
    cors,
    document,
    get,
    put,
    rule,
    shape,
)
from .signing import anonymous
from .tables import Table, entity

ATOM = "application/atom+xml"
ENTRY = (
    '<?xml version="1.0" encoding="utf-8"?><entry xmlns="http://www.w3.org/2005/Atom" '
    'xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices" '
    'xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><title /><updated>2010-01-01T00:00:00Z'
    '</updated><author><name /></author><id /><content type="application/xml"><m:properties><d:A>x</d:A>'
    "</m:properties></content></entry>"
)
NO_ODATA: HeaderChanges = {"DataServiceVersion": None, "MaxDataServiceVersion": None}


def at(version: str | None, **more: str | None) -> HeaderChanges:
    """The headers of a client of that version; `If_Match="*"` is the header If-Match."""
    changes = {name.replace("_", "-"): value for name, value in more.items()}
    return {**NO_ODATA, "Accept": f"{ATOM},application/xml", "x-ms-version": version, **changes}


# Writes without a condition.


@pytest.mark.parametrize("row", ["r", "missing"])
@pytest.mark.parametrize("method", ["PUT", "MERGE"])
@pytest.mark.parametrize("version", ["2009-04-14", "2009-09-19"])
def test_upserts_came_with_2011_08_18(table: Table, method: str, version: str, row: str) -> None:
    table.add(entity("p", "r", A="old"))
    before = table.page().rows
    old, new = at(version, Content_Type=ATOM), at("2011-08-18", Content_Type=ATOM)
    table.client.send(method, table.at("p", row), headers=old, body=ENTRY).expect(400)
    assert table.page().rows == before
    assert table.client.send(method, table.at("p", row), headers=new, body=ENTRY).status == 204


@pytest.mark.parametrize("version", ["2009-09-19", "2011-08-18", "2013-08-15"])
def test_deletes_always_needed_a_condition(table: Table, version: str) -> None:
    table.add(entity("p", "r"))
    table.client.send("DELETE", table.at("p", "r"), headers=at(version)).expect(400)
    table.client.send("DELETE", table.at("p", "r"), headers=at(version, If_Match="*")).expect(204)


# Operations that were not there yet.


@pytest.mark.unverified
def test_batches_came_with_2009_04_14(table: Table) -> None:
    table.add(entity("p", "1"), entity("p", "2"))
    changes = [operation("DELETE", url(table, table.at("p", row)), If_Match="*") for row in "12"]
    assert submit(table.client, body(changes), headers=at("2008-10-27")).status == 400
    parts = changeset(submit(table.client, body(changes), headers=at("2009-04-14")).expect(202))
    assert [part.status for part in parts] == [204, 204]


@pytest.mark.unverified
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_access_policies_came_with_2012_02_12(table: Table, method: str) -> None:
    content = "<SignedIdentifiers />" if method == "PUT" else None
    for version in ("2009-09-19", "2011-08-18"):
        table.client.send(method, table.path, "comp=acl", headers=at(version), body=content).expect(400)
    answer = table.client.send(method, table.path, "comp=acl", headers=at("2012-02-12"), body=content)
    assert answer.status == (204 if method == "PUT" else 200)


@pytest.mark.unverified
def test_stats_came_with_2013_08_15(secondary: Client) -> None:
    query = "restype=service&comp=stats"
    assert secondary.send("GET", "/", query, headers=at("2012-02-12")).code == (400, "InvalidQueryParameterValue")
    secondary.send("GET", "/", query, headers=at("2013-08-15")).expect(200)


@pytest.mark.parametrize("query", ["$select=A", "$select=A,B&$top=1"])
def test_select_came_with_2011_08_18(table: Table, query: str) -> None:
    table.client.send("GET", table.path, query, headers=at("2009-09-19")).expect(400)
    assert table.client.send("GET", table.path, query, headers=at("2011-08-18")).status == 200
    one = at("2011-08-18", DataServiceVersion="1.0;NetFx")
    table.client.send("GET", table.path, query, headers=one).expect(400)
    most = at("2011-08-18", DataServiceVersion="1.0;NetFx", MaxDataServiceVersion="2.0;NetFx")
    assert table.client.send("GET", table.path, query, headers=most).status == 200


# Headers.


@pytest.mark.parametrize(
    ("version", "one", "most", "status"),
    [
        ("2009-09-19", "1.0", None, 404),
        ("2009-09-19", "2.0", None, 400),
        ("2009-09-19", "1.0;NetFx", "2.0;NetFx", 404),
        ("2011-08-18", "2.0;NetFx", "2.0;NetFx", 404),
        ("2012-02-12", "3.0", None, 400),
        ("2012-02-12", "3.0;", "3.0;NetFx", 400),
        ("2012-02-12", "3.0", "2.0;NetFx", 404),
        ("2013-08-15", "3.0", "3.0;NetFx", 404),
    ],
)
@pytest.mark.unverified
def test_odata_versions_have_their_first_version(
    missing: Table, version: str, one: str, most: str | None, status: int
) -> None:
    headers = at(version, DataServiceVersion=one, MaxDataServiceVersion=most)
    assert missing.client.send("DELETE", f"/Tables('{missing.name}')", headers=headers).status == status


@pytest.mark.unverified
@pytest.mark.parametrize("text", ["three", "4.0", "", "3", "3.0;NetFx;x"])
def test_other_odata_versions_are_survived(table: Table, text: str) -> None:
    headers = {"DataServiceVersion": text, "MaxDataServiceVersion": text}
    table.client.send("GET", table.path, headers=headers).expect(200)


def test_answers_carry_their_version_since_2009_09_19(missing: Table) -> None:
    for version, echoed in [("2009-07-17", None), ("2009-09-19", "2009-09-19"), ("2012-02-12", "2012-02-12")]:
        answer = missing.client.send("DELETE", f"/Tables('{missing.name}')", headers=at(version)).expect(404)
        assert answer.header("x-ms-version") == echoed


@pytest.mark.parametrize(
    ("version", "with_content", "without"),
    [
        ("2013-08-15", "3.0;NetFx", "1.0;NetFx"),
        ("2015-07-08", "3.0;NetFx", "1.0;NetFx"),
        ("2016-05-31", None, None),
        ("2019-02-02", None, None),
    ],
)
def test_the_odata_version_of_an_answer(
    table: Table, version: str, with_content: str | None, without: str | None
) -> None:
    headers: HeaderChanges = {"x-ms-version": version}
    content = '{"PartitionKey":"p","RowKey":"r"}'
    answers = [
        (table.client.send("POST", table.path, headers=headers, body=content).expect(201), with_content),
        (table.client.send("GET", table.path, headers=headers).expect(200), with_content),
        (table.client.send("GET", table.at("p", "r"), headers=headers).expect(200), with_content),
        (table.client.send("PUT", table.at("p", "r"), headers=headers, body=content).expect(204), without),
        (table.client.send("DELETE", table.at("p", "r"), headers={**headers, "If-Match": "*"}).expect(204), without),
    ]
    assert [answer.header("DataServiceVersion") for answer, _ in answers] == [expected for _, expected in answers]


# Credentials.


@pytest.mark.parametrize(
    ("version", "codes"),
    [
        ("2009-09-19", {(404, "ResourceNotFound"), (403, "AuthenticationFailed")}),
        ("2013-08-15", {(404, "ResourceNotFound"), (403, "AuthenticationFailed")}),
        ("2019-02-02", {(401, "NoAuthenticationInformation")}),
        ("2020-12-06", {(401, "NoAuthenticationInformation")}),
    ],
)
@pytest.mark.unverified
def test_no_credentials_by_version(shared_table: Table, version: str, codes: set[tuple[int, str]]) -> None:
    for path in (shared_table.path, "/Tables", "/nosuchtable"):
        answer = shared_table.client.send("GET", path, headers={"x-ms-version": version}, signer=anonymous)
        assert answer.code in codes


@pytest.mark.unverified
@pytest.mark.parametrize("limit", [{"sip": "192.0.2.1"}, {"spr": "https"}])
def test_addresses_and_protocols_hold_since_2015_04_05(shared_table: Table, limit: dict[str, str]) -> None:
    https = shared_table.client.endpoint.scheme == "https"
    for version, holds in [
        ("2012-02-12", False),
        ("2015-02-21", False),
        ("2015-04-05", not (https and "spr" in limit)),
    ]:
        sas = table_sas(shared_table.client.endpoint, shared_table.name, {"sv": version, **limit})
        answer = shared_table.client.send("GET", shared_table.path, sas, signer=anonymous)
        assert answer.status == (403 if holds else 200)


@pytest.mark.parametrize("version", ["2012-02-30", "2012-13-01", "9999-99-99"])
def test_a_signed_version_that_is_no_date(shared_table: Table, version: str) -> None:
    sas = table_sas(shared_table.client.endpoint, shared_table.name, {"sv": version})
    answer = shared_table.client.send("GET", shared_table.path, sas, signer=anonymous)
    assert answer.code == (403, "AuthenticationFailed")


# No version at all.


@pytest.mark.unverified
@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", {"Accept": "application/json"}),
        ("", {"Accept": "text/html,application/json;q=0.5"}),
        ("$format=json", {"Accept": "*/*"}),
        ("$format=application%2Fjson%3Bodata%3Dnometadata", {"Accept": None}),
    ],
)
def test_a_request_for_json_without_a_version_gets_the_newest(
    shared_table: Table, query: str, headers: HeaderChanges
) -> None:
    headers = {**NO_ODATA, "x-ms-version": None, **headers}
    answer = shared_table.client.send("GET", shared_table.path, query, headers=headers).expect(200)
    assert "value" in answer.json()
    assert answer.required("x-ms-version") >= "2019-02-02"


@pytest.mark.unverified
def test_a_json_body_without_a_version_gets_the_newest(table: Table) -> None:
    headers = {**NO_ODATA, "x-ms-version": None, "Accept": "*/*", "Content-Type": "application/json"}
    content = '{"PartitionKey":"p","RowKey":"r"}'
    assert table.client.send("POST", table.path, headers=headers, body=content).expect(201).json()["RowKey"] == "r"
    table.client.send("MERGE", table.at("p", "s"), headers=headers, body=content).expect(204)


@pytest.mark.unverified
@pytest.mark.parametrize("accept", ["*/*", None, ATOM])
def test_other_requests_without_a_version_get_2009_09_19(table: Table, accept: str | None) -> None:
    table.add(entity("p", "r"))
    headers = {**NO_ODATA, "x-ms-version": None, "Accept": accept, "If-Match": "*"}
    answer = table.client.send("DELETE", table.at("p", "r"), headers=headers).expect(204)
    assert answer.header("x-ms-version") == "2009-09-19"


@pytest.mark.unverified
def test_operations_in_xml_need_no_version(table: Table) -> None:
    headers = {**NO_ODATA, "x-ms-version": None, "Accept": "*/*"}
    table.client.send("GET", table.path, "comp=acl", headers=headers).expect(200)
    answer = table.client.send("GET", "/", QUERY, headers=headers).expect(200)
    assert b"<HourMetrics>" in answer.body


def test_a_token_is_enough_for_json(table: Table) -> None:
    """What `curl` sends to a URL with a SAS."""
    headers = {**NO_ODATA, "x-ms-version": None, "x-ms-date": None, "Accept": "*/*"}
    table.add(entity("p", "r"))
    endpoint = table.client.endpoint
    for sas in (table_sas(endpoint, table.name, {}), account_sas(endpoint, {})):
        answer = table.client.send("GET", table.path, sas, headers=headers, signer=anonymous).expect(200)
        assert [row["RowKey"] for row in answer.json()["value"]] == ["r"]
        assert answer.header("x-ms-version") == "2019-02-02"


@pytest.mark.unverified
def test_the_parts_of_a_batch_without_a_version(table: Table) -> None:
    headers = {**NO_ODATA, "x-ms-version": None, "Accept": "*/*"}
    parts = changeset(submit(table.client, body([insert(table, entity("p", "r"))]), headers=headers).expect(202))
    assert [part.status for part in parts] == [204]


# Service properties, and CORS.


OLD_DEFAULTS = document(LOGGING_OFF, f"<Metrics>{METRICS_OFF}</Metrics>")
ON = "<Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
WEEK = "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy>"
INVALID = {
    "no metrics": document(LOGGING_OFF),
    "no logging": document(f"<Metrics>{METRICS_OFF}</Metrics>"),
    "nothing": document(),
    "hour metrics": document(LOGGING_OFF, HOUR_OFF),
    "minute metrics": document(LOGGING_OFF, f"<Metrics>{METRICS_OFF}</Metrics>", MINUTE_OFF),
    "cors": document(LOGGING_OFF, f"<Metrics>{METRICS_OFF}</Metrics>", "<Cors />"),
}


@pytest.mark.parametrize("version", ["2009-09-19", "2012-02-12"])
def test_old_service_properties(client: Client, version: str) -> None:
    put(client, document(LOGGING_OFF, HOUR_OFF, MINUTE_OFF, cors(rule("http://a.example")))).expect(202)
    try:
        read = client.send("GET", "/", QUERY, headers=at(version)).expect(200)
        assert shape(read.body.decode("utf-8-sig")) == shape(OLD_DEFAULTS)
        changed = document(LOGGING_OFF, f"<Metrics>{ON}{WEEK}</Metrics>")
        client.send("PUT", "/", QUERY, headers=at(version), body=changed).expect(202)
        read = client.send("GET", "/", QUERY, headers=at(version)).expect(200)
        assert shape(read.body.decode("utf-8-sig")) == shape(changed)
        now = document(
            LOGGING_OFF, f"<HourMetrics>{ON}{WEEK}</HourMetrics>", MINUTE_OFF, cors(rule("http://a.example"))
        )
        assert shape(get(client)) == shape(now)
    finally:
        put(client, DEFAULTS).expect(202)


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID)
def test_old_service_properties_are_whole(client: Client, text: str) -> None:
    assert client.send("PUT", "/", QUERY, headers=at("2012-02-12"), body=text).code == (400, "InvalidXmlDocument")
    assert shape(get(client)) == shape(DEFAULTS)


@pytest.mark.unverified
def test_cors_came_with_2013_08_15(client: Client) -> None:
    put(client, document(cors(rule("*")))).expect(202)
    try:
        for version, allowed in [("2012-02-12", None), ("2013-08-15", "*"), ("2019-02-02", "*")]:
            headers: HeaderChanges = {"Origin": "http://a.example", "x-ms-version": version}
            answer = client.send("GET", "/Tables", headers=headers)
            assert answer.header("Access-Control-Allow-Origin") == allowed
    finally:
        put(client, DEFAULTS).expect(202)


def test_codes_of_rejections_are_headers_since_2017_07_29(client: Client) -> None:
    for version, code in [("2017-04-17", None), ("2017-07-29", "ResourceNotFound")]:
        answer = client.send("GET", "/missing", "comp=acl", headers={"x-ms-version": version}).expect(404)
        assert (answer.header("x-ms-error-code"), answer.code) == (code, (404, "ResourceNotFound"))
