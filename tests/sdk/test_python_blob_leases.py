"""`azure-storage-blob`: every write of its clients under a lease, with conditions, and by the id of a version."""

from collections.abc import Callable, Iterator
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
    BlobBlock,
    BlobClient,
    BlobLeaseClient,
    BlobServiceClient,
    BlobType,
    ContainerClient,
    ContentSettings,
    PremiumPageBlobTier,
    SequenceNumberAction,
    StandardBlobTier,
    generate_account_sas,
)
from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient

import lazulite.testing

from .blob_clients import PART, connect, content, later, new_name
from .failures import rejected

Block: Any = BlobType.BlockBlob
Page: Any = BlobType.PageBlob
Append: Any = BlobType.AppendBlob
INCREMENT: Any = SequenceNumberAction.Increment
COOL: Any = StandardBlobTier.COOL
P10: Any = PremiumPageBlobTier.P10
LARGE = 2 * PART + 512
"""Bytes that go in several requests."""


@pytest.fixture(scope="module")
def versioned() -> Iterator[BlobServiceClient]:
    """The client of an account that keeps versions."""
    with lazulite.testing.server() as storage, connect(storage.account("versioned", versioning=True)) as service:
        yield service


def source_url(container: ContainerClient) -> str:
    """Return the URL of a new blob, by which it can be read."""
    with container.upload_blob("source", content(512), overwrite=True, tags={"a": "1"}) as blob:
        sas = generate_account_sas(
            str(blob.account_name),
            blob.credential.account_key,
            resource_types="o",
            permission="rt",
            expiry=later(),
        )
        return f"{blob.url}?{sas}"


Write = Callable[[BlobClient, dict[str, Any]], Any]
"""Takes a blob and the arguments of its lease."""

BLOCKS: dict[str, Write] = {
    "upload": lambda blob, lease: blob.upload_blob(b"new", **lease),
    "upload of parts": lambda blob, lease: blob.upload_blob(content(LARGE), **lease),
    "overwrite": lambda blob, lease: blob.upload_blob(b"new", overwrite=True, **lease),
    "overwrite in parts": lambda blob, lease: blob.upload_blob(content(LARGE), overwrite=True, **lease),
    "overwrite by pages": lambda blob, lease: blob.upload_blob(content(LARGE), Page, overwrite=True, **lease),
    "block": lambda blob, lease: blob.stage_block("01", b"x", **lease),
    "block list": lambda blob, lease: blob.commit_block_list([], **lease),
    "properties": lambda blob, lease: blob.set_http_headers(ContentSettings(content_type="text/plain"), **lease),
    "metadata": lambda blob, lease: blob.set_blob_metadata({"a": "1"}, **lease),
    "tags": lambda blob, lease: blob.set_blob_tags({"a": "1"}, **lease),
    "tier": lambda blob, lease: blob.set_standard_blob_tier(COOL, **lease),
    "copy": lambda blob, lease: blob.start_copy_from_url(blob.url, **_destination(lease)),
    "delete": lambda blob, lease: blob.delete_blob(**lease),
}
PAGES: dict[str, Write] = {
    "create": lambda blob, lease: blob.create_page_blob(1024, **lease),
    "page": lambda blob, lease: blob.upload_page(bytes(512), 0, 512, **lease),
    "clear": lambda blob, lease: blob.clear_page(0, 512, **lease),
    "resize": lambda blob, lease: blob.resize_blob(512, **lease),
    "sequence number": lambda blob, lease: blob.set_sequence_number(INCREMENT, **lease),
    "premium tier": lambda blob, lease: blob.set_premium_page_blob_tier(P10, **lease),
    "overwrite": lambda blob, lease: blob.upload_blob(content(LARGE), Page, overwrite=True, **lease),
}
APPENDS: dict[str, Write] = {
    "create": lambda blob, lease: blob.create_append_blob(**lease),
    "append": lambda blob, lease: blob.append_block(b"x", **lease),
    "append by upload": lambda blob, lease: blob.upload_blob(content(LARGE), Append, **lease),
    "overwrite": lambda blob, lease: blob.upload_blob(content(LARGE), Append, overwrite=True, **lease),
    "seal": lambda blob, lease: blob.seal_append_blob(**lease),
}


def _destination(lease: dict[str, Any]) -> dict[str, Any]:
    return {f"destination_{name}": value for name, value in lease.items()} | {"requires_sync": False}


