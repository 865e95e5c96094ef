"""The pages of recorded requests: the list, its filter, one request in full, refusals, and hostile data."""

import gzip
from base64 import b64encode
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient

from lazulite.testing import Storage, server
from lazulite.ui.site import STATIC
from tests.ui.explorer import Client, explorer

HOSTILE = "<script>alert(1)</script>"
BYTES_MAX = 60_000


class Explored(NamedTuple):
    storage: Storage
    client: Client
    address: str
    """Of the Table service."""


@pytest.fixture(scope="module")
def explored() -> Iterator[Explored]:
    with server() as storage, explorer(storage) as link:
        client = Client(link)
        assert "No request has come since" in client.get("/requests").text
        with TableServiceClient.from_connection_string(storage.connection_string) as service:
            table = service.create_table("Orders")
            table.upsert_entity({"PartitionKey": "a", "RowKey": "1", "City": "BODY"})
            list(table.query_entities("City eq 'b'"))
            address = urlsplit(service.url).netloc
        wrong = b64encode(b"wrong").decode()
        text = storage.connection_string.replace("AccountKey=", f"AccountKey={wrong};Ignored=")
        with TableServiceClient.from_connection_string(text) as service, pytest.raises(HttpResponseError):
            list(service.list_tables())
        yield Explored(storage, client, address)


def send(explored: Explored, path: str, headers: dict[str, str]) -> str:
    """Send a request, and return its id."""
    connection = HTTPConnection(explored.address)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        response.read()
        return response.headers["x-ms-request-id"]
    finally:
        connection.close()


def test_the_list_shows_the_newest_first_with_their_costs(explored: Explored) -> None:
    found = explored.client.json("/requests?service=table")
    assert [each["operation"] for each in found["requests"]][-3:] == [
        "QueryEntities",
        "InsertOrMergeEntity",
        "CreateTable",
    ]
    text = explored.client.get("/requests").text
    assert "table scan · 1 row read · 0 returned" in text
    assert "BODY" not in text


@pytest.mark.parametrize(
    ("query", "operations"),
    [
        ("?status=201", ["CreateTable"]),
        ("?text=insertormerge", ["InsertOrMergeEntity"]),
        ("?service=queue", []),
        ("?of=none", []),
        ("?since=99999999999", []),
    ],
)
def test_the_filter(explored: Explored, query: str, operations: list[str]) -> None:
    found = explored.client.json(f"/requests{query}")
    assert [each["operation"] for each in found["requests"]] == operations
    page = explored.client.get(f"/requests{query}")
    assert page.status == 200
    if not operations and "since" not in query:
        assert "No recorded request fits" in page.text


def test_filters_that_there_are_not(explored: Explored) -> None:
    assert explored.client.get("/requests?status=many").status == 400
    assert explored.client.get("/requests?since=x").status == 400
    assert explored.client.get("/requests/none").status == 404


def test_requests_of_the_explorer_are_shown_on_demand(explored: Explored) -> None:
    before = {each["id"] for each in explored.client.json("/requests")["requests"]}
    explored.client.get("/devstoreaccount1/partitions")  # Lists tables.
    assert {each["id"] for each in explored.client.json("/requests")["requests"]} == before
    assert len(explored.client.json("/requests?own=1")["requests"]) > len(before)


def test_a_refused_request_is_explained(explored: Explored) -> None:
    (item,) = explored.client.json("/requests?status=refused&text=Tables")["requests"]
    path = f"/requests/{item['id']}"
    page = explored.client.get(path).text
    assert "Why it was refused" in page
    assert "<li>GET</li><li><span" in page
    twin = explored.client.json(path)
    assert twin["lines"][-1] == "/devstoreaccount1/devstoreaccount1/Tables"
    assert "SharedKey" not in page


def test_the_fields_of_a_sas_are_explained(explored: Explored) -> None:
    request_id = send(
        explored, "/devstoreaccount1/Orders()?sv=2019-02-02&ss=b&srt=o&sp=r&se=2020-01-01&sig=U0VDUkVU", {}
    )
    page = explored.client.get(f"/requests/{request_id}").text
    assert "permissions: read" in page
    assert "it has expired" in page
    assert "U0VDUkVU" not in page


def test_hostile_requests_are_text(explored: Explored) -> None:
    path = f"/devstoreaccount1/{HOSTILE}?$filter={HOSTILE}&sig={HOSTILE}"
    request_id = send(explored, path, {"User-Agent": HOSTILE, "x-ms-client-request-id": '"><img src=x onerror=y>'})
    for page in ("/requests", f"/requests?text={quote(HOSTILE)}", f"/requests/{request_id}"):
        text = explored.client.get(page).text
        assert HOSTILE not in text
        assert "<img" not in text
        assert "&lt;script&gt;" in text


def test_a_hundred_requests_are_within_the_budget(explored: Explored) -> None:
    for number in range(100):
        send(explored, f"/devstoreaccount1/{number}{'x' * 60}", {})
    page = explored.client.get("/requests")
    assert "These are the newest 100" in page.text
    files = [STATIC / "app.css", STATIC / "app.js", STATIC / "requests.js"]
    sizes = [len(gzip.compress(page.text.encode())), *(len(gzip.compress(file.read_bytes())) for file in files)]
    assert sum(sizes) <= BYTES_MAX
    assert "These are the newest" not in explored.client.get("/requests?limit=1000").text
