"""`azure-storage-queue`: queues, their metadata and lists, access policies, service properties, statistics."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.queue import (
    AccessPolicy,
    CorsRule,
    LocationMode,
    Metrics,
    QueueAnalyticsLogging,
    QueueClient,
    QueueSasPermissions,
    QueueServiceClient,
    RetentionPolicy,
)

from .failures import rejected
from .queue_clients import Account, later, new_name


def test_queues_are_created_listed_and_deleted(queue_service: QueueServiceClient) -> None:
    name = new_name()
    with queue_service.create_queue(name, metadata={"a": "1"}) as client:
        for metadata in ({"a": "1"}, {}):  # It takes the 204 of equal metadata for an error, too.
            with rejected(ResourceExistsError):
                queue_service.create_queue(name, metadata=metadata)
        [listed] = queue_service.list_queues(name_starts_with=name, include_metadata=True)
        assert (listed.name, listed.metadata) == (name, {"a": "1"})
        [listed] = queue_service.list_queues(name_starts_with=name)
        assert not listed.metadata
        queue_service.delete_queue(name)
        with rejected(ResourceNotFoundError):
            client.send_message("a")
        with rejected(ResourceNotFoundError):
            queue_service.delete_queue(name)


def test_a_queue_client_creates_and_deletes_its_own_queue(queue_account: Account) -> None:
    name = new_name()
    with QueueClient.from_connection_string(queue_account.connection_string, name, retry_total=0) as client:
        client.create_queue(metadata={"Key": "two words"})
        client.send_message("a")
        assert client.get_queue_properties().metadata == {"Key": "two words"}
        client.delete_queue()
        client.create_queue()
        assert client.peek_messages() == []
        client.delete_queue()


def test_metadata(queue: QueueClient) -> None:
    queue.set_queue_metadata({"b": "2", "c": "3"})
    properties = queue.get_queue_properties()
    assert (properties.metadata, properties.approximate_message_count) == ({"b": "2", "c": "3"}, 0)
    queue.set_queue_metadata()
    assert queue.get_queue_properties().metadata == {}
    with rejected(400):
        queue.set_queue_metadata({"1b": "2"})


def test_pages_of_queues(queue_service: QueueServiceClient) -> None:
    prefix = new_name()[:9]
    names = [f"{prefix}-{number}" for number in range(5)]
    for name in names:
        queue_service.create_queue(name)
    pages = queue_service.list_queues(name_starts_with=prefix, results_per_page=2).by_page()
    assert [[each.name for each in page] for page in pages] == [names[:2], names[2:4], names[4:]]
    first: Any = queue_service.list_queues(name_starts_with=prefix, results_per_page=2).by_page()
    next(first)
    rest = queue_service.list_queues(name_starts_with=prefix).by_page(first.continuation_token)
    assert [each.name for page in rest for each in page] == names[2:]
    for name in names:
        queue_service.delete_queue(name)


@pytest.mark.parametrize("name", ["Upper", "a_b", "-ab", "ab-", "a--b", "ab", "a" * 64])
def test_names_out_of_bounds(queue_service: QueueServiceClient, name: str) -> None:
    with rejected(HttpResponseError):
        queue_service.create_queue(name)


def test_access_policies(queue: QueueClient) -> None:
    assert queue.get_queue_access_policy() == {}
    start, end = later(-1), later()
    everything = QueueSasPermissions(read=True, add=True, update=True, process=True)
    policies: Any = {"all": AccessPolicy(everything, end, start), "add": AccessPolicy("a"), "none": None}
    queue.set_queue_access_policy(policies)
    found = queue.get_queue_access_policy()
    assert {name: policy and policy.permission for name, policy in found.items()} == {
        "all": "raup",
        "add": "a",
        "none": None,
    }
    assert [found["all"].start, found["all"].expiry] == [f"{each:%Y-%m-%dT%H:%M:%S}.0000000Z" for each in (start, end)]
    queue.set_queue_access_policy({})
    assert queue.get_queue_access_policy() == {}


def test_service_properties_round_trip(queue_service: QueueServiceClient) -> None:
    days = RetentionPolicy(enabled=True, days=5)
    queue_service.set_service_properties(
        analytics_logging=QueueAnalyticsLogging(delete=True, read=True, write=False, retention_policy=days),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=days),
        minute_metrics=Metrics(enabled=False),
        cors=[CorsRule(["http://a.example", "http://b.example"], ["GET", "PUT"], max_age_in_seconds=5)],
    )
    found = queue_service.get_service_properties()
    logging = found["analytics_logging"]
    assert (logging.delete, logging.read, logging.write) == (True, True, False)
    assert logging.retention_policy.days == 5
    assert (found["hour_metrics"].include_apis, found["minute_metrics"].enabled) == (True, False)
    [rule] = found["cors"]
    assert (rule.allowed_origins, rule.allowed_methods) == ("http://a.example,http://b.example", "GET,PUT")
    with rejected(400):
        queue_service.set_service_properties(cors=[CorsRule(["http://a.example"], ["GET"])] * 6)
    off = QueueAnalyticsLogging()
    queue_service.set_service_properties(off, hour_metrics=Metrics(), cors=[])
    assert queue_service.get_service_properties()["cors"] == []


def test_statistics_and_reads_of_the_secondary(queue_service: QueueServiceClient, queue: QueueClient) -> None:
    assert queue_service.get_service_stats()["geo_replication"]["status"] == "live"
    queue.send_message("a")
    with queue_service.get_queue_client(queue.queue_name) as client:
        client.location_mode = LocationMode.SECONDARY
        assert [message.content for message in client.peek_messages()] == ["a"]
        assert client.get_queue_properties().approximate_message_count == 1
        with rejected(HttpResponseError):
            client.send_message("b")