def new_blob(container: ContainerClient, kind: Any) -> BlobClient:
    """Return a new blob of a type."""
    blob = container.get_blob_client(new_name())
    if kind is Page:
        blob.create_page_blob(1024)
    elif kind is Append:
        blob.create_append_blob()
    else:
        blob.upload_blob(b"first")
    return blob


CASES = [(kind, name) for kind, writes in ((Block, BLOCKS), (Page, PAGES), (Append, APPENDS)) for name in writes]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_each_write_under_a_lease(container: ContainerClient, kind: Any, name: str) -> None:
    write = {Block: BLOCKS, Page: PAGES, Append: APPENDS}[kind][name]
    with new_blob(container, kind) as blob:
        lease = blob.acquire_lease(-1)
        before = blob.get_blob_properties()
        for wrong in ({}, {"lease": "11111111-1111-4111-8111-111111111111"}):
            with rejected(412):
                write(blob, wrong)
            after = blob.get_blob_properties()
            assert (after.etag, after.lease.state) == (before.etag, "leased")
        write(blob, {"lease": lease})
        if name == "delete":
            assert not blob.exists()
            return
        assert blob.get_blob_properties().lease.state == "leased"
        released = lease.id
        lease.release()
        with rejected(412):
            blob.set_blob_metadata({}, lease=released)


def test_reads_under_a_lease(container: ContainerClient) -> None:
    with new_blob(container, Block) as blob:
        lease = blob.acquire_lease(15)
        blob.stage_block("01", b"x", lease=lease)
        assert blob.download_blob(lease=lease).readall() == b"first"
        assert blob.get_blob_properties(lease=lease).lease.duration == "fixed"
        assert [each.id for each in blob.get_block_list("all", lease=lease)[1]] == ["01"]
        blob.set_blob_tags({"a": "1"}, lease=lease)
        assert blob.get_blob_tags(lease=lease) == blob.get_blob_tags() == {"a": "1"}
        assert blob.create_snapshot(lease=lease)
        with rejected(HttpResponseError):
            blob.get_blob_tags(lease="11111111-1111-4111-8111-111111111111")


async def test_an_upload_of_the_asynchronous_client(
    ablob_service: AsyncBlobServiceClient, container: ContainerClient
) -> None:
    async with ablob_service.get_blob_client(container.container_name, "a") as blob:
        await blob.upload_blob(b"first")
        lease = await blob.acquire_lease(15)
        for data in (b"second", content(LARGE)):
            await blob.upload_blob(data, lease=lease)
            assert await (await blob.download_blob()).readall() == data


def test_a_copy_under_a_lease(container: ContainerClient) -> None:
    url = source_url(container)
    with new_blob(container, Block) as blob:
        lease = blob.acquire_lease(-1)
        with rejected(HttpResponseError):
            blob.upload_blob_from_url(url, overwrite=True)
        blob.upload_blob_from_url(url, overwrite=True, destination_lease=lease)
        blob.upload_blob_from_url(url, destination_lease=lease)
        blob.stage_block_from_url("01", url, lease=lease)
        blob.commit_block_list([BlobBlock("01")], lease=lease)
        blob.start_copy_from_url(url, destination_lease=lease, requires_sync=True)
        assert blob.download_blob().readall() == content(512)
    with new_blob(container, Append) as log:
        lease = log.acquire_lease(15)
        log.append_block_from_url(url, lease=lease)
    with new_blob(container, Page) as pages:
        lease = pages.acquire_lease(15)
        pages.upload_pages_from_url(url, 512, 512, 0, lease=lease)


def test_an_upload_that_creates_only(container: ContainerClient) -> None:
    with container.get_blob_client("lock") as blob:
        assert not blob.exists()
        blob.upload_blob(b"")
        with rejected(ResourceExistsError):
            blob.upload_blob(b"")
        with rejected(ResourceExistsError):
            blob.upload_blob(content(LARGE))
        lease = BlobLeaseClient(blob)
        lease.acquire(15)
        with rejected(412):  # The lease is checked first.
            blob.upload_blob(b"")


