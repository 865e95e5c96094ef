"""Which request is which operation, and since which version."""

import pytest

from lazulite.protocol.message import Request, Response, response_of
from tests.table.batches import CONTENT_TYPE, Operation, change_set
from tests.table.client import ACCOUNT, Client

STATS = "restype=service&comp=stats"
BATCH = change_set(Operation("DELETE", "abc(PartitionKey='p',RowKey='r')", headers={"If-Match": "*"}))


@pytest.fixture(name="owner")
async def _owner(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client whose credentials are taken for an account key."""
    monkeypatch.setattr("lazulite.service.routing.authorize", lambda *_: None)
    await client("POST", "Tables", body={"TableName": "abc"})
    return client


async def at(client: Client, version: str, method: str, path: str, query: str = "", body: bytes = b"") -> Response:
    headers = {"x-ms-version": version, "accept": "", "content-type": CONTENT_TYPE["content-type"]}
    return await client(method, path, query, body, headers)


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "since", "before", "code"),
    [
        ("POST", "$batch", "", BATCH, "2009-04-14", "2008-10-27", "InvalidUri"),
        ("GET", "abc", "comp=acl", b"", "2012-02-12", "2011-08-18", "InvalidQueryParameterValue"),
        ("HEAD", "abc", "comp=acl", b"", "2012-02-12", "2011-08-18", "InvalidQueryParameterValue"),
        ("PUT", "abc", "comp=acl", b"", "2012-02-12", "2011-08-18", "InvalidQueryParameterValue"),
    ],
)
async def test_operations_have_a_first_version(
    owner: Client, method: str, path: str, query: str, body: bytes, since: str, before: str, code: str
) -> None:
    rejected = await at(owner, before, method, path, query, body)
    assert (rejected.status, rejected.error_code) == (400, code)
    assert (await at(owner, since, method, path, query, body)).status in (200, 202, 204)


async def test_stats_have_a_first_version(client: Client) -> None:
    async def stats(version: str) -> Response:
        headers = {"host": "h", "x-ms-version": version}
        return await response_of(
            client.service, Request("GET", f"/{ACCOUNT}-secondary/", f"{STATS}&{client.sas}", headers)
        )

    assert (await stats("2013-08-15")).status == 200
    assert (await stats("2012-02-12")).error_code == "InvalidQueryParameterValue"


@pytest.mark.parametrize(
    ("version", "odata", "status"),
    [("2012-02-12", "2.0", 204), ("2012-02-12", "3.0", 400), ("2013-08-15", "3.0", 204), ("2009-09-19", "2.0;", 400)],
)
async def test_an_odata_version_has_a_first_version(client: Client, version: str, odata: str, status: int) -> None:
    await client("POST", "Tables", body={"TableName": "abc"})
    headers = {"x-ms-version": version, "dataserviceversion": odata, "accept": "*/*", "content-type": ""}
    assert (await client("DELETE", "Tables('abc')", headers=headers)).status == status


async def test_operations_in_xml_have_no_odata_version(owner: Client) -> None:
    headers = {"x-ms-version": "2012-02-12", "dataserviceversion": "3.0"}
    assert (await owner("GET", "abc", "comp=acl", headers=headers)).status == 200
