"""Reference §3: the headers of every kind of response."""

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest

from .answers import Answer
from .batches import body, insert, submit
from .client import MINIMAL, Client, HeaderChanges
from .sas import account_sas, table_sas
from .service_properties import QUERY as PROPERTIES
from .signing import Endpoint, Signer, Unsigned, anonymous, shared_key
from .tables import Table, entity

GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RFC_1123 = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")
ETAG = re.compile(r"""W/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{0,6}[1-9])?Z'\"""")
JSON_TYPE = f"{MINIMAL};streaming=true;charset=utf-8"

JSON: dict[str, str | None] = {
    "Content-Type": JSON_TYPE,
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
}
EMPTY: dict[str, str | None] = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Content-Type": None,
    "Location": None,
    "DataServiceId": None,
    "Preference-Applied": None,
    "ETag": None,
}
XML: dict[str, str | None] = {"Content-Type": "application/xml", "ETag": None}
PLAIN_JSON = JSON | {"ETag": None, "Location": None, "DataServiceId": None, "Preference-Applied": None}
"""Headers by value; `...` stands for any ETag, None for absence, `{base}` and `{table}` are filled in."""

ANY_ETAG = "any"
ENTITY_URL = "{base}{table}(PartitionKey='p',RowKey='n')"
TABLE_URL = "{base}Tables('{new}')"
NEW = '{"PartitionKey":"p","RowKey":"n"}'
NEW_TABLE = '{{"TableName":"{new}"}}'


class Kind(NamedTuple):
    """A request, its status and the headers of its answer. The table holds one entity, (p, r)."""

    method: str
    path: str
    sent: HeaderChanges
    body: str | None
    status: int
    came: dict[str, str | None]


ROW = "/{table}(PartitionKey='p',RowKey='r')"
NO_ROW = "/{table}(PartitionKey='p',RowKey='none')"
KINDS = {
    "point query": Kind("GET", ROW, {}, None, 200, PLAIN_JSON | {"ETag": ANY_ETAG}),
    "query": Kind("GET", "/{table}()", {}, None, 200, PLAIN_JSON),
    "query tables": Kind("GET", "/Tables", {}, None, 200, PLAIN_JSON),
    "get table": Kind("GET", "/Tables('{table}')", {}, None, 200, PLAIN_JSON),
    "insert": Kind(
        "POST",
        "/{table}",
        {},
        NEW,
        201,
        JSON | {"ETag": ANY_ETAG, "Location": ENTITY_URL, "Preference-Applied": None},
    ),
    "insert, content asked for": Kind(
        "POST",
        "/{table}",
        {"Prefer": "return-content"},
        NEW,
        201,
        JSON | {"ETag": ANY_ETAG, "Location": ENTITY_URL, "Preference-Applied": "return-content"},
    ),
    "insert, no content": Kind(
        "POST",
        "/{table}",
        {"Prefer": "return-no-content"},
        NEW,
        204,
        EMPTY
        | {
            "ETag": ANY_ETAG,
            "Location": ENTITY_URL,
            "DataServiceId": ENTITY_URL,
            "Preference-Applied": "return-no-content",
        },
    ),
    "create table": Kind(
        "POST", "/Tables", {}, NEW_TABLE, 201, JSON | {"Location": TABLE_URL, "ETag": None, "Preference-Applied": None}
    ),
    "create table, no content": Kind(
        "POST",
        "/Tables",
        {"Prefer": "return-no-content"},
        NEW_TABLE,
        204,
        {
            "Location": TABLE_URL,
            "DataServiceId": TABLE_URL,
            "Preference-Applied": "return-no-content",
            "ETag": None,
            "Content-Type": None,
        },
    ),
    "replace": Kind("PUT", ROW, {"If-Match": "*"}, "{}", 204, EMPTY | {"ETag": ANY_ETAG}),
    "merge": Kind("MERGE", ROW, {"If-Match": "*"}, "{}", 204, EMPTY | {"ETag": ANY_ETAG}),
    "upsert": Kind("PATCH", NO_ROW, {"Prefer": "return-content"}, "{}", 204, EMPTY | {"ETag": ANY_ETAG}),
    "delete": Kind("DELETE", ROW, {"If-Match": "*"}, None, 204, EMPTY),
    "missing entity": Kind("GET", NO_ROW, {}, None, 404, PLAIN_JSON),
    "conflict": Kind("POST", "/{table}", {}, NEW.replace('"n"', '"r"'), 409, PLAIN_JSON),
    "stale": Kind("PUT", ROW, {"If-Match": 'W/"foo"'}, "{}", 412, PLAIN_JSON),
    "no such table": Kind("GET", "/nosuchtable", {}, None, 404, PLAIN_JSON),
    "filter syntax": Kind(
        "GET", "/{table}?$filter=aaa%20bbb%20ccc", {}, None, 400, PLAIN_JSON | {"Cache-Control": None}
    ),
    "get policies": Kind("GET", "/{table}?comp=acl", {}, None, 200, XML | {"Cache-Control": None}),
    "set policies": Kind("PUT", "/{table}?comp=acl", {}, "", 204, {"Content-Type": None, "ETag": None}),
    "get properties": Kind("GET", "/?restype=service&comp=properties", {}, None, 200, XML | {"Cache-Control": None}),
    "set properties": Kind(
        "PUT",
        "/?restype=service&comp=properties",
        {},
        '<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties><Cors /></StorageServiceProperties>',
        202,
        {"ETag": None},
    ),
}
Send = Callable[[Kind], Answer]