def test_conditions_on_tags_tiers_and_block_lists(container: ContainerClient) -> None:
    with new_blob(container, Block) as blob:
        blob.set_blob_tags({"a": "1"})
        met, unmet = ({"if_tags_match_condition": f"\"a\"='{value}'"} for value in "12")
        calls: list[Callable[..., Any]] = [
            lambda **given: blob.get_block_list("all", **given),
            lambda **given: blob.set_standard_blob_tier(COOL, **given),
            blob.get_blob_tags,
            lambda **given: blob.set_blob_tags({"a": "1"}, **given),
            lambda **given: blob.upload_blob(b"x", overwrite=True, tags={"a": "1"}, **given),
            lambda **given: blob.acquire_lease(15, **given).release(),
            blob.create_snapshot,
            lambda **given: blob.delete_blob("include", **given),
        ]
        for call in calls:
            with rejected(ResourceModifiedError):
                call(**unmet)
            call(**met)


def test_a_deletion_with_conditions_on_the_tier(container: ContainerClient) -> None:
    with new_blob(container, Block) as blob:
        blob.set_standard_blob_tier(COOL)
        past, future = later(-1), later(1)
        with rejected(ResourceModifiedError):
            blob.delete_blob(access_tier_if_modified_since=future)
        with rejected(ResourceModifiedError):
            blob.delete_blob(access_tier_if_unmodified_since=past)
        blob.delete_blob(access_tier_if_modified_since=past, access_tier_if_unmodified_since=future)


def test_conditions_on_a_source(container: ContainerClient) -> None:
    url = source_url(container)
    with container.get_blob_client("source") as source, container.get_blob_client("copy") as copy:
        found = source.get_blob_properties()
        past = found.last_modified - timedelta(hours=1)
        unmet: list[dict[str, Any]] = [
            {"source_etag": '"0x1"', "source_match_condition": MatchConditions.IfNotModified},
            {"source_if_unmodified_since": past},
        ]
        with rejected(ResourceModifiedError):
            copy.start_copy_from_url(source.url, requires_sync=False, source_if_tags_match_condition="a='2'")
        for each in unmet:
            with rejected(412):
                copy.start_copy_from_url(source.url, requires_sync=False, **each)
            with rejected(ResourceNotFoundError):  # The SDK's class for a source that cannot be read.
                copy.upload_blob_from_url(url, **each)
            with new_blob(container, Append) as log, rejected(ResourceNotFoundError):
                log.append_block_from_url(url, **each)
        assert not copy.exists()
        copy.upload_blob_from_url(url, source_if_unmodified_since=found.last_modified)


def test_a_version_by_its_id(versioned: BlobServiceClient) -> None:
    with versioned.create_container(new_name()) as container, container.get_blob_client("a") as blob:
        first, second = (str(blob.upload_blob(data, overwrite=True)["version_id"]) for data in (b"1", b"22"))
        for id_, data, is_current in ((first, b"1", None), (second, b"22", True)):
            with container.get_blob_client("a", version_id=id_) as version:
                found = version.get_blob_properties()
                assert (found.size, found.version_id, found.is_current_version) == (len(data), id_, is_current)
                assert version.exists()
                assert version.download_blob().readall() == data
                version.set_blob_tags({"v": id_[-1]})
                assert version.get_blob_tags() == {"v": id_[-1]}
                version.set_standard_blob_tier(COOL)
                assert version.get_blob_properties().blob_tier == "Cool"
            assert blob.download_blob(version_id=id_).readall() == data
            assert blob.get_blob_properties(version_id=id_).etag == found.etag
            assert blob.get_blob_tags(version_id=id_) == {"v": id_[-1]}
        assert blob.get_blob_tags() == {"v": second[-1]}


def test_versions_under_a_lease(versioned: BlobServiceClient) -> None:
    with versioned.create_container(new_name()) as container, container.get_blob_client("a") as blob:
        first = str(blob.upload_blob(b"1")["version_id"])
        lease = blob.acquire_lease(15)
        second = str(blob.upload_blob(b"2", overwrite=True, lease=lease)["version_id"])
        third = str(blob.set_blob_metadata({"a": "1"}, lease=lease)["version_id"])
        blob.delete_blob(version_id=first)
        listed = [each.version_id for each in container.list_blobs(include="versions")]
        assert listed == [second, third]
        with rejected(ResourceNotFoundError):
            blob.download_blob(version_id=first)
        with rejected(HttpResponseError):
            blob.delete_blob()
        blob.delete_blob(lease=lease)
        assert [each.version_id for each in container.list_blobs(include="versions")] == [second, third]
        assert blob.download_blob(version_id=second).readall() == b"2"
