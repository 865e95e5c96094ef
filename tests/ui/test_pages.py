"""The pages of accounts, heat maps, partitions and faults: what they show, their twins, and what their forms do."""

import gzip
import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient

from lazulite.settings.config import account_file
from lazulite.testing import Storage, server
from lazulite.ui.pages.fault_page import toml_text
from lazulite.ui.rendering import as_json, plain, size
from lazulite.ui.routes import ROUTES
from lazulite.ui.routing import Routes
from lazulite.ui.site import STATIC
from tests.ui.explorer import Client, another_link, explorer

HOSTILE = "<script>alert(1)<b>\"'&\u202e"


class Explored(NamedTuple):
    storage: Storage
    client: Client
    location: Path


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explored]:
    location = tmp_path_factory.mktemp("location")
    with server(location, meter=True) as storage, explorer(storage) as link:
        yield Explored(storage, Client(link), location)


@pytest.fixture(scope="module")
def tables(explored: Explored) -> TableServiceClient:
    service = TableServiceClient.from_connection_string(explored.storage.connection_string, retry_total=0)
    table = service.create_table("Orders")
    for number in range(4):
        table.create_entity({"PartitionKey": HOSTILE, "RowKey": str(number)})
    return service


def followed(client: Client, path: str, fields: dict[str, str]) -> str:
    """Send a form, and return the text of the page that it leads to."""
    found = client.post(path, fields)
    assert found.status == 303, found.text
    return client.get(found.location).text


def test_the_first_page_counts_what_accounts_have(explored: Explored, tables: TableServiceClient) -> None:
    found = explored.client.json("/")
    assert found["services"] == ["table", "queue", "blob"]
    (summary,) = (each for each in found["summaries"] if each["name"] == "devstoreaccount1")
    assert (summary["tables"], summary["queues"]) == (1, 0)
    assert "Orders" not in explored.client.get("/").text


def test_the_page_of_an_account_says_where_this_server_listens(explored: Explored) -> None:
    found = explored.client.json("/devstoreaccount1/account")
    assert list(found["endpoints"]) == ["table", "queue", "blob"]
    for name, url in found["endpoints"].items():
        assert f"--{name}-port {urlsplit(url).port}" in found["connection_command"]
    assert f"--location {explored.location}" in found["connection_command"]


def test_an_account_is_added_and_its_keys_are_replaced_and_never_shown(explored: Explored) -> None:
    client, accounts = explored.client, account_file(explored.location)
    assert "lazulite connection-string --account orders" in followed(client, "/accounts?do=add", {"name": "orders"})
    before = accounts.load()["orders"].keys
    found = client.post("/accounts?do=add", {"name": "orders"})
    assert (found.status, "exists already" in found.text) == (409, True)
    path = "/orders/account?do=rotate"
    assert client.post(path, {"key": "1"}).status == 400
    assert client.post(path, {"key": "3", "confirm": "orders"}).status == 400
    followed(client, path, {"key": "1", "confirm": "orders"})
    after = accounts.load()["orders"].keys
    assert after[0] != before[0]
    assert after[1] == before[1]
    pages = [client.get(each).text + str(client.json(each)) for each in ("/accounts", "/orders/account", "/")]
    for key in (*before, *after):
        for written in (b64encode(key).decode(), key.hex()):
            assert not any(written in page for page in pages)


def test_switches_are_set(explored: Explored) -> None:
    client = explored.client
    client.post("/accounts?do=add", {"name": "photos"})
    fields = {"versioning": "on", "container_retention_days": "7", "rehydrate_after": "60"}
    assert "The switches are set." in followed(client, "/photos/account?do=switches", fields)
    row = client.json("/photos/account")["row"]
    expected = {"versioning": True, "public_access": False, "container_retention_days": 7, "rehydrate_after": 60}
    assert row["switches"] == expected
    wrong = {**fields, "container_retention_days": "366"}
    assert client.post("/photos/account?do=switches", wrong).status == 400
    assert "revoked" in followed(client, "/photos/account?do=revoke", {})