@pytest.fixture
def send(table: Table, client: Client, name: str, disposable: Callable[[str], str]) -> Send:
    """Sends a kind of request to a table that holds the entity (p, r)."""
    table.add(entity("p", "r"))
    names = {"table": table.name, "new": disposable(name), "base": client.endpoint.base}

    def send(kind: Kind) -> Answer:
        path, _, query = kind.path.format(**names).partition("?")
        content = kind.body.format(**names) if kind.body and "{new}" in kind.body else kind.body
        answer = client.send(kind.method, path, query, headers=kind.sent, body=content).expect(kind.status)
        for header, value in kind.came.items():
            came = answer.header(header)
            if value == ANY_ETAG:
                assert came is not None, header
                assert ETAG.fullmatch(came), came
            else:
                assert came == (value and value.format(**names)), header
        return answer

    return send


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_headers_of_each_operation(send: Send, kind: Kind) -> None:
    answer = send(kind)
    assert GUID.fullmatch(answer.required("x-ms-request-id"))
    assert RFC_1123.fullmatch(answer.required("Date"))
    assert answer.header("x-ms-version") == "2019-02-02"
    assert answer.header("Server") == "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"
    assert answer.header("x-ms-client-request-id") is None
    assert answer.header("Vary") is None
    if kind.status == 204:
        assert answer.body == b""
        assert answer.header("Transfer-Encoding") is None
        assert answer.header("Content-Length") in {None, "0"}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_client_request_id_is_echoed(send: Send, kind: Kind) -> None:
    given = "My id: ~{42}"
    answer = send(kind._replace(sent={**kind.sent, "x-ms-client-request-id": given}))
    assert answer.header("x-ms-client-request-id") == given


def test_a_client_request_id_beyond_1024_characters_is_not_echoed(client: Client) -> None:
    for length, echoed in [(1024, True), (1025, False)]:
        given = "x" * length
        answer = client.send("GET", "/Tables", "$top=1", headers={"x-ms-client-request-id": given})
        assert (answer.header("x-ms-client-request-id") == given) is echoed
        assert answer.status in {200} | ({400} if not echoed else set())


