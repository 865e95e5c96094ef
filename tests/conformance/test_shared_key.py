"""Reference §13, §15: Shared Key and Shared Key Lite."""

import base64
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from .answers import xml_text
from .batches import body, changeset, insert, submit
from .client import Client, HeaderChanges
from .signing import Endpoint, Signer, Unsigned, anonymous, shared_key, shared_key_lite
from .tables import Table, entity

FAILED = (
    403,
    "AuthenticationFailed",
    "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly "
    "including the signature.",
)
MALFORMED = (
    400,
    "InvalidAuthenticationInfo",
    "Authentication information is not given in the correct format. Check the value of Authorization header.",
)
SCHEMES = {"SharedKey": shared_key, "SharedKeyLite": shared_key_lite}


def date(minutes: float) -> str:
    """An RFC 1123 date so many minutes from now."""
    return format_datetime(datetime.now(UTC) + timedelta(minutes=minutes), usegmt=True)


@pytest.mark.parametrize("signer", SCHEMES.values(), ids=SCHEMES)
def test_every_kind_of_request(table: Table, signer: Signer) -> None:
    client, at = table.client, table.at("p'q", "r 1%")
    text = '{"PartitionKey":"p\'q","RowKey":"r 1%"}'
    client.send("POST", table.path, body=text, signer=signer).expect(201)
    client.send("PUT", at, body="{}", signer=signer, headers={"If-Match": "*"}).expect(204)
    client.send("MERGE", at, body="{}", signer=signer).expect(204)
    client.send("PATCH", at, body="{}", signer=signer).expect(204)
    client.send("POST", at, body="{}", signer=signer, headers={"X-HTTP-Method": "MERGE"}).expect(204)
    client.send("GET", at, "$select=A", signer=signer).expect(200)
    client.send("GET", table.path, "$filter=PartitionKey%20eq%20'p'&timeout=20", signer=signer).expect(200)
    client.send("GET", table.path, "comp=acl", signer=signer).expect(200)
    client.send("GET", table.path, "timeout=20&comp=acl", signer=signer).expect(200)
    client.send("GET", "/", "restype=service&comp=properties", signer=signer).expect(200)
    parts = changeset(submit(client, body([insert(table, entity("x", "y"))]), signer=signer).expect(202))
    assert parts[0].status == 204
    client.send("DELETE", at, signer=signer, headers={"If-Match": "*"}).expect(204)


PATHS = [
    "(PartitionKey='p''q',RowKey='r%201%25')",
    "(PartitionKey=%27p%27%27q%27,RowKey=%27r%201%25%27)",
    "(PartitionKey='p%27%27q',RowKey='r%201%25')",
    "%28PartitionKey%3D%27p%27%27q%27%2CRowKey%3D%27r%201%25%27%29",
]


