"""`azure-storage-blob`: leases, conditions, snapshots, tiers, soft delete, versions and restored containers."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import (
    BlobLeaseClient,
    BlobServiceClient,
    ContainerClient,
    RehydratePriority,
    RetentionPolicy,
    StandardBlobTier,
)

import lazulite.testing

from .blob_clients import connect, new_name
from .failures import rejected

HIGH: Any = RehydratePriority.high


@pytest.fixture(scope="module")
def versioned() -> Iterator[BlobServiceClient]:
    """The client of an account that keeps versions and deleted containers."""
    with lazulite.testing.server() as storage:
        account = storage.account("versioned", versioning=True, container_retention_days=7)
        with connect(account) as service:
            yield service


@pytest.fixture
def forgiving() -> Iterator[BlobServiceClient]:
    """The client of an account that keeps deleted blobs."""
    with lazulite.testing.server() as storage, connect(storage.account("forgiving")) as service:
        service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=3))
        yield service


def test_a_lease_of_a_blob(container: ContainerClient) -> None:
    with container.upload_blob("a", b"1") as blob:
        lease = blob.acquire_lease(15)
        properties = blob.get_blob_properties().lease
        assert (properties.state, properties.status, properties.duration) == ("leased", "locked", "fixed")
        with rejected(ResourceExistsError):
            blob.acquire_lease(15)
        with rejected(HttpResponseError):
            blob.upload_blob(b"2", overwrite=True)
        blob.upload_blob(b"2", overwrite=True, lease=lease)
        lease.renew()
        old = lease.id
        lease.change("11111111-1111-4111-8111-111111111111")
        with rejected(HttpResponseError):
            blob.set_blob_metadata({"a": "1"}, lease=old)
        blob.set_blob_metadata({"a": "1"}, lease=lease)
        assert lease.break_lease(lease_break_period=0) == 0
        assert blob.get_blob_properties().lease.state == "broken"
        with rejected(ResourceExistsError):
            lease.renew()
        lease.release()
        own = BlobLeaseClient(blob, "22222222-2222-4222-8222-222222222222")
        own.acquire(-1)
        with rejected(HttpResponseError):
            blob.delete_blob()


def test_a_lease_of_a_container(blob_service: BlobServiceClient) -> None:
    with blob_service.create_container(new_name()) as container:
        lease = container.acquire_lease()
        with rejected(HttpResponseError):
            container.delete_container()
        container.upload_blob("a", b"")
        container.delete_container(lease=lease)


def test_conditions(container: ContainerClient) -> None:
    with container.upload_blob("a", b"1") as blob:
        first = blob.get_blob_properties()
        blob.upload_blob(b"2", overwrite=True, etag=first.etag, match_condition=MatchConditions.IfNotModified)
        with rejected(ResourceModifiedError):
            blob.upload_blob(b"3", overwrite=True, etag=first.etag, match_condition=MatchConditions.IfNotModified)
        now = blob.get_blob_properties()
        with rejected(ResourceModifiedError):
            blob.download_blob(etag=now.etag, match_condition=MatchConditions.IfModified)
        with rejected(ResourceModifiedError):
            blob.delete_blob(if_unmodified_since=now.last_modified - timedelta(hours=1))
        with rejected(ResourceModifiedError):  # The SDK's class for any condition that is not met.
            blob.get_blob_properties(if_modified_since=now.last_modified)
        with rejected(ResourceModifiedError):
            blob.set_blob_metadata({}, if_tags_match_condition="a='1'")
        blob.delete_blob(etag=now.etag, match_condition=MatchConditions.IfNotModified)


def test_a_download_of_a_blob_that_changes(container: ContainerClient) -> None:
    with container.upload_blob("a", bytes(300_000)) as blob:
        stream = blob.download_blob()
        blob.upload_blob(bytes(300_000), overwrite=True)
        with rejected(ResourceModifiedError):
            stream.readall()


def test_snapshots(container: ContainerClient) -> None:
    with container.upload_blob("a", b"1", metadata={"v": "1"}) as blob:
        time = str(blob.create_snapshot()["snapshot"])
        blob.upload_blob(b"2", overwrite=True)
        with container.get_blob_client("a", snapshot=time) as snapshot:
            assert (snapshot.download_blob().readall(), snapshot.get_blob_properties().metadata) == (b"1", {"v": "1"})
            listed = [(each.name, each.snapshot) for each in container.list_blobs(include="snapshots")]
            assert listed == [("a", time), ("a", None)]
            with rejected(ResourceExistsError):
                blob.delete_blob()
            snapshot.delete_blob()
            assert not snapshot.exists()
        blob.create_snapshot(metadata={"v": "2"})
        blob.delete_blob(delete_snapshots="only")
        blob.create_snapshot()
        blob.delete_blob(delete_snapshots="include")
        assert list(container.list_blobs(include="snapshots")) == []


def test_tiers(container: ContainerClient) -> None:
    with container.upload_blob("a", b"1", standard_blob_tier=StandardBlobTier.COOL) as blob:
        assert blob.get_blob_properties().blob_tier == "Cool"
        blob.set_standard_blob_tier(StandardBlobTier.ARCHIVE)
        with rejected(ResourceExistsError):
            blob.download_blob()
        blob.set_standard_blob_tier(StandardBlobTier.HOT, rehydrate_priority=HIGH)
        assert blob.download_blob().readall() == b"1"
        [found] = container.list_blobs()
        assert (found.blob_tier, found.blob_tier_inferred) == ("Hot", None)


def test_deleted_blobs(forgiving: BlobServiceClient) -> None:
    with forgiving.create_container(new_name()) as container, container.upload_blob("a", b"1") as blob:
        blob.create_snapshot()
        blob.delete_blob(delete_snapshots="include")
        with rejected(ResourceNotFoundError):
            blob.download_blob()
        assert list(container.list_blobs()) == []
        found = list(container.list_blobs(include=["deleted", "snapshots"]))
        assert [(each.name, each.deleted, each.remaining_retention_days) for each in found] == [("a", True, 2)] * 2
        blob.undelete_blob()
        assert blob.download_blob().readall() == b"1"
        assert len(list(container.list_blobs(include="snapshots"))) == 2


def test_versions(versioned: BlobServiceClient) -> None:
    with versioned.create_container(new_name()) as container, container.get_blob_client("a") as blob:
        ids = [str(blob.upload_blob(data, overwrite=True)["version_id"]) for data in (b"1", b"2", b"3")]
        listed = [(each.version_id, each.is_current_version) for each in container.list_blobs(include="versions")]
        assert listed == [(ids[0], None), (ids[1], None), (ids[2], True)]
        assert blob.download_blob(version_id=ids[0]).readall() == b"1"
        with container.get_blob_client("a", version_id=ids[1]) as past:
            assert past.download_blob().readall() == b"2"
            past.delete_blob()
            assert not past.exists()
        blob.delete_blob()
        assert not blob.exists()
        [found] = container.list_blobs(include="deletedwithversions")
        assert (found.name, found.has_versions_only) == ("a", True)
        blob.start_copy_from_url(f"{blob.url}?versionid={ids[0]}", requires_sync=False)
        assert blob.download_blob().readall() == b"1"


def test_the_current_version_by_its_id(versioned: BlobServiceClient) -> None:
    with versioned.create_container(new_name()) as container, container.get_blob_client("a") as blob:
        first, current = (str(blob.upload_blob(data, overwrite=True)["version_id"]) for data in (b"1", b"2"))
        with container.get_blob_client("a", version_id=current) as same:
            assert same.exists()
            found = same.get_blob_properties()
            assert (found.version_id, found.is_current_version) == (current, True)
            assert same.download_blob().readall() == b"2"
            same.set_standard_blob_tier(StandardBlobTier.COOL)
            same.set_blob_tags({"a": "b"})
            assert same.get_blob_tags() == blob.get_blob_tags() == {"a": "b"}
            with rejected(HttpResponseError):
                same.delete_blob()
        assert blob.get_blob_properties().blob_tier == "Cool"
        with container.get_blob_client("a", version_id=first) as past:
            found = past.get_blob_properties()
            assert (found.blob_tier, found.is_current_version) == ("Hot", None)


def test_deleted_containers(versioned: BlobServiceClient) -> None:
    name = new_name()
    with versioned.create_container(name) as container:
        container.upload_blob("a", b"1")
        container.delete_container()
        [found] = versioned.list_containers(name, include_deleted=True)
        assert (found.name, found.deleted) == (name, True)
        with versioned.undelete_container(name, str(found.version)) as restored:
            assert restored.download_blob("a").readall() == b"1"


def test_a_rehydration_that_takes_time() -> None:
    with lazulite.testing.server() as storage:
        account = storage.account("patient", rehydrate_after=3600)
        with connect(account) as service, service.create_container(new_name()) as container:
            with container.upload_blob("a", b"1", standard_blob_tier=StandardBlobTier.ARCHIVE) as blob:
                blob.set_standard_blob_tier(StandardBlobTier.COOL)
                blob.set_standard_blob_tier(StandardBlobTier.COOL, rehydrate_priority=HIGH)
                found = blob.get_blob_properties()
                assert (found.blob_tier, found.archive_status, found.rehydrate_priority) == (
                    "Archive",
                    "rehydrate-pending-to-cool",
                    "High",
                )
                with rejected(ResourceExistsError):
                    blob.set_standard_blob_tier(StandardBlobTier.HOT)
            (listed,) = container.list_blobs()
            assert listed.archive_status == "rehydrate-pending-to-cool"