RECORDED = {"content-type", "cache-control", "x-content-type-options", "etag", "location", "dataserviceid", "vary"}
RECORDED |= {"preference-applied", "server", "date", "x-ms-request-id", "x-ms-version", "x-ms-error-code"}
RECORDED |= {"transfer-encoding", "content-length"}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_header_beyond_the_recorded_ones(send: Send, kind: Kind) -> None:
    """In particular no DataServiceVersion. Server-Timing is allowed: it does no harm."""
    assert {name.lower() for name, _ in send(kind).headers} - {"server-timing"} <= RECORDED


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_bodies_have_their_length(send: Send, kind: Kind) -> None:
    """Or are chunked, as those of the real service."""
    answer = send(kind)
    if answer.header("Transfer-Encoding") is None:
        assert answer.header("Content-Length") == str(len(answer.body))


def forged(endpoint: Endpoint, _: Unsigned) -> str:
    """A signer whose key is wrong."""
    return f"SharedKey {endpoint.account}:{'A' * 43}="


def malformed(_: Endpoint, __: Unsigned) -> str:
    """A signer that knows no scheme."""
    return "nonsense"


BEARER = "Bearer e30.e30.e30"
FRONT_DOOR: dict[str, tuple[Signer, str, int]] = {
    "wrong signature": (forged, "", 403),
    "wrong signature of a token": (anonymous, "sv=2019-02-02&tn=Tables&sp=r&se=2100-01-01&sig=AAAA", 403),
    "malformed header": (malformed, "", 400),
    "bearer token": (lambda _, __: BEARER, "", 401),
    "nothing": (anonymous, "", 401),
}
"""Credentials that prove nothing: how they are sent, by header or by query, and the status."""


@pytest.mark.parametrize(("signer", "query", "status"), FRONT_DOOR.values(), ids=FRONT_DOOR)
@pytest.mark.parametrize("accept", [MINIMAL, "application/xml", "*/*"])
def test_rejected_credentials_have_the_front_doors_headers(
    client: Client, accept: str, signer: Signer, query: str, status: int
) -> None:
    def rejected(path: str, more: str = "") -> Answer:
        text = "&".join(filter(None, (query, more)))
        return client.send("GET", path, text, headers={"Accept": accept}, signer=signer).expect(status)

    data, xml = rejected("/Tables"), rejected("/", "restype=service&comp=properties")
    assert (data.header("Content-Type"), xml.header("Content-Type")) == ("application/json", "application/xml")
    for answer in (data, xml):
        assert answer.header("Server") == "Microsoft-HTTPAPI/2.0"
        assert answer.header("x-ms-version") is None
        assert answer.header("x-ms-error-code") == answer.rejection.code
        assert GUID.fullmatch(answer.required("x-ms-request-id"))
        assert RFC_1123.fullmatch(answer.required("Date"))
        assert (answer.header("WWW-Authenticate") is not None) is (status == 401)


def test_rejected_permissions_have_the_usual_headers(table: Table) -> None:
    """The header fields of an authenticated client."""
    sas = table_sas(table.client.endpoint, table.name, {"sp": "r"})
    answer = table.client.send("POST", table.path, sas, body=NEW, signer=anonymous).expect(403)
    assert answer.header("Content-Type") == JSON_TYPE
    assert answer.header("Server") == "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"
    assert answer.header("x-ms-version") == "2019-02-02"


def test_request_ids_differ(client: Client) -> None:
    ids = {client.send("GET", "/Tables", "$top=1").header("x-ms-request-id") for _ in range(5)}
    assert len(ids) == 5


def test_headers_of_a_batch(table: Table) -> None:
    answer = submit(table.client, body([insert(table, entity("p", "r"))])).expect(202)
    assert answer.reason == "Accepted"
    content_type = answer.required("Content-Type")
    assert re.fullmatch(
        r"multipart/mixed; boundary=batchresponse_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", content_type
    )
    assert answer.header("Cache-Control") == "no-cache"
    assert answer.header("X-Content-Type-Options") == "nosniff"
    assert GUID.fullmatch(answer.required("x-ms-request-id"))
    assert answer.header("x-ms-version") == "2019-02-02"


