"""`azure-storage-blob`: content of block, append and page blobs, whole, in parts and in parallel."""

import io
import zlib
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import (
    BlobBlock,
    BlobClient,
    BlobType,
    ContainerClient,
    ContentSettings,
)

from .blob_clients import PART, Account, content
from .failures import rejected

NAMES = ["a b", "ü/ö?.txt", "a//b", "%2F", "a+b&c=d#e", "..x", "x" * 1024, "\u65e5\u672c", "q'\"<>"]
LENGTHS = (0, 1, PART, PART + 1, 20 * PART + 7)


@pytest.mark.parametrize("length", LENGTHS)
def test_blocks_go_up_and_down_in_parallel(container: ContainerClient, length: int) -> None:
    data = content(length)
    with container.upload_blob("large", data, max_concurrency=4, metadata={"Key": "v"}) as blob:
        properties = blob.get_blob_properties()
        assert (properties.size, properties.blob_type) == (length, BlobType.BLOCKBLOB)
        assert properties.metadata == {"Key": "v"}
        assert blob.download_blob(max_concurrency=4).readall() == data
        committed, uncommitted = blob.get_block_list("all")
        assert sum(block.size for block in committed) == (length if length > PART else 0)
        assert uncommitted == []


def test_a_stream_of_unknown_length(container: ContainerClient) -> None:
    data = content(5 * PART + 3)
    parts = (data[start : start + 1000] for start in range(0, len(data), 1000))
    with container.upload_blob("stream", parts, max_concurrency=3) as blob:
        target = io.BytesIO()
        assert blob.download_blob(max_concurrency=3).readinto(target) == len(data)
        assert target.getvalue() == data
        assert b"".join(blob.download_blob().chunks()) == data


def test_ranges(container: ContainerClient) -> None:
    data = content(3 * PART)
    with container.upload_blob("ranges", data) as blob:
        for offset, length in ((0, 1), (PART - 1, 2), (5, 2 * PART), (3 * PART - 1, None)):
            end = None if length is None else offset + length
            assert blob.download_blob(offset, length).readall() == data[offset:end]
        assert blob.download_blob(2 * PART, 4 * PART).readall() == data[2 * PART :]
        with rejected(HttpResponseError):
            blob.download_blob(3 * PART)
        stream = blob.download_blob()
        assert (stream.read(10), stream.read(PART)) == (data[:10], data[10 : PART + 10])


@pytest.mark.parametrize("validate", [True, "md5", "crc64", "crc64-sm"])
@pytest.mark.parametrize("kind", BlobType)
def test_validated_content(container: ContainerClient, kind: BlobType, validate: Any) -> None:
    data = content(3 * PART + 512)
    with container.upload_blob("valid", data, kind, validate_content=validate) as blob:
        assert blob.download_blob(validate_content=validate, max_concurrency=2).readall() == data


def test_the_md5_of_an_upload(container: ContainerClient) -> None:
    right, wrong = (bytearray(md5(data, usedforsecurity=False).digest()) for data in (b"data", b"other"))
    with container.get_blob_client("a") as blob:
        with rejected(HttpResponseError):
            blob.upload_blob(b"data", content_settings=ContentSettings(content_md5=wrong))
        assert not blob.exists()
        blob.upload_blob(b"data", content_settings=ContentSettings(content_md5=right))
        assert blob.get_blob_properties().content_settings.content_md5 == right
    with container.get_blob_client("log") as log:
        log.create_append_blob(ContentSettings(content_md5=wrong))
        log.append_block(b"data")
        assert log.get_blob_properties().content_settings.content_md5 == wrong


def test_a_text(container: ContainerClient) -> None:
    settings = ContentSettings("text/plain", "identity", "de", "inline", "no-store")
    with container.upload_blob("t.txt", "Grüße", content_settings=settings, encoding="utf-8") as blob:
        stream = blob.download_blob(encoding="utf-8")
        assert stream.readall() == "Grüße"
        found = stream.properties.content_settings
        assert (found.content_type, found.content_language, found.cache_control) == ("text/plain", "de", "no-store")
        blob.set_http_headers(ContentSettings("text/html"))
        found = blob.get_blob_properties().content_settings
        assert (found.content_type, found.content_language, found.content_md5) == ("text/html", None, None)


@pytest.mark.parametrize("name", NAMES)
def test_names(container: ContainerClient, name: str) -> None:
    with container.upload_blob(name, b"x") as blob:
        assert blob.download_blob().readall() == b"x"
        assert [each.name for each in container.list_blobs()] == [name]
        from_url = BlobClient.from_blob_url(blob.url, container.credential)
        assert from_url.blob_name == name


