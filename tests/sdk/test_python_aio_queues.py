"""The asynchronous client of `azure-storage-queue`."""

import asyncio

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.queue import (
    AccessPolicy,
    CorsRule,
    QueueSasPermissions,
    TextBase64DecodePolicy,
    TextBase64EncodePolicy,
    generate_queue_sas,
)
from azure.storage.queue.aio import QueueClient, QueueServiceClient

from .failures import rejected
from .queue_clients import Account, later, new_name


async def test_queues(aqueue_service: QueueServiceClient) -> None:
    prefix = new_name()[:9]
    names = [f"{prefix}-{number}" for number in range(3)]
    for name in names:
        await aqueue_service.create_queue(name, metadata={"n": name})
    with rejected(ResourceExistsError):
        await aqueue_service.create_queue(names[0])
    pages = aqueue_service.list_queues(prefix, include_metadata=True, results_per_page=2).by_page()
    found = [[(each.name, each.metadata) async for each in page] async for page in pages]
    assert [name for page in found for name, _ in page] == names
    assert (len(found), found[0][0][1]) == (2, {"n": names[0]})
    for name in names:
        await aqueue_service.delete_queue(name)
    with rejected(ResourceNotFoundError):
        await aqueue_service.delete_queue(names[0])


async def test_messages(aqueue_service: QueueServiceClient) -> None:
    async with await aqueue_service.create_queue(new_name()) as queue:
        for number in range(5):
            await queue.send_message(str(number), time_to_live=-1)
        assert [message.content for message in await queue.peek_messages(2)] == ["0", "1"]
        got = [message async for message in queue.receive_messages(messages_per_page=2, max_messages=4)]
        assert [message.content for message in got] == ["0", "1", "2", "3"]
        updated = await queue.update_message(got[0], content="new", visibility_timeout=0)
        with rejected(ResourceNotFoundError):
            await queue.delete_message(got[0])
        await queue.delete_message(updated)
        await asyncio.gather(*(queue.delete_message(message) for message in got[1:]))
        assert (await queue.get_queue_properties()).approximate_message_count == 1
        last = await queue.receive_message()
        assert last is not None
        assert last.content == "4"
        assert await queue.receive_message() is None
        await queue.clear_messages()
        assert (await queue.get_queue_properties()).approximate_message_count == 0
        await queue.delete_queue()


async def test_no_message_goes_to_two_consumers(aqueue_service: QueueServiceClient) -> None:
    async with await aqueue_service.create_queue(new_name()) as queue:
        await asyncio.gather(*(queue.send_message(str(number)) for number in range(64)))

        async def consume() -> list[str]:
            return [message.content async for message in queue.receive_messages(messages_per_page=3)]

        found = await asyncio.gather(*(consume() for _ in range(8)))
        assert sorted(int(text) for texts in found for text in texts) == list(range(64))
        await queue.delete_queue()


async def test_base64_policies_and_service_sas(queue_account: Account, aqueue_service: QueueServiceClient) -> None:
    name = new_name()
    async with await aqueue_service.create_queue(name) as queue:
        await queue.set_queue_access_policy({"p": AccessPolicy(QueueSasPermissions(add=True, read=True), later())})
        assert (await queue.get_queue_access_policy())["p"].permission == "ra"
        token = generate_queue_sas(queue_account.name, name, queue_account.key, policy_id="p")
        async with QueueClient(
            queue_account.queue_endpoint,
            name,
            credential=token,
            message_encode_policy=TextBase64EncodePolicy(),
            message_decode_policy=TextBase64DecodePolicy(),
        ) as client:
            await client.send_message("\u00fc")
            assert [message.content for message in await client.peek_messages()] == ["\u00fc"]
        assert [message.content for message in await queue.peek_messages()] == ["w7w="]
        await queue.delete_queue()


async def test_service_properties(aqueue_service: QueueServiceClient) -> None:
    await aqueue_service.set_service_properties(cors=[CorsRule(["http://a.example"], ["GET"])])
    [rule] = (await aqueue_service.get_service_properties())["cors"]
    assert rule.allowed_origins == "http://a.example"
    await aqueue_service.set_service_properties(cors=[])
