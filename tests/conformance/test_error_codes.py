"""Reference §16: every code that a client can provoke, with status and message, each by one plain request.

What needs more than one request (limits, batches, signatures) has a file of its own.
"""

import http.client
from typing import NamedTuple

import pytest

from .answers import Rejection
from .client import Client, HeaderChanges
from .signing import Endpoint
from .tables import STALE, Table, entity


class Cause(NamedTuple):
    """A request and its rejection; the table holds (p, r). No message: the reference leaves the text open."""

    method: str
    path: str
    headers: HeaderChanges
    body: str | None
    status: int
    code: str
    message: str | None = None


ROW = "/{t}(PartitionKey='p',RowKey='r')"
NONE = "/{t}(PartitionKey='p',RowKey='none')"
OWN = '{"PartitionKey":"p","RowKey":"r"}'
CAUSES = [
    Cause(
        "POST", "/Tables", {}, '{{"TableName":"{t}"}}', 409, "TableAlreadyExists", "The table specified already exists."
    ),
    Cause("GET", "/nosuchtable", {}, None, 404, "TableNotFound", "The table specified does not exist."),
    Cause("GET", NONE, {}, None, 404, "ResourceNotFound", "The specified resource does not exist."),
    Cause("POST", "/{t}", {}, OWN, 409, "EntityAlreadyExists", "The specified entity already exists."),
    Cause(
        "PUT",
        ROW,
        {"If-Match": STALE},
        "{}",
        412,
        "UpdateConditionNotSatisfied",
        "The update condition specified in the request was not satisfied.",
    ),
    Cause("PUT", ROW, {}, '{"a-b":1}', 400, "PropertyNameInvalid", "The property name is invalid."),
    Cause(
        "POST",
        "/{t}",
        {},
        "{}",
        400,
        "PropertiesNeedValue",
        "The values are not specified for all properties in the entity.",
    ),
    Cause(
        "PUT",
        ROW,
        {},
        '{"A":1,"A":2}',
        400,
        "DuplicatePropertiesSpecified",
        "A property is specified more than one time.",
    ),
    Cause("POST", "/{t}", {}, "{", 400, "InvalidInput"),
    Cause(
        "POST",
        "/{t}",
        {},
        '{"PartitionKey":"a#b","RowKey":"r"}',
        400,
        "OutOfRangeInput",
        "The 'PartitionKey' parameter of value 'a#b' is out of range.",
    ),
    Cause(
        "POST",
        "/Tables",
        {},
        '{"TableName":"a_b"}',
        400,
        "InvalidResourceName",
        "The specifed resource name contains invalid characters.",
    ),
    Cause(
        "GET",
        "/Tables",
        {"x-ms-version": "x"},
        None,
        400,
        "InvalidHeaderValue",
        "The value for one of the HTTP headers is not in the correct format.",
    ),
    Cause(
        "POST",
        "/{t}",
        {"Prefer": "return-something"},
        '{"PartitionKey":"p","RowKey":"new"}',
        400,
        "InvalidHeaderValue",
        "The value for one of the HTTP headers is not in the correct format.",
    ),
    Cause(
        "GET",
        "/Tables?timeout=x",
        {},
        None,
        400,
        "InvalidQueryParameterValue",
        "Value for one of the query parameters specified in the request URI is invalid.",
    ),
    Cause(
        "GET",
        "/?restype=service&comp=nonsense",
        {},
        None,
        400,
        "InvalidQueryParameterValue",
        "Value for one of the query parameters specified in the request URI is invalid.",
    ),
    Cause(
        "PUT",
        "/{t}?comp=acl",
        {},
        "<x",
        400,
        "InvalidXmlDocument",
        "XML specified is not syntactically valid.",
    ),
    Cause(
        "GET",
        ROW,
        {"X-HTTP-Method": "MERGE"},
        None,
        400,
        "XMethodNotUsingPost",
    ),
    Cause("POST", ROW, {"X-HTTP-Method": "JUMP"}, "{}", 400, "XMethodIncorrectValue"),
    Cause("POST", ROW, {"X-HTTP-Method": ("MERGE", "PUT")}, "{}", 400, "XMethodIncorrectCount"),
    Cause(
        "GET",
        ROW,
        {"Accept": "application/atom+xml"},
        None,
        415,
        "AtomFormatNotSupported",
        "Atom format is not supported.",
    ),
    Cause("GET", ROW, {"Accept": "application/json;odata=verbose"}, None, 415, "JsonVerboseFormatNotSupported"),
    Cause("PUT", ROW, {"Content-Type": "text/plain"}, "{}", 415, "MediaTypeNotSupported"),
    Cause(
        "PUT",
        "/Tables",
        {},
        "{}",
        405,
        "MethodNotAllowed",
        "The requested method is not allowed on the specified resource.",
    ),
    Cause(
        "POST",
        "/{t}",
        {"Content-Length": None, "Content-Type": "application/json"},
        None,
        411,
        "MissingContentLengthHeader",
        "The Content-Length header was not specified.",
    ),
]


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: f"{cause.code}-{cause.method}")
def test_error_code_of_each_cause(table: Table, cause: Cause) -> None:
    table.add(entity("p", "r", A=1))
    before = table.query().body
    path, _, query = cause.path.replace("{t}", table.name).partition("?")
    content = cause.body and cause.body.replace("{t}", table.name).replace("{{", "{").replace("}}", "}")
    answer = table.client.send(cause.method, path, query, headers=cause.headers, body=content)
    assert answer.code == (cause.status, cause.code)
    assert cause.message in {None, answer.rejection.message}
    assert answer.header("x-ms-error-code") in {None, cause.code}
    assert table.query().body == before


