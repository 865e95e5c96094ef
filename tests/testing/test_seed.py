"""`lazulite.testing.server(seed=…)`, and the return to the seed."""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

import lazulite.testing
from lazulite.settings.config import ConfigError

KEY = base64.b64encode(b"k" * 64).decode()
SEED = """
[tables.Orders]
rows = [{PartitionKey = "p", RowKey = "1", Total = 1}]
[queues.jobs]
messages = ["first", {text = "short", lives_seconds = 60}]
[services.table]
hour_metrics = {enabled = true, apis = false, retention_days = 3}
[[containers.files.blobs]]
name = "large"
file = "large"
[accounts.shop]
key = {variable = "SHOP_KEY"}
versioning = true
[accounts.shop.containers.own]
"""
LARGE = bytes(range(256)) * 4096


def test_a_server_begins_with_its_seed_and_returns_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", KEY)
    (tmp_path / "large").write_bytes(LARGE)
    (tmp_path / "state.toml").write_text(SEED)
    now = datetime.now(UTC)
    with (
        lazulite.testing.server(seed=tmp_path / "state.toml", clock=lambda: now) as storage,
        TableServiceClient.from_connection_string(storage.connection_string) as tables,
        QueueServiceClient.from_connection_string(storage.connection_string) as queues,
        BlobServiceClient.from_connection_string(storage.connection_string) as blobs,
    ):
        orders, jobs = tables.get_table_client("Orders"), queues.get_queue_client("jobs")
        before = orders.get_entity("p", "1").metadata
        etag = blobs.get_blob_client("files", "large").get_blob_properties().etag
        for _ in range(2):
            orders.upsert_entity({"PartitionKey": "p", "RowKey": "1", "Total": 2})
            orders.create_entity({"PartitionKey": "p", "RowKey": "2"})
            tables.create_table("Other")
            jobs.delete_message(jobs.receive_message())  # type: ignore[arg-type]
            queues.create_queue("more").send_message("x")
            blobs.get_blob_client("files", "large").delete_blob()
            blobs.delete_container("files")
            storage.reset()
            assert [each.name for each in tables.list_tables()] == ["Orders"]
            assert [entity.metadata for entity in orders.list_entities()] == [before]
            assert {each.content for each in jobs.peek_messages(5)} == {"first", "short"}
            assert [each.name for each in queues.list_queues()] == ["jobs"]
            assert blobs.get_blob_client("files", "large").download_blob().readall() == LARGE
            assert blobs.get_blob_client("files", "large").get_blob_properties().etag == etag
            assert vars(tables.get_service_properties()["hour_metrics"])["enabled"] is True
        assert storage.account("shop").key == KEY
        with BlobServiceClient.from_connection_string(storage.account("shop").connection_string) as shop:
            assert [each.name for each in shop.list_containers()] == ["own"]
        now += timedelta(seconds=61)
        assert [each.content for each in jobs.peek_messages(5)] == ["first"]


def test_a_server_without_a_seed_is_reset_to_nothing_and_its_accounts_stay() -> None:
    with lazulite.testing.server() as storage:
        account = storage.account()
        with TableServiceClient.from_connection_string(account.connection_string) as service:
            service.create_table("Orders")
            storage.reset()
            assert list(service.list_tables()) == []


def test_a_seed_that_cannot_be_applied_ends_the_start_with_its_place() -> None:
    with (
        pytest.raises(ConfigError, match=r"seed: tables\.T: .*OutOfRangeInput"),
        lazulite.testing.server(seed={"tables": {"T": {}}}),
    ):
        pass