def test_a_deleted_container_is_restored_with_its_blobs(explored: Explored) -> None:
    client, path = explored.client, "/kept/blobs"
    client.post("/accounts?do=add", {"name": "kept"})
    assert "The account keeps none" in client.get(f"{path}?show=deleted").text
    followed(client, "/kept/account?do=switches", {"container_retention_days": "7", "rehydrate_after": "60"})
    for name in ("photos", "stays"):
        assert client.post(f"{path}?do=create", {"name": name, "access": ""}).status == 303
    fields = {"upload": "0" * 16, "name": "a.txt", "type": "text/plain", "count": "0", "replace": "true"}
    assert client.post(f"{path}/photos?do=commit", fields).status == 201
    assert client.post(f"{path}/photos/settings?do=delete", {"confirm": "photos"}).status == 303
    assert [each["name"] for each in client.json(path)["containers"]] == ["stays"]
    (row,) = client.json(f"{path}?show=deleted")["containers"]
    assert (row["name"], row["days_left"]) in (("photos", "7"), ("photos", "6"))
    assert "Restore" in client.get(f"{path}?show=deleted").text
    restore = {"deleted": "photos", "version": row["version"], "name": "stays"}
    assert client.post(f"{path}?do=restore", restore).status == 409
    assert "is restored, with its blobs" in followed(client, f"{path}?do=restore", {**restore, "name": "photos2"})
    assert [each["name"] for each in client.json(f"{path}/photos2")["rows"]] == ["a.txt"]
    assert client.json(f"{path}?show=deleted")["containers"] == []


def test_an_account_is_emptied_once_its_name_is_typed(explored: Explored) -> None:
    account = explored.storage.account("emptied")
    service = TableServiceClient.from_connection_string(account.connection_string)
    service.create_table("First")
    client = Client(another_link(explored.storage))
    assert client.post("/emptied/account?do=empty", {"confirm": "other"}).status == 400
    assert [each.name for each in service.list_tables()] == ["First"]
    assert "has no data now" in followed(client, "/emptied/account?do=empty", {"confirm": "emptied"})
    assert list(service.list_tables()) == []


def test_values_of_rules_are_shown_as_their_files_have_them() -> None:
    assert toml_text({"a": True, "b": ["x", 1, 0.5]}) == '{ "a" = true, "b" = ["x", 1, 0.5] }'


def test_a_crumb_of_an_account_leads_to_it() -> None:
    def crumbs(path: str) -> list[tuple[str, str]]:
        return [(each.text, each.href) for each in Routes(ROUTES).crumbs(path)]

    assert crumbs("/faults/tables/Orders") == [
        ("Lazulite", "/"),
        ("faults", "/faults/account"),
        ("tables", "/faults/tables"),
        ("Orders", "/faults/tables/Orders"),
    ], "an account may have the name of a page"
    assert crumbs("/orders/account")[1:] == [("orders", "/orders/account"), ("account", "/orders/account")]
    assert crumbs("/requests/1")[1:] == [("requests", "/requests"), ("1", "/requests/1")]
    assert crumbs("/no/such/page")[1:] == [("no", ""), ("such", ""), ("page", "")]


def test_an_account_that_does_not_exist_has_no_page(explored: Explored) -> None:
    found = explored.client.get("/nobody/account")
    assert found.status == 404
    assert "there is no account nobody" in found.text


def test_a_heat_map_has_its_numbers_in_its_twin(explored: Explored, tables: TableServiceClient) -> None:
    client = explored.client
    found = client.json("/devstoreaccount1/heat?name=Orders&last=600")
    assert found["view"]["columns"] == 10
    reads, writes = found["view"]["panels"]
    assert (reads["title"], writes["title"]) == ("Reads", "Writes")
    assert sum(map(sum, writes["rows"])) * found["view"]["seconds"] == pytest.approx(4)
    assert found["view"]["partitions"][0][0] == HOSTILE
    page = client.get("/devstoreaccount1/heat?name=Orders&last=600").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "data:image/png;base64," in page
    assert "has had no traffic" in client.get("/devstoreaccount1/heat?name=Nothing").text
    assert client.json("/devstoreaccount1/heat")["names"] == ["Orders"]
    assert client.get("/devstoreaccount1/heat?service=file").status == 400
    for service in ("queue", "blob"):
        assert client.json(f"/devstoreaccount1/heat?service={service}")["names"] == []