def test_analytics_code_of_the_documentation_is_not_used(table: Table) -> None:
    """Documented as EntityNotFound; recordings show ResourceNotFound."""
    assert table.get("p", "none").code == (404, "ResourceNotFound")
    missing = table.client.send("DELETE", "/Tables('nosuchtable')")
    assert missing.code == (404, "ResourceNotFound")


@pytest.mark.parametrize("host", [None, ""])
def test_request_without_host_is_rejected(client: Client, endpoint: Endpoint, host: str | None) -> None:
    """HTTP/1.1 asks for exactly one Host; 400 is also what RFC 9112 wants."""
    answer = Client(endpoint).send("GET", "/Tables", headers={"Host": host})
    assert answer.status == 400
    if answer.body:
        assert answer.rejection.code in {"HostInformationNotPresent", "InvalidInput", "InvalidHeaderValue"}
    client.send("GET", "/Tables", "$top=1").expect(200)


def test_a_very_long_address_is_rejected_and_the_service_lives(client: Client, endpoint: Endpoint) -> None:
    other = Client(endpoint)
    try:
        answer = other.send("GET", "/Tables", "$filter=" + "x" * 200_000)
        assert answer.status in {400, 414, 431}
    except (http.client.HTTPException, ConnectionError):
        pass  # closing the connection is clean enough
    finally:
        other.close()
    client.send("GET", "/Tables", "$top=1").expect(200)


def test_rejections_are_equal(table: Table) -> None:
    first, second = table.get("p", "none"), table.get("p", "none")
    assert (
        first.rejection
        == second.rejection
        == Rejection(404, "ResourceNotFound", "The specified resource does not exist.")
    )
    assert first.header("x-ms-request-id") != second.header("x-ms-request-id")


def test_an_xml_error_names_the_header(client: Client) -> None:
    headers = {"x-ms-version": "yesterday"}
    answer = client.send("GET", "/", "restype=service&comp=properties", headers=headers)
    assert answer.rejection.code == "InvalidHeaderValue"
    assert b"HeaderName>x-ms-version</" in answer.body
    assert b"HeaderValue>yesterday</" in answer.body
