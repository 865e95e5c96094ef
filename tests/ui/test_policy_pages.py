"""The stored access policies of tables, queues and containers in the explorer, looked at with the official SDKs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest
from azure.data.tables import TableAccessPolicy, TableServiceClient
from azure.storage.blob import BlobServiceClient, PublicAccess
from azure.storage.queue import QueueServiceClient

import lazulite.testing
from tests.ui.explorer import Client, Seen, explorer

ROOT = "/devstoreaccount1"
EXACT = "2026-11-28T09:30:00.1234567Z"
EMPTY = ("", "", "", "")


@pytest.fixture(scope="module")
def storage() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server() as found:
        yield found


@pytest.fixture(scope="module")
def client(storage: lazulite.testing.Storage) -> Iterator[Client]:
    with explorer(storage) as link:
        yield Client(link)


def save(client: Client, path: str, rows: Sequence[tuple[str, str, str, str]], version: str = "") -> Seen:
    """Send the form, as it is now or as it was in an earlier version."""
    names = ("name", "permission", "start", "expiry")
    pairs = [("csrf", client.csrf), ("version", version or client.json(path)["version"])]
    pairs += [(name, text) for row in rows for name, text in zip(names, row, strict=True)]
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": client.origin}
    return client.send("POST", f"{path}?do=save", headers, urlencode(pairs).encode())


def stored(client: Client, path: str) -> list[Mapping[str, str]]:
    return [each for each in client.json(path)["rows"] if each["name"]]


def test_policies_of_a_table_are_set_changed_and_removed(storage: lazulite.testing.Storage, client: Client) -> None:
    with TableServiceClient.from_connection_string(storage.connection_string) as service:
        table = service.create_table("Orders")
        path = f"{ROOT}/tables/Orders/policies"
        rows = [("read", "r", EXACT, ""), EMPTY, ("<b>&\"'", "raud", "", "2027-01-01"), EMPTY, EMPTY]
        assert save(client, path, rows).status == 303
        policies = table.get_table_access_policy()
        assert list(policies) == ["read", "<b>&\"'"]
        assert [each and each.permission for each in policies.values()] == ["r", "raud"]
        assert [each["start"] for each in stored(client, path)] == [EXACT, ""]
        page = client.get(path).text
        assert "&lt;b&gt;&amp;" in page
        assert "<b>&" not in page
        assert save(client, path, [("read", "ra", EXACT, "")]).status == 303
        assert [(each["name"], each["permission"]) for each in stored(client, path)] == [("read", "ra")]
        assert save(client, path, [EMPTY]).status == 303
        assert table.get_table_access_policy() == {}


def test_policies_that_another_client_has_changed_are_shown_and_not_replaced(
    storage: lazulite.testing.Storage, client: Client
) -> None:
    with TableServiceClient.from_connection_string(storage.connection_string) as service:
        table = service.create_table("Shared")
        path = f"{ROOT}/tables/Shared/policies"
        begun = client.json(path)["version"]
        table.set_table_access_policy({"theirs": TableAccessPolicy(permission="r")})
        seen = save(client, path, [("mine", "a", "", "")], begun)
        assert (seen.status, "Another client has changed" in seen.text) == (412, True)
        assert all(text in seen.text for text in ("<td>theirs</td>", 'value="mine"'))
        assert list(table.get_table_access_policy()) == ["theirs"]
        (again,) = re.findall(r'name="version" value="(\w+)"', seen.text)
        assert save(client, path, [("mine", "a", "", "")], again).status == 303
        assert list(table.get_table_access_policy()) == ["mine"]


def test_of_two_forms_sent_at_once_one_is_saved(storage: lazulite.testing.Storage, client: Client) -> None:
    with QueueServiceClient.from_connection_string(storage.connection_string) as service:
        queue = service.create_queue("at-once")
        path = f"{ROOT}/queues/at-once/policies"
        begun = client.json(path)["version"]
        with ThreadPoolExecutor(4) as threads:
            seen = list(threads.map(lambda name: save(client, path, [(name, "r", "", "")], begun), "abcd"))
        assert sorted(each.status for each in seen) == [303, 412, 412, 412]
        assert len(queue.get_queue_access_policy()) == 1


def test_what_the_service_rejects_is_shown_again(storage: lazulite.testing.Storage, client: Client) -> None:
    with QueueServiceClient.from_connection_string(storage.connection_string) as service:
        queue = service.create_queue("jobs")
        path = f"{ROOT}/queues/jobs/policies"
        assert save(client, path, [("work", "raup", "", "")]).status == 303
        for rows, text in (
            ([("work", "r", "tomorrow", "")], "Write a time as 2026-"),
            ([("", "r", "", "")], "Each policy needs a name."),
            ([("same", "r", "", ""), ("same", "a", "", "")], 'value="same"'),
        ):
            seen = save(client, path, rows)
            assert (seen.status, text in seen.text) == (400, True), seen
        assert save(client, path, [EMPTY] * 6).status == 400
        assert list(queue.get_queue_access_policy()) == ["work"]
        assert client.get(f"{ROOT}/queues/missing/policies").status == 404


def test_a_container_keeps_its_public_access(storage: lazulite.testing.Storage, client: Client) -> None:
    with BlobServiceClient.from_connection_string(storage.connection_string) as service:
        container = service.create_container("photos", public_access=PublicAccess.BLOB)
        path = f"{ROOT}/blobs/photos/policies"
        assert save(client, path, [("look", "rl", "", "2027-01-01T00:00:00Z")]).status == 303
        found = container.get_container_access_policy()
        assert (found["public_access"], [each.id for each in found["signed_identifiers"]]) == ("blob", ["look"])
        assert "look" in client.get(f"{ROOT}/blobs/photos/settings").text