def test_targets_are_switched_on_and_off(explored: Explored, tables: TableServiceClient) -> None:
    client, path = explored.client, "/devstoreaccount1/partitions"
    assert client.json(f"{path}?name=Orders")["targets"]["name"] == "off"
    notice = followed(client, f"{path}?name=Orders&do=targets", {"targets": "current"})
    assert "must keep to the targets current" in notice
    found = client.json(f"{path}?name=Orders")
    assert found["head"]["targets"] == "current"
    assert [each["start"] for each in found["ranges"]] == [""]
    assert client.post(f"{path}?do=targets", {"targets": "nothing"}).status == 400
    assert "no targets now" in followed(client, f"{path}?do=targets", {"targets": "off"})
    missing = client.get(f"{path}?name=Missing")
    assert (missing.status, "has no table Missing" in missing.text) == (409, True)


def test_faults_are_switched_on_seen_and_off(explored: Explored, tables: TableServiceClient) -> None:
    client = explored.client
    rule = '[[rule]]\nname = "busy"\noperation = "DeleteTable"\nerror = "ServerBusy"\n'
    assert "1 rule is in force" in followed(client, "/faults?do=add", {"text": rule})
    with pytest.raises(HttpResponseError):
        tables.delete_table("Orders")
    (found,) = client.json("/faults")["rules"]
    assert (found["rule"]["name"], found["hits"]) == ("busy", 1)
    assert client.post("/faults?do=add", {"text": "nonsense"}).status == 409
    page = followed(client, "/faults?do=add", {"preset": "ambiguous-writes"})
    assert "changes = true, probability = 0.5, reset = &#34;answer&#34;" in page
    assert "Half of all writes are made, and their answers are lost." in page
    followed(client, "/faults?do=add", {"preset": "flaky-network"})
    followed(client, "/faults?do=remove", {"name": "busy"})
    followed(client, "/faults?do=clear", {})
    assert client.json("/faults")["rules"] == []
    assert client.post("/faults?do=add", {"preset": "../secret"}).status == 400


def test_a_rejection_of_a_service_is_shown_in_its_words_with_its_id(explored: Explored) -> None:
    client = explored.client
    rule = '[[rule]]\nname = "busy"\noperation = "QueryTables"\nerror = "ServerBusy"\n'
    followed(client, "/faults?do=add", {"text": rule})
    try:
        found = client.get("/devstoreaccount1/heat")
    finally:
        followed(client, "/faults?do=clear", {})
    assert found.status == 502
    assert "<code>ServerBusy</code>" in found.text
    found_id = r'<dt>Request of the service</dt><dd><a href="/requests/([0-9a-f-]{36})"><code>\1</code></a>'
    assert re.search(found_id, found.text)


@pytest.mark.parametrize("path", ["/", "/accounts", "/devstoreaccount1/account", "/faults", "/jobs", "/sessions"])
def test_a_first_page_has_at_most_60_kilobytes(explored: Explored, path: str) -> None:
    page = explored.client.get(path).text
    parts = [page.encode(), *(explored.client.get(each).text.encode() for each in linked(page))]
    assert sum(len(gzip.compress(part)) for part in parts) <= 60_000


def linked(page: str) -> list[str]:
    """Return the files that a page loads; each is of this origin."""
    found = re.findall(r'(?:src|<link[^>]* href)="(?!data:)([^"]*)"', page)
    assert all(each.startswith("/static/") for each in found)
    return found


def test_the_style_of_all_pages_is_small() -> None:
    assert (STATIC / "app.css").stat().st_size <= 10 * 1024
    assert len(gzip.compress((STATIC / "app.css").read_bytes())) <= 3 * 1024


def test_numbers_that_a_browser_cannot_hold_are_texts() -> None:
    found: Any = plain({"a": 2**53, "b": -(2**53), "c": 2**53 - 1, "d": True, "e": b"\1", "f": {1: (2, 3)}})
    assert found == {"a": str(2**53), "b": str(-(2**53)), "c": 2**53 - 1, "d": True, "e": "01", "f": {"1": [2, 3]}}
    assert as_json({"text": "\ud800"})


@pytest.mark.parametrize(
    ("given", "text"), [(0, "0 bytes"), (1023, "1,023 bytes"), (1536, "1.5 KiB"), (200 * 1024, "200 KiB"), (None, "–")]
)
def test_sizes_for_people(given: float | None, text: str) -> None:
    assert size(given) == text
