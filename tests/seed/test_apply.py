"""Seeds applied to a server: what is created, what is replaced, and that nothing else changes."""

from collections.abc import Iterator
from typing import Any

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

import lazulite.testing
from lazulite.cli.http_sender import HttpSender
from lazulite.resources.settings import service_parts
from lazulite.seed.apply import Application, Changes
from lazulite.seed.document import read_seed
from lazulite.seed.service_settings import settings_of
from lazulite.seed.value import SeedError

SEED: dict[str, Any] = {
    "tables": {
        "Orders": {
            "policies": {"reader": {"permission": "r", "expiry": "2030-01-01T00:00:00Z"}},
            "rows": [
                {"PartitionKey": "a", "RowKey": "1", "Total": 10.0, "Count": {"int64": 1}, "Data": b"\0"},
                {"PartitionKey": "a", "RowKey": "2'ü", "Text": "x"},
                {"PartitionKey": "b", "RowKey": "1"},
            ],
        }
    },
    "queues": {"jobs": {"metadata": {"team": "x"}, "messages": ["first", {"text": "<&>", "lives_seconds": -1}]}},
    "containers": {
        "files": {
            "public": "blob",
            "metadata": {"team": "x"},
            "policies": {"up": {"permission": "rw"}},
            "blobs": [
                {"name": "a/ü.txt", "text": "hello", "tags": {"k": "v w"}, "metadata": {"m": "1"}},
                {"name": "log", "type": "append", "text": "line"},
                {"name": "disk", "type": "page", "base64": "A" * 1366 + "==", "cache_control": "no-store"},
            ],
        }
    },
    "services": {
        "blob": {
            "cors": [{"methods": ["GET", "PUT"], "origins": ["*"], "max_age": 5}],
            "delete_retention_days": 3,
            "logging": {"read": True, "retention_days": 2},
        }
    },
}
"""Its page blob has two pages."""


@pytest.fixture(scope="module")
def storage() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server() as running:
        yield running


def apply(account: lazulite.testing.Account, seed: dict[str, Any]) -> Changes:
    changes = Changes()
    with HttpSender(account.connection_string) as sender:
        Application(sender, changes).run(read_seed(seed).own)
    return changes


def with_rows(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"tables": {"Orders": {"rows": list(rows)}}}


def test_all_is_created_once_and_a_second_application_changes_nothing(storage: lazulite.testing.Storage) -> None:
    account = storage.account(public_access=True)
    first, second = apply(account, SEED), apply(account, SEED)
    assert first.created == {"tables": 1, "rows": 3, "queues": 1, "messages": 2, "containers": 1, "blobs": 3}
    assert first.replaced == {"settings of services": 1}
    assert not second.any
    assert sum(second.unchanged.values()) == 12
    with TableServiceClient.from_connection_string(account.connection_string) as service:
        table = service.get_table_client("Orders")
        assert table.get_entity("a", "1")["Count"].value == 1
        assert table.get_entity("a", "2'ü")["Text"] == "x"
        policy = table.get_table_access_policy()["reader"]
        assert policy is not None
        assert policy.permission == "r"
    with QueueServiceClient.from_connection_string(account.connection_string) as queues:
        assert [each.content for each in queues.get_queue_client("jobs").peek_messages(5)] == ["first", "<&>"]
    with BlobServiceClient.from_connection_string(account.connection_string) as blobs:
        container = blobs.get_container_client("files")
        assert container.download_blob("a/ü.txt").readall() == b"hello"
        assert container.get_blob_client("a/ü.txt").get_blob_tags() == {"k": "v w"}
        assert container.get_blob_client("disk").get_blob_properties().blob_type == "PageBlob"
        assert container.download_blob("log").readall() == b"line"
    with HttpSender(account.connection_string) as sender:
        parts = settings_of(service_parts(sender, "blob"))
    assert parts == {
        "cors": [
            {"methods": ["GET", "PUT"], "origins": ["*"], "allowed_headers": [], "exposed_headers": [], "max_age": 5}
        ],
        "delete_retention_days": 3,
        "logging": {"read": True, "retention_days": 2},
    }


def test_what_differs_is_replaced_and_what_the_seed_does_not_have_stays(storage: lazulite.testing.Storage) -> None:
    account = storage.account(public_access=True)
    apply(account, SEED)
    changed = {
        **with_rows({"PartitionKey": "a", "RowKey": "1", "Total": 10, "Count": {"int64": 1}, "Data": b"\0"}),
        "queues": {"jobs": {"metadata": {"team": "y"}, "policies": {"get": {"permission": "p"}}}},
        "containers": {
            "files": {
                "policies": {"down": {"permission": "r"}},
                "blobs": [{"name": "log", "text": "line"}, {"name": "a/ü.txt", "text": "hello", "tags": {"k": "v w"}}],
            }
        },
    }
    changes = apply(account, changed)
    assert changes.replaced == {"rows": 1, "queues": 1, "containers": 1, "blobs": 2}  # One has other metadata.
    assert not apply(account, changed).any
    with BlobServiceClient.from_connection_string(account.connection_string) as blobs:
        container = blobs.get_container_client("files")
        assert [each.id for each in container.get_container_access_policy()["signed_identifiers"]] == ["up", "down"]
        assert sorted(container.list_blob_names()) == ["a/ü.txt", "disk", "log"]
        assert container.get_container_properties().metadata == {"team": "x"}
    with TableServiceClient.from_connection_string(account.connection_string) as service:
        assert len(list(service.get_table_client("Orders").list_entities())) == 3


def test_messages_that_a_queue_lacks_are_put_only_if_all_that_it_has_are_seen(
    storage: lazulite.testing.Storage,
) -> None:
    account = storage.account()
    seed = {"queues": {"jobs": {"messages": ["a", "a", "b"]}}}
    apply(account, seed)
    with QueueServiceClient.from_connection_string(account.connection_string) as service:
        queue = service.get_queue_client("jobs")
        queue.delete_message(queue.receive_message())  # type: ignore[arg-type]
        assert apply(account, seed).created == {"messages": 1}
        hidden = queue.receive_message()
        assert hidden is not None
        changes = apply(account, seed)
    assert not changes.any
    assert changes.notes == ["queue jobs: has 3 messages already, so none is put"]


def test_a_row_that_the_server_rejects_is_named_by_its_place(storage: lazulite.testing.Storage) -> None:
    rows = [{"PartitionKey": "a", "RowKey": str(number)} for number in range(3)]
    with pytest.raises(SeedError, match="PropertyNameInvalid") as caught:
        apply(storage.account(), with_rows(*rows, {"PartitionKey": "a", "RowKey": "9", "1x": 1}))
    assert caught.value.at == ("tables", "Orders", "rows", 3)
