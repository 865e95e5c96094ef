import json

import pytest

from tests.table.client import BASE, Client, header, values


async def test_create_says_what_the_client_prefers(client: Client) -> None:
    echoed = await client("POST", "Tables", body={"TableName": "Abc"})
    assert (echoed.status, json.loads(echoed.body)) == (201, {"TableName": "Abc"})
    assert header(echoed, "Location") == f"{BASE}Tables('Abc')"
    assert header(echoed, "Preference-Applied") is None
    quiet = await client("POST", "Tables", body={"TableName": "Abd"}, headers={"prefer": "return-no-content"})
    assert (quiet.status, quiet.body) == (204, b"")
    assert header(quiet, "DataServiceId") == f"{BASE}Tables('Abd')"
    assert header(quiet, "Preference-Applied") == "return-no-content"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"TableName": "abc"}, 409, "TableAlreadyExists"),
        ({"TableName": "ABC"}, 409, "TableAlreadyExists"),
        ({"TableName": "a_b"}, 400, "InvalidResourceName"),
        ({"TableName": "ab"}, 400, "OutOfRangeInput"),
        ({"TableName": ""}, 400, "InvalidInput"),
        ({"TableName": 5}, 400, "InvalidInput"),
        ({"TableName": "other", "More": 1}, 400, "InvalidInput"),
        ({}, 400, "InvalidInput"),
        (b"{", 400, "InvalidInput"),
    ],
)
async def test_create_rejected(client: Client, body: object, status: int, code: str) -> None:
    await client("POST", "Tables", body={"TableName": "abc"})
    response = await client("POST", "Tables", body=body)
    assert (response.status, response.error_code) == (status, code)


async def test_a_condition_on_a_table_is_rejected(client: Client) -> None:
    response = await client("POST", "Tables", body={"TableName": "abc"}, headers={"if-match": "*"})
    assert response.error_code == "InvalidInput"


async def test_get_gives_the_creators_spelling(client: Client) -> None:
    await client("POST", "Tables", body={"TableName": "Abc"})
    assert json.loads((await client("GET", "Tables('aBC')")).body) == {"TableName": "Abc"}
    assert (await client("GET", "Tables('nobody')")).error_code == "ResourceNotFound"


async def test_delete(client: Client) -> None:
    await client("POST", "Tables", body={"TableName": "abc"})
    assert (await client("DELETE", "Tables('ABC')", headers={"if-match": "*"})).status == 204
    assert (await client("DELETE", "Tables('abc')")).error_code == "ResourceNotFound"


@pytest.fixture(name="names")
async def _names(client: Client) -> list[str]:
    names = ["alpha", "Beta", "beta2", "gamma"]
    for name in names:
        await client("POST", "Tables", body={"TableName": name})
    return names


async def test_pages_of_tables(client: Client, names: list[str]) -> None:
    found: list[str] = []
    continuation = ""
    while True:
        response = await client("GET", "Tables", f"$top=3{continuation}")
        found += [table["TableName"] for table in values(response)]
        token = header(response, "x-ms-continuation-NextTableName")
        if token is None:
            break
        continuation = f"&NextTableName={token}"
    assert found == names


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        ("", ["alpha", "Beta", "beta2", "gamma"]),
        ("TableName%20eq%20'alpha'", ["alpha"]),
        ("TableName%20ge%20'b'%20and%20TableName%20lt%20'c'", ["beta2"]),
        ("Other%20eq%20'x'", []),
        ("false", []),
    ],
)
async def test_filters(client: Client, names: list[str], filter_: str, expected: list[str]) -> None:
    assert names
    response = await client("GET", "Tables", f"$filter={filter_}")
    assert [table["TableName"] for table in values(response)] == expected


async def test_a_page_of_none(client: Client, names: list[str]) -> None:
    response = await client("GET", "Tables", "$top=0")
    assert names
    assert values(response) == []
    assert header(response, "x-ms-continuation-NextTableName") is None


POLICY = "<SignedIdentifier><Id>a</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier>"


@pytest.fixture(name="owner")
async def _owner(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client whose credentials are taken for an account key, which alone may do this."""
    monkeypatch.setattr("lazulite.service.routing.authorize", lambda *_: None)
    await client("POST", "Tables", body={"TableName": "abc"})
    return client


async def test_policies_are_replaced_as_a_whole(owner: Client) -> None:
    body = f"<SignedIdentifiers>{POLICY}</SignedIdentifiers>".encode()
    assert (await owner("PUT", "abc", "comp=acl", body)).status == 204
    response = await owner("GET", "abc", "comp=acl")
    assert response.body.startswith(b"\xef\xbb\xbf<?xml")
    assert POLICY.encode() in response.body
    assert header(response, "Content-Type") == "application/xml"
    assert (await owner("HEAD", "ABC", "comp=acl")).status == 200
    assert (await owner("PUT", "abc", "comp=acl")).status == 204
    assert b"<SignedIdentifiers />" in (await owner("GET", "abc", "comp=acl")).body


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "nobody", b"", 404, "ResourceNotFound"),
        ("PUT", "nobody", b"", 404, "ResourceNotFound"),
        ("PUT", "abc", b"<a/>", 400, "InvalidXmlDocument"),
        ("PUT", "abc", f"<SignedIdentifiers>{POLICY * 6}</SignedIdentifiers>".encode(), 400, "InvalidXmlDocument"),
        ("DELETE", "abc", b"", 405, "MethodNotAllowed"),
    ],
)
async def test_rejections(owner: Client, method: str, path: str, body: bytes, status: int, code: str) -> None:
    response = await owner(method, path, "comp=acl", body)
    assert (response.status, response.error_code) == (status, code)
    assert header(response, "Content-Type") == "application/xml"


async def test_no_sas_may(client: Client) -> None:
    await client("POST", "Tables", body={"TableName": "abc"})
    for method in ("GET", "PUT"):
        assert (await client(method, "abc", "comp=acl")).error_code == "AuthorizationFailure"
