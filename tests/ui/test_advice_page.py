"""Advice on keys in the explorer: a recording is started, ended sooner or stopped, and its page has the ranking."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from azure.data.tables import TableClient, TableServiceClient

from lazulite.testing import server
from tests.ui.explorer import SECONDS_MAX, Client, explorer

HOSTILE = "<script>alert(1)"
PATH = "/devstoreaccount1/heat/advice?name=Orders"


class Explored(NamedTuple):
    client: Client
    orders: TableClient


@pytest.fixture(scope="module")
def explored() -> Iterator[Explored]:
    with server(meter=True) as storage, explorer(storage) as link:
        service = TableServiceClient.from_connection_string(storage.connection_string)
        orders = service.create_table("Orders")
        for number in range(120):
            entity = {"PartitionKey": HOSTILE, "RowKey": f"{number:03}", "City": f"city{number % 10}"}
            orders.create_entity(entity)
        yield Explored(Client(link), orders)


def seen(client: Client, holds: Callable[[Any], bool]) -> Any:
    """Return the page's document, once something holds for it."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        found = client.json(PATH)
        if holds(found):
            return found
        time.sleep(0.05)
    raise AssertionError("it does not come to that")


def started(client: Client) -> Any:
    """Start a recording, and return its job once the first second of it is over."""
    found = client.post(f"{PATH}&do=record", {"seconds": "3600"})
    assert (found.status, found.location) == (303, PATH)
    return seen(client, lambda document: document["job"]["done"] >= 1)["job"]


def has_ended(document: Any) -> bool:
    return bool(document["has_ended"])


def test_requests_are_recorded_and_the_page_ranks_keys(explored: Explored) -> None:
    client, orders = explored
    assert "Record requests" in client.get(PATH).text
    started(client)
    assert "Stop, and show the advice" in client.get(PATH).text
    assert client.post(f"{PATH}&do=record", {"seconds": "60"}).status == 409
    list(orders.query_entities(f"PartitionKey eq '{HOSTILE}' and City eq 'city3'"))
    client.post(f"{PATH}&do=end")
    found = seen(client, has_ended)
    assert found["job"]["error"] == ""
    report = found["report"]
    assert report["candidates"][0]["place"] == 1
    assert {each["name"] for each in report["queries"]} == {"City eq and PartitionKey eq"}
    text = client.get(PATH).text
    assert "Choices, the best first" in text
    assert report["verdict"][0] in text
    whole = client.get("/devstoreaccount1/heat/advice/whole?name=orders")
    assert "The nine steps" in whole.text
    assert "sandbox" in whole.headers["content-security-policy"]
    for shown in (text, whole.text, json.dumps(found)):
        assert "alert(1)" not in shown
        assert "city3" not in shown


def test_a_recording_without_requests_or_stopped_has_no_advice(explored: Explored) -> None:
    client = explored.client
    started(client)
    client.post(f"{PATH}&do=end")
    assert seen(client, has_ended)["job"]["error"] == "there were no requests to table Orders in that time"
    job = started(client)
    client.post(f"/jobs/{job['id']}?do=stop")
    seen(client, lambda document: document["job"]["state"] == "stopped")
    assert "stopped without advice" in client.get(PATH).text
    assert client.get("/devstoreaccount1/heat/advice/whole?name=Orders").status == 404
    assert client.post(f"{PATH}&do=end").status == 409


def test_what_cannot_be_recorded_is_refused(explored: Explored) -> None:
    client = explored.client
    assert client.json("/devstoreaccount1/heat/advice")["names"] == ["Orders"]
    assert client.post(f"{PATH}&do=record", {"seconds": "7"}).status == 400
    assert client.post("/devstoreaccount1/heat/advice?do=record", {"seconds": "60"}).status == 404
    assert "Advice on the keys" in client.get("/devstoreaccount1/heat?name=Orders").text


def test_a_server_without_a_meter_says_how_to_have_one() -> None:
    with server() as storage, explorer(storage) as link:
        assert "lazulite serve --meter" in Client(link).get(PATH).text
