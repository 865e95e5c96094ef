import pytest

from tests.table.client import Client, header

POLICY = "<SignedIdentifier><Id>a</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier>"


@pytest.fixture(name="owner")
async def _owner(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client whose credentials are taken for an account key, which alone may do this."""
    monkeypatch.setattr("lazulite.service.call.authorize", lambda *_: None)
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
