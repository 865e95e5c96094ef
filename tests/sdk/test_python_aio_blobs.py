"""The asynchronous client of `azure-storage-blob`."""

import asyncio
import io
from collections.abc import AsyncIterator

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, BlobType, generate_container_sas
from azure.storage.blob.aio import BlobPrefix, BlobServiceClient, ContainerClient

from .blob_clients import PART, PARTS, Account, content, later, new_name
from .failures import rejected


@pytest.fixture
async def acontainer(ablob_service: BlobServiceClient) -> AsyncIterator[ContainerClient]:
    """An asynchronous client of a container of its own."""
    async with await ablob_service.create_container(new_name()) as client:
        yield client
        await client.delete_container()


@pytest.mark.parametrize("kind", BlobType)
async def test_content_goes_up_and_down_in_parallel(acontainer: ContainerClient, kind: BlobType) -> None:
    data = content(20 * PART + 512)
    many = 1 if kind is BlobType.APPENDBLOB else 4  # The SDK appends in any order otherwise.
    async with await acontainer.upload_blob("large", data, kind, max_concurrency=many) as blob:
        stream = await blob.download_blob(max_concurrency=4)
        assert await stream.readall() == data
        part = await blob.download_blob(5, PART)
        assert await part.readall() == data[5 : PART + 5]
        target = io.BytesIO()
        assert await (await blob.download_blob()).readinto(target) == len(data)
        assert target.getvalue() == data


async def test_a_stream(acontainer: ContainerClient) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for number in range(300):
            yield content(1000, number)

    async with await acontainer.upload_blob("stream", parts(), max_concurrency=3) as blob:
        stream = await blob.download_blob()
        assert b"".join([chunk async for chunk in stream.chunks()]) == b"".join([part async for part in parts()])


async def test_many_blobs_at_once(acontainer: ContainerClient) -> None:
    names = [f"{number % 7}/{number:03}" for number in range(100)]
    await asyncio.gather(*(acontainer.upload_blob(name, name.encode()) for name in names))
    assert [each.name async for each in acontainer.list_blobs(results_per_page=7)] == sorted(names)
    walked = [each async for each in acontainer.walk_blobs(delimiter="/")]
    assert [each.name for each in walked] == [f"{number}/" for number in range(7)]
    assert all(isinstance(each, BlobPrefix) for each in walked)
    responses = [each.status_code async for each in await acontainer.delete_blobs(*names[:60])]
    assert responses == [202] * 60
    assert len([each async for each in acontainer.list_blobs()]) == 40


async def test_writers_of_one_blob(acontainer: ContainerClient) -> None:
    async def upload(number: int) -> bool:
        try:
            await acontainer.upload_blob("one", bytes([number]) * (3 * PART))
        except ResourceExistsError:
            return False
        return True

    assert sum(await asyncio.gather(*map(upload, range(8)))) == 1
    stream = await acontainer.download_blob("one")
    assert len(set(await stream.readall())) == 1


async def test_blocks_leases_and_snapshots(acontainer: ContainerClient) -> None:
    async with acontainer.get_blob_client("a") as blob:
        await asyncio.gather(*(blob.stage_block(f"{number:02}", bytes([number])) for number in range(20)))
        await blob.commit_block_list([BlobBlock(f"{number:02}") for number in range(20)], tags={"a": "1"})
        assert await (await blob.download_blob()).readall() == bytes(range(20))
        lease = await blob.acquire_lease(60)
        with rejected(HttpResponseError):
            await blob.set_blob_metadata({"a": "1"})
        await blob.set_blob_metadata({"a": "1"}, lease=lease)
        await lease.release()
        snapshot = await blob.create_snapshot()
        assert await blob.get_blob_tags() == {"a": "1"}
        with rejected(ResourceModifiedError):
            await blob.delete_blob(delete_snapshots="include", if_tags_match_condition="a='2'")
        await blob.delete_blob(delete_snapshots="include", if_tags_match_condition="a='1'")
    async with acontainer.get_blob_client("a", snapshot=str(snapshot["snapshot"])) as gone:
        with rejected(ResourceNotFoundError):
            await gone.get_blob_properties()


async def test_a_copy(acontainer: ContainerClient) -> None:
    async with await acontainer.upload_blob("a", b"x") as source, acontainer.get_blob_client("b") as blob:
        assert (await blob.start_copy_from_url(source.url))["copy_status"] == "success"
        assert await (await blob.download_blob()).readall() == b"x"


async def test_a_signature(acontainer: ContainerClient, blob_account: Account) -> None:
    await acontainer.upload_blob("a", b"x")
    token = generate_container_sas(
        blob_account.name,
        acontainer.container_name,
        account_key=blob_account.key,
        permission="rl",
        expiry=later(),
    )
    url = f"{acontainer.url}?{token}"
    async with ContainerClient.from_container_url(url, retry_total=0, **PARTS) as reader:
        assert [each.name async for each in reader.list_blobs()] == ["a"]
        with rejected(HttpResponseError):
            await reader.upload_blob("b", b"y")