def test_blocks_by_hand(container: ContainerClient) -> None:
    with container.get_blob_client("blocks") as blob:
        for name in ("aa", "bb", "cc"):
            blob.stage_block(name, name.encode())
        with rejected(ResourceNotFoundError):
            blob.get_blob_properties()
        committed, uncommitted = blob.get_block_list("all")
        assert committed == []
        assert [each.id for each in uncommitted] == ["cc", "aa", "bb"]  # In the order of their base64.
        blob.commit_block_list([BlobBlock("cc"), BlobBlock("aa")], metadata={"a": "1"})
        assert blob.download_blob().readall() == b"ccaa"
        with rejected(HttpResponseError):
            blob.commit_block_list([BlobBlock("bb")])
        blob.stage_block("dd", b"dd")
        blob.commit_block_list([BlobBlock("aa"), BlobBlock("dd"), BlobBlock("aa")])
        assert blob.download_blob().readall() == b"aaddaa"


def test_an_append_blob(container: ContainerClient) -> None:
    with container.get_blob_client("log") as blob:
        blob.create_append_blob()
        offsets = [blob.append_block(f"{number}\n".encode())["blob_append_offset"] for number in range(3)]
        assert offsets == ["0", "2", "4"]
        blob.upload_blob(content(2 * PART + 1), BlobType.APPENDBLOB)
        assert blob.download_blob().readall() == b"0\n1\n2\n" + content(2 * PART + 1)
        assert blob.get_blob_properties().append_blob_committed_block_count == 6
        with rejected(HttpResponseError):
            blob.append_block(b"x", appendpos_condition=3)
        with rejected(HttpResponseError):
            blob.append_block(b"x", maxsize_condition=3)
        blob.seal_append_blob()
        with rejected(ResourceExistsError):
            blob.append_block(b"x")


def test_concurrent_appends(container: ContainerClient) -> None:
    with container.get_blob_client("log") as blob, ThreadPoolExecutor(4) as threads:
        blob.create_append_blob()
        lines = [f"{number:04}\n".encode() for number in range(40)]
        list(threads.map(blob.append_block, lines))
        assert sorted(blob.download_blob().readall().splitlines(keepends=True)) == lines


def test_a_page_blob(container: ContainerClient) -> None:
    with container.get_blob_client("disk") as blob:
        blob.create_page_blob(8 * 512)
        blob.upload_page(b"a" * 1024, 512, 1024)
        before = str(blob.create_snapshot()["snapshot"])
        blob.upload_page(b"b" * 512, 2048, 512)
        blob.clear_page(512, 512)
        assert blob.download_blob().readall() == bytes(1024) + b"a" * 512 + bytes(512) + b"b" * 512 + bytes(3 * 512)
        found = [(each.start, each.end, each.cleared) for each in blob.list_page_ranges()]
        assert found == [(1024, 1535, False), (2048, 2559, False)]
        changed = [(each.start, each.end, each.cleared) for each in blob.list_page_ranges(previous_snapshot=before)]
        assert changed == [(512, 1023, True), (2048, 2559, False)]
        blob.resize_blob(1024)
        assert blob.get_blob_properties().size == 1024
        blob.set_sequence_number("update", "7")
        with rejected(HttpResponseError):
            blob.upload_page(b"c" * 512, 0, 512, if_sequence_number_lt=7)
        blob.upload_page(b"c" * 512, 0, 512, if_sequence_number_lte=7)


def test_a_page_blob_in_parts(container: ContainerClient) -> None:
    data = bytes(2 * PART) + content(PART + 512) + bytes(PART)
    with container.upload_blob("disk", data, BlobType.PAGEBLOB, max_concurrency=3) as blob:
        assert blob.download_blob(max_concurrency=3).readall() == data
        assert [(each.start, each.end) for each in blob.list_page_ranges()] == [(2 * PART, 4 * PART - 1)]


def test_an_upload_that_must_not_overwrite(container: ContainerClient) -> None:
    for length in (1, 3 * PART):
        name = f"once-{length}"
        container.upload_blob(name, content(length))
        with rejected(ResourceExistsError):
            container.upload_blob(name, b"other")
        with rejected(ResourceExistsError):
            container.upload_blob(name, content(4 * PART))
        assert zlib.crc32(container.download_blob(name).readall()) == zlib.crc32(content(length))
        container.upload_blob(name, b"other", overwrite=True)
        assert container.download_blob(name).readall() == b"other"


def test_the_default_sizes(blob_account: Account, container: ContainerClient) -> None:
    data = content(1 << 20) * 70
    with BlobClient.from_connection_string(
        blob_account.connection_string, container.container_name, "large", retry_total=0
    ) as blob:
        blob.upload_blob(data, max_concurrency=4)
        assert blob.download_blob(max_concurrency=4).readall() == data
        committed, _ = blob.get_block_list()
        assert len(committed) > 1
