"""`azure-storage-blob`: containers, lists of blobs, access policies, service properties, statistics, account info."""

from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import (
    AccessPolicy,
    BlobAnalyticsLogging,
    BlobPrefix,
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    CorsRule,
    LocationMode,
    Metrics,
    PublicAccess,
    RetentionPolicy,
    StaticWebsite,
)

import lazulite.testing

from .blob_clients import connect, later, new_name
from .failures import rejected

NAMES = ["a", "b/1", "b/2", "b/c/3", "d", "e/ü"]


@pytest.fixture
def filled(container: ContainerClient) -> ContainerClient:
    """A container with the blobs `NAMES`."""
    for name in NAMES:
        container.upload_blob(name, name.encode(), metadata={"Name": "x"})
    return container


def test_containers_are_created_listed_and_deleted(blob_service: BlobServiceClient) -> None:
    name = new_name()
    with blob_service.create_container(name, metadata={"a": "1"}) as container:
        assert container.exists()
        with rejected(ResourceExistsError):
            blob_service.create_container(name)
        [listed] = blob_service.list_containers(name_starts_with=name, include_metadata=True)
        assert (listed.name, listed.metadata, listed.lease.state) == (name, {"a": "1"}, "available")
        container.set_container_metadata({"B": "2"})
        properties = container.get_container_properties()
        assert (properties.metadata, properties.has_legal_hold) == ({"B": "2"}, False)
        container.delete_container()
        assert not container.exists()
        with rejected(ResourceNotFoundError):
            container.upload_blob("a", b"")
        with rejected(ResourceNotFoundError):
            blob_service.delete_container(name)


def test_pages_of_containers(blob_service: BlobServiceClient) -> None:
    prefix = new_name()[:9]
    names = [f"{prefix}-{number}" for number in range(5)]
    for name in names:
        blob_service.create_container(name)
    pages: Any = blob_service.list_containers(prefix, results_per_page=2).by_page()
    assert [[each.name for each in page] for page in pages] == [names[:2], names[2:4], names[4:]]
    for name in names:
        blob_service.delete_container(name)


def test_lists(filled: ContainerClient) -> None:
    found = list(filled.list_blobs(include=["metadata", "tags", "versions", "copy", "snapshots", "deleted"]))
    assert [each.name for each in found] == NAMES
    assert (found[0].size, found[0].metadata, found[0].blob_type) == (1, {"Name": "x"}, "BlockBlob")
    assert [each.name for each in filled.list_blobs(name_starts_with="b/")] == NAMES[1:4]
    assert list(filled.list_blob_names()) == NAMES
    assert list(filled.list_blob_names(start_from="b/2")) == NAMES[2:]
    pages: Any = filled.list_blobs(results_per_page=4).by_page()
    assert [[each.name for each in page] for page in pages] == [NAMES[:4], NAMES[4:]]
    first: Any = filled.list_blobs(results_per_page=4).by_page()
    next(first)
    rest: Any = filled.list_blobs().by_page(first.continuation_token)
    assert [each.name for page in rest for each in page] == NAMES[4:]


def test_a_walk(filled: ContainerClient) -> None:
    def walk(prefix: str) -> Iterator[str]:
        for each in filled.walk_blobs(prefix, delimiter="/"):
            yield each.name
            if isinstance(each, BlobPrefix):
                yield from walk(each.name)

    assert sorted(walk("")) == sorted([*NAMES, "b/", "b/c/", "e/"])
    assert [each.name for each in filled.walk_blobs(results_per_page=1)] == ["a", "b/", "d", "e/"]


def test_uncommitted_blobs(container: ContainerClient) -> None:
    container.get_blob_client("staged").stage_block("aa", b"aa")
    assert list(container.list_blobs()) == []
    [found] = container.list_blobs(include="uncommittedblobs")
    assert (found.name, found.size) == ("staged", 0)


def test_access_policies(container: ContainerClient) -> None:
    assert container.get_container_access_policy() == {"public_access": None, "signed_identifiers": []}
    start, end = later(-1), later()
    everything = ContainerSasPermissions(read=True, write=True, delete=True, list=True)
    policies: Any = {"all": AccessPolicy(everything, end, start), "read": AccessPolicy("r"), "none": None}
    container.set_container_access_policy(policies)
    found: Any = container.get_container_access_policy()["signed_identifiers"]
    assert {each.id: each.access_policy and each.access_policy.permission for each in found} == {
        "all": "rwdl",
        "read": "r",
        "none": None,
    }
    container.set_container_access_policy({})
    assert container.get_container_access_policy()["signed_identifiers"] == []


def test_public_access() -> None:
    with (
        lazulite.testing.server() as storage,
        connect(storage.account("open", public_access=True)) as service,
        service.create_container("open", public_access=PublicAccess.BLOB) as container,
        ContainerClient.from_container_url(container.url) as anyone,
    ):
        container.upload_blob("a", b"x")
        assert anyone.download_blob("a").readall() == b"x"
        with rejected(ClientAuthenticationError):
            list(anyone.list_blobs())
        container.set_container_access_policy({}, public_access=PublicAccess.CONTAINER)
        assert container.get_container_properties().public_access == "container"
        assert [each.name for each in anyone.list_blobs()] == ["a"]


def test_service_properties_round_trip(blob_service: BlobServiceClient) -> None:
    days = RetentionPolicy(enabled=True, days=5)
    blob_service.set_service_properties(
        analytics_logging=BlobAnalyticsLogging(delete=True, read=True, retention_policy=days),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=days),
        minute_metrics=Metrics(enabled=False),
        cors=[CorsRule(["http://a.example", "http://b.example"], ["GET", "PUT"], max_age_in_seconds=5)],
        target_version="2019-02-02",
        delete_retention_policy=days,
        static_website=StaticWebsite(enabled=True, index_document="index.html", error_document404_path="404.html"),
    )
    found = blob_service.get_service_properties()
    assert (found["analytics_logging"].delete, found["analytics_logging"].write) == (True, False)
    assert (found["hour_metrics"].include_apis, found["minute_metrics"].enabled) == (True, False)
    assert [rule.allowed_methods for rule in found["cors"]] == ["GET,PUT"]
    assert (found["target_version"], found["delete_retention_policy"].days) == ("2019-02-02", 5)
    website = found["static_website"]
    assert (website.index_document, website.error_document404_path) == ("index.html", "404.html")
    assert "$web" in [each.name for each in blob_service.list_containers()]
    blob_service.set_service_properties(
        BlobAnalyticsLogging(),
        Metrics(),
        cors=[],
        delete_retention_policy=RetentionPolicy(),
        static_website=StaticWebsite(),
    )
    found = blob_service.get_service_properties()
    assert (found["cors"], found["static_website"].enabled) == ([], False)
    assert not found["delete_retention_policy"].enabled


def test_statistics_and_reads_of_the_secondary(blob_service: BlobServiceClient, container: ContainerClient) -> None:
    assert blob_service.get_service_stats()["geo_replication"]["status"] == "live"
    container.upload_blob("a", b"x")
    with blob_service.get_container_client(container.container_name) as client:
        client.location_mode = LocationMode.SECONDARY
        assert client.download_blob("a").readall() == b"x"
        assert [each.name for each in client.list_blobs()] == ["a"]


def test_account_information(blob_service: BlobServiceClient, container: ContainerClient) -> None:
    for client in (blob_service, container, container.get_blob_client("missing")):
        found: Any = client.get_account_information()
        assert (found["sku_name"], found["account_kind"]) == ("Standard_LRS", "StorageV2")
        assert not found["is_hns_enabled"]
