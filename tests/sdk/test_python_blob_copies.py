"""`azure-storage-blob`: copies, writes from URLs, batches and tags."""

from collections.abc import Iterator

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import (
    BlobBlock,
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    PartialBatchErrorException,
    generate_blob_sas,
)

from .blob_clients import PART, Account, content, later
from .failures import rejected


@pytest.fixture
def source(container: ContainerClient, blob_account: Account) -> Iterator[str]:
    """The URL of a blob of four parts, which may be read."""
    with container.upload_blob("source", content(4 * PART), metadata={"a": "1"}) as blob:
        token = generate_blob_sas(
            blob_account.name,
            container.container_name,
            "source",
            account_key=blob_account.key,
            permission="r",
            expiry=later(),
        )
        yield f"{blob.url}?{token}"


@pytest.mark.parametrize("sync", [False, True])
def test_a_copy(container: ContainerClient, source: str, sync: bool) -> None:
    with container.get_blob_client("copy") as blob:
        copied = blob.start_copy_from_url(source, requires_sync=sync)
        assert copied["copy_status"] == "success"
        assert blob.download_blob().readall() == content(4 * PART)
        properties = blob.get_blob_properties()
        assert properties.metadata == {"a": "1"}
        if not sync:
            assert (properties.copy.status, properties.copy.progress) == ("success", f"{4 * PART}/{4 * PART}")
            with rejected(ResourceExistsError):
                blob.abort_copy(str(copied["copy_id"]))


def test_a_copy_by_the_key_of_the_account(container: ContainerClient, source: str) -> None:
    with container.get_blob_client("copy") as blob:
        blob.start_copy_from_url(source.partition("?")[0], metadata={"b": "2"})
        assert blob.get_blob_properties().metadata == {"b": "2"}


def test_a_copy_of_what_is_missing(container: ContainerClient, source: str) -> None:
    with container.get_blob_client("copy") as blob, rejected(ResourceNotFoundError):
        blob.start_copy_from_url(source.replace("/source?", "/missing?"))


def test_writes_from_urls(container: ContainerClient, source: str) -> None:
    data = content(4 * PART)
    with container.get_blob_client("whole") as blob:
        blob.upload_blob_from_url(source)
        assert blob.download_blob().readall() == data
    with container.get_blob_client("blocks") as blob:
        blob.stage_block_from_url("aa", source, source_offset=10, source_length=PART)
        blob.stage_block_from_url("bb", source, source_offset=0, source_length=10)
        blob.commit_block_list([BlobBlock("bb"), BlobBlock("aa")])
        assert blob.download_blob().readall() == data[: PART + 10]
    with container.get_blob_client("log") as blob:
        blob.create_append_blob()
        blob.append_block_from_url(source, source_offset=5, source_length=7)
        assert blob.download_blob().readall() == data[5:12]
    with container.get_blob_client("disk") as blob:
        blob.create_page_blob(1024)
        blob.upload_pages_from_url(source, 512, 512, 1024)
        assert blob.download_blob().readall() == bytes(512) + data[1024:1536]


def test_a_batch_deletes(container: ContainerClient) -> None:
    names = [f"n {number}/ü" for number in range(100)]
    for name in names:
        container.upload_blob(name, b"")
    assert [each.status_code for each in container.delete_blobs(*names[:50])] == [202] * 50
    with pytest.raises(PartialBatchErrorException) as caught:
        container.delete_blobs(names[0], names[60])
    assert sorted(part.status_code for part in caught.value.parts) == [202, 404]
    container.delete_blobs(names[0], names[61], raise_on_any_failure=False)
    assert len(list(container.list_blobs())) == 48


def test_a_batch_sets_tiers(container: ContainerClient) -> None:
    for name in "abc":
        container.upload_blob(name, b"")
    container.set_standard_blob_tier_blobs("Cool", "a", "b")
    assert [each.blob_tier for each in container.list_blobs()] == ["Cool", "Cool", "Hot"]


def test_tags(container: ContainerClient, blob_service: BlobServiceClient) -> None:
    for number in range(3):
        container.upload_blob(str(number), b"", tags={"number": str(number), "of": container.container_name})
    with container.get_blob_client("1") as blob:
        assert blob.get_blob_tags() == {"number": "1", "of": container.container_name}
        assert blob.get_blob_properties().tag_count == 2
        blob.set_blob_tags({"number": "7", "a b": "c+d"})
        assert blob.get_blob_tags() == {"number": "7", "a b": "c+d"}
        with rejected(HttpResponseError):
            blob.set_blob_tags({str(number): "" for number in range(11)})
        blob.set_blob_metadata({"x": "1"}, if_tags_match_condition="number='7' OR number='8'")
    found = list(blob_service.find_blobs_by_tags(f"of='{container.container_name}' AND number>'0'"))
    assert [(each.name, each.container_name) for each in found] == [("2", container.container_name)]
    assert {each.name for each in container.find_blobs_by_tags("number>='0'")} == {"0", "1", "2"}
    tagged = container.list_blobs(include="tags")
    assert [each.tags for each in tagged][1] == {"number": "7", "a b": "c+d"}


def test_a_source_elsewhere(container: ContainerClient) -> None:
    with container.get_blob_client("copy") as blob, rejected(ResourceNotFoundError):
        blob.start_copy_from_url("http://169.254.169.254/latest/meta-data")
    assert not BlobClient.from_blob_url(blob.url, container.credential).exists()