@pytest.mark.parametrize("level", ["nometadata", "minimalmetadata", "fullmetadata"])
def test_content_type_names_the_level_used(table: Table, level: str) -> None:
    table.add(entity("p", "r"))
    accept = f"application/json;odata={level}"
    for answer in (table.get("p", "r", accept=accept), table.query(accept=accept), table.get("p", "x", accept=accept)):
        assert answer.header("Content-Type") == f"{accept};streaming=true;charset=utf-8"


REASONS = {200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 400: "Bad Request", 404: "Not Found"}
REASONS |= {409: "Conflict", 412: "Precondition Failed"}
"""Of whatever tables and entities answer."""


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_reason_phrases_are_the_standard_ones(send: Send, kind: Kind) -> None:
    answer = send(kind)
    assert answer.reason == REASONS[answer.status]


class Phrased(NamedTuple):
    """A request whose rejection has its message's first line as the reason phrase."""

    method: str
    path: str
    phrase: str
    query: str = ""
    body: str | None = None
    headers: HeaderChanges | None = None
    signer: Signer = shared_key


FAILED = "Server failed to authenticate the request. "
FORMED = FAILED + "Make sure the value of Authorization header is formed correctly including the signature."
NOT_SYNTACTIC = "XML specified is not syntactically valid."
NO_MEDIA_TYPE = "None of the provided media types are supported"
PHRASED = {
    "policies of no table": Phrased("GET", "/nosuch", "The specified resource does not exist.", "comp=acl"),
    "policies that are no XML": Phrased("PUT", "/{table}", NOT_SYNTACTIC, "comp=acl", body="nonsense"),
    "properties that are no XML": Phrased("PUT", "/", NOT_SYNTACTIC, PROPERTIES, body="nonsense"),
    "wrong signature": Phrased("GET", "/Tables", FORMED, signer=forged),
    "wrong signature of a write": Phrased("POST", "/{table}", FORMED, body=NEW, signer=forged),
    "wrong signature, in XML": Phrased("GET", "/{table}", FORMED, "comp=acl", signer=forged),
    "no credentials": Phrased(
        "GET", "/Tables", FAILED + "Please refer to the information in the www-authenticate header.", signer=anonymous
    ),
    "body of no type": Phrased("POST", "/{table}", NO_MEDIA_TYPE, body="{}", headers={"Content-Type": "text/plain"}),
    "answer of no type": Phrased("GET", "/{table}", NO_MEDIA_TYPE, headers={"Accept": "text/html"}),
    "body too large": Phrased(
        "POST",
        "/{table}",
        "The request body is too large and exceeds the maximum permissible limit.",
        body="{" + " " * 4 * 1024 * 1024 + "}",
    ),
}


@pytest.mark.parametrize("case", PHRASED.values(), ids=PHRASED)
def test_reason_phrases_of_the_front_door(table: Table, case: Phrased) -> None:
    path = case.path.format(table=table.name)
    answer = table.client.send(case.method, path, case.query, headers=case.headers, body=case.body, signer=case.signer)
    assert answer.reason == case.phrase == answer.rejection.message


def test_the_reason_phrase_of_a_token_for_another_service(table: Table) -> None:
    sas = account_sas(table.client.endpoint, {"ss": "b"})
    answer = table.client.send("GET", table.path, sas, signer=anonymous).expect(403)
    assert answer.reason == "This request is not authorized to perform this operation using this service."


def test_the_reason_phrase_of_a_key_range_is_the_standard_one(table: Table) -> None:
    sas = table_sas(table.client.endpoint, table.name, {"spk": "x"})
    answer = table.client.send("POST", table.path, sas, body=NEW, signer=anonymous).expect(403)
    assert (answer.rejection.code, answer.reason) == ("AuthorizationFailure", "Forbidden")


@pytest.mark.unverified
def test_reason_phrases_of_other_rejected_tokens(table: Table) -> None:
    for fields in ({"sip": "10.9.8.7"}, {"sp": "d"}, {"srt": "s"}):
        sas = account_sas(table.client.endpoint, fields)
        answer = table.client.send("GET", table.path, sas, signer=anonymous).expect(403)
        assert answer.reason in {"Forbidden", answer.rejection.message}