@pytest.mark.parametrize("signer", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize("path", PATHS)
def test_the_path_is_signed_as_sent(table: Table, signer: Signer, path: str) -> None:
    table.add(entity("p'q", "r 1%"))
    table.client.send("GET", table.path + path, signer=signer).expect(200)


def signs(path: str) -> Signer:
    """A signer that signs another path than the one that is sent."""

    def signer(endpoint: Endpoint, request: Unsigned) -> str:
        return shared_key(endpoint, request._replace(path=path))

    return signer


def test_a_path_that_was_decoded_on_the_way(table: Table) -> None:
    """Some HTTP stacks decode `%27` after the signature was made."""
    table.add(entity("p'q", "r"))
    prefix = table.client.endpoint.prefix
    raw = f"{table.path}(PartitionKey='p''q',RowKey='r')"
    encoded = raw.replace("'", "%27")
    table.client.send("GET", raw, signer=signs(prefix + encoded)).expect(200)
    table.client.send("GET", encoded, signer=signs(prefix + raw)).expect(200)


def test_another_path_is_another_signature(table: Table) -> None:
    prefix = table.client.endpoint.prefix
    answer = table.client.send("GET", table.at("p", "r"), signer=signs(prefix + table.at("p", "s")))
    assert answer.rejection == FAILED


@pytest.mark.parametrize("signer", SCHEMES.values(), ids=SCHEMES)
def test_the_secondary_with_its_own_path(secondary: Client, signer: Signer) -> None:
    secondary.send("GET", "/Tables", "$top=1", signer=signer).expect(200)


def test_the_secondary_with_the_primary_path(secondary: Client, client: Client) -> None:
    secondary.send("GET", "/Tables", "$top=1", signer=signs(client.endpoint.prefix + "/Tables")).expect(200)


Dates = dict[str, float | str | None]
"""Minutes from the moment of the request, or the text of a header."""


def dated(dates: Dates) -> HeaderChanges:
    """The headers at this moment."""
    return {name: date(value) if isinstance(value, (int, float)) else value for name, value in dates.items()}


DATES: list[Dates] = [
    {"x-ms-date": None, "Date": 0},
    {"x-ms-date": 0, "Date": -600},
    {"x-ms-date": -14},
    {"x-ms-date": 14},
]


@pytest.mark.parametrize("signer", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize("dates", DATES)
def test_date_forms_are_accepted(client: Client, signer: Signer, dates: Dates) -> None:
    client.send("GET", "/Tables", "$top=1", headers=dated(dates), signer=signer).expect(200)


OLD: list[Dates] = [
    {"x-ms-date": -16},
    {"x-ms-date": -600},
    {"x-ms-date": 60},
    {"x-ms-date": None, "Date": -16},
    {"x-ms-date": -16, "Date": 0},
    {"x-ms-date": "yesterday"},
    {"x-ms-date": "2016-06-27T15:25:14Z"},
]


@pytest.mark.parametrize("signer", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize("dates", OLD)
def test_dates_outside_the_window(client: Client, signer: Signer, dates: Dates) -> None:
    assert client.send("GET", "/Tables", headers=dated(dates), signer=signer).rejection == FAILED


def test_missing_date_is_rejected(client: Client) -> None:
    answer = client.send("GET", "/Tables", headers={"x-ms-date": None})
    assert answer.status in {400, 403}


def with_header(name: str, value: str) -> Signer:
    """A signer that signs another value of a header than the one that is sent."""

    def signer(endpoint: Endpoint, request: Unsigned) -> str:
        return shared_key(endpoint, request._replace(headers={**request.headers, name: value}))

    return signer


OTHER_KEY = base64.b64encode(b"another key altogether").decode()
SPOILED: dict[str, Signer] = {
    "key": lambda endpoint, request: shared_key(endpoint._replace(key=OTHER_KEY), request),
    "verb": lambda endpoint, request: shared_key(endpoint, request._replace(method="PUT")),
    "comp": lambda endpoint, request: shared_key(endpoint, request._replace(query="comp=acl")),
    "date": with_header("x-ms-date", date(-1)),
    "type": with_header("content-type", "text/plain"),
    "md5": with_header("content-md5", "AAAA"),
    "lite": lambda endpoint, request: shared_key_lite(endpoint, request).replace("SharedKeyLite", "SharedKey"),
    "signature": lambda endpoint, request: shared_key(endpoint, request)[:-4] + "AAA=",
}


def spoiled(change: str) -> Signer:
    """A signer that is wrong in one respect."""
    return SPOILED[change]


@pytest.mark.parametrize("change", SPOILED)
def test_a_wrong_signature(client: Client, change: str) -> None:
    assert client.send("GET", "/Tables", signer=spoiled(change)).rejection == FAILED


def test_a_wrong_signature_changes_nothing(table: Table) -> None:
    text = '{"PartitionKey":"p","RowKey":"r"}'
    assert table.client.send("POST", table.path, body=text, signer=spoiled("key")).rejection == FAILED
    assert table.page().rows == []


def test_the_wrong_signature_is_not_repeated(client: Client) -> None:
    signature = spoiled("key")(client.endpoint, Unsigned("GET", client.endpoint.prefix + "/Tables", "", {}))
    assert signature is not None
    answer = client.send("GET", "/Tables", headers={"Authorization": signature}, signer=anonymous)
    assert signature.rpartition(":")[2].encode() not in answer.body


AUTHORIZATIONS = ["SharedKey", "SharedKey ", "SharedKey x", "Nonsense a:b", "SharedKey :", "x"]


@pytest.mark.parametrize("value", AUTHORIZATIONS)
def test_a_malformed_header(client: Client, value: str) -> None:
    answer = client.send("GET", "/Tables", headers={"Authorization": value}, signer=anonymous)
    assert answer.rejection == MALFORMED


def test_a_signature_that_is_not_base64(client: Client) -> None:
    value = f"SharedKey {client.endpoint.account}:***"
    answer = client.send("GET", "/Tables", headers={"Authorization": value}, signer=anonymous)
    assert answer.rejection in (FAILED, MALFORMED)


def test_another_account_is_rejected(client: Client) -> None:
    def signer(endpoint: Endpoint, request: Unsigned) -> str:
        return shared_key(endpoint, request).replace(endpoint.account, "someoneelse1", 1)

    answer = client.send("GET", "/Tables", signer=signer)
    assert answer.code == (403, "AuthenticationFailed")


REQUESTS = [
    ("GET", "/Tables"),
    ("GET", "/nosuchtable"),
    ("POST", "/Tables"),
    ("GET", "/?restype=service&comp=properties"),
]


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_missing_credentials_are_rejected(client: Client, method: str, path: str) -> None:
    path, _, query = path.partition("?")
    answer = client.send(method, path, query, body="{}" if method == "POST" else None, signer=anonymous)
    message = (
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    )
    assert answer.rejection == (401, "NoAuthenticationInformation", message)


def test_a_bearer_token_that_no_issuer_gave(client: Client) -> None:
    answer = client.send("GET", "/Tables", headers={"Authorization": "Bearer a.b.c"}, signer=anonymous)
    message = (
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    )
    assert answer.rejection == (401, "InvalidAuthenticationInfo", message)
    assert answer.required("WWW-Authenticate")


@pytest.mark.parametrize("path", ["/Tables", "/nosuchtable", "/nosuchtable(PartitionKey='p',RowKey='r')"])
def test_authentication_comes_before_existence(client: Client, path: str) -> None:
    assert client.send("GET", path, signer=spoiled("key")).rejection == FAILED


def test_the_error_code_stands_in_a_header_too(client: Client) -> None:
    answer = client.send("GET", "/Tables", signer=spoiled("key"))
    assert answer.header("x-ms-error-code") in {None, "AuthenticationFailed"}
    xml = client.send("GET", "/", "restype=service&comp=properties", signer=spoiled("key"))
    assert xml.header("x-ms-error-code") == "AuthenticationFailed"
    assert xml.required("Content-Type").startswith("application/xml")
    head = (
        '<?xml version="1.0" encoding="utf-8"?>'
        '<m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">'
        '<m:code>AuthenticationFailed</m:code><m:message xml:lang="en-US">'
    )
    assert xml_text(xml.body).startswith(head)


def test_content_type_and_md5_are_signed_as_sent(table: Table) -> None:
    for number, content_type in enumerate(
        ("application/json", "application/json; odata=nometadata", "APPLICATION/JSON")
    ):
        text = f'{{"PartitionKey":"p","RowKey":"{number}"}}'
        table.client.send("POST", table.path, body=text, headers={"Content-Type": content_type}).expect(201)
