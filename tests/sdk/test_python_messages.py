"""`azure-storage-queue`: messages: put, get, peek, update, delete, clear; text and base64; pages."""

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue import (
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    QueueClient,
    TextBase64DecodePolicy,
    TextBase64EncodePolicy,
)

from .failures import rejected
from .queue_clients import Account, later, new_name, queue_client

TEXTS = ["", " a\n b ", "hello <&> \u00fc", "\U0001f600", '{"a": ["]]>"]}', "a" * 65_536]


def test_a_message_from_put_to_delete(queue: QueueClient) -> None:
    sent = queue.send_message("hello", time_to_live=-1)
    assert sent.expires_on is not None
    assert sent.expires_on.year == 9999
    assert [peeked.content for peeked in queue.peek_messages(5)] == ["hello"]
    got = queue.receive_message(visibility_timeout=600)
    assert got is not None
    assert (got.id, got.content, got.dequeue_count) == (sent.id, "hello", 1)
    assert got.inserted_on == sent.inserted_on
    assert queue.receive_message() is None
    updated = queue.update_message(got, content="new", visibility_timeout=0)
    again = queue.receive_message()
    assert again is not None
    assert (again.content, again.dequeue_count) == ("new", 2)
    assert updated.pop_receipt != again.pop_receipt
    with rejected(ResourceNotFoundError):
        queue.delete_message(updated.id, updated.pop_receipt)
    assert queue.get_queue_properties().approximate_message_count == 1
    queue.delete_message(again)
    assert queue.get_queue_properties().approximate_message_count == 0
    with rejected(ResourceNotFoundError):
        queue.delete_message(again)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: str(len(text)))
def test_texts_come_back(queue: QueueClient, text: str) -> None:
    queue.send_message(text)
    [peeked] = queue.peek_messages()
    got = queue.receive_message()
    assert got is not None
    assert (peeked.content or "", got.content or "") == (text, text)


def test_a_message_that_was_just_put_can_be_deleted_and_updated(queue: QueueClient) -> None:
    first, second = queue.send_message("a"), queue.send_message("b")
    queue.delete_message(first)
    updated = queue.update_message(second.id, second.pop_receipt, "c", visibility_timeout=60)
    assert queue.peek_messages() == []
    queue.update_message(updated, visibility_timeout=0)
    assert [message.content for message in queue.peek_messages()] == ["c"]


def test_an_update_without_content_keeps_the_text(queue: QueueClient) -> None:
    queue.send_message("kept")
    got = queue.receive_message()
    assert got is not None
    queue.update_message(got.id, got.pop_receipt, visibility_timeout=0)
    assert [message.content for message in queue.peek_messages()] == ["kept"]


def test_a_delayed_message(queue: QueueClient) -> None:
    sent = queue.send_message("later", visibility_timeout=3600, time_to_live=7200)
    assert sent.next_visible_on is not None
    assert sent.next_visible_on > later(0.9)
    assert queue.receive_message() is None
    assert queue.get_queue_properties().approximate_message_count == 1
    queue.clear_messages()
    assert queue.get_queue_properties().approximate_message_count == 0


@pytest.mark.parametrize(
    "options",
    [
        {"visibility_timeout": 604_801},
        {"visibility_timeout": -1},
        {"time_to_live": 0},
        {"time_to_live": -2},
        {"visibility_timeout": 60, "time_to_live": 60},
    ],
)
def test_options_out_of_bounds(queue: QueueClient, options: dict[str, int]) -> None:
    with rejected(400):
        queue.send_message("a", **options)
    assert queue.get_queue_properties().approximate_message_count == 0


def test_numbers_of_messages_out_of_bounds(queue: QueueClient) -> None:
    with rejected(400):
        list(queue.receive_messages(messages_per_page=33))
    with pytest.raises(ValueError, match="between 1 and 32"):
        queue.peek_messages(33)


def test_pages_of_messages(queue: QueueClient) -> None:
    for number in range(70):
        queue.send_message(str(number))
    pages = [[message.content for message in page] for page in queue.receive_messages(messages_per_page=32).by_page()]
    assert [number for page in pages for number in page] == list(map(str, range(70)))
    assert [len(page) for page in pages][:3] == [32, 32, 6]
    assert list(queue.receive_messages()) == []


def test_no_more_messages_than_asked_for(queue: QueueClient) -> None:
    for number in range(5):
        queue.send_message(str(number))
    assert [message.content for message in queue.receive_messages(max_messages=3)] == ["0", "1", "2"]
    assert [message.content for message in queue.peek_messages(32)] == ["3", "4"]


def test_base64(queue_account: Account, queue: QueueClient) -> None:
    text = "\u00fc" * 20_000
    encoding = {"message_encode_policy": TextBase64EncodePolicy(), "message_decode_policy": TextBase64DecodePolicy()}
    with queue_client(queue_account, queue.queue_name, **encoding) as client:
        client.send_message(text)
        assert [message.content for message in client.peek_messages()] == [text]
        got = client.receive_message(visibility_timeout=60)
        assert got is not None
        client.update_message(got, content="new", visibility_timeout=0)
        assert [message.content for message in client.peek_messages()] == ["new"]
    assert [message.content for message in queue.peek_messages()] == ["bmV3"]


def test_bytes_as_base64(queue_account: Account, queue: QueueClient) -> None:
    content = bytes(range(256)) * 192  # 48 KiB are 64 KiB of Base64.
    policies = {
        "message_encode_policy": BinaryBase64EncodePolicy(),
        "message_decode_policy": BinaryBase64DecodePolicy(),
    }
    with queue_client(queue_account, queue.queue_name, **policies) as client:
        client.send_message(content)
        got = client.receive_message()
        assert got is not None
        assert got.content == content
        with rejected(413):
            client.send_message(content + b"a")


def test_large_messages(queue: QueueClient) -> None:
    with rejected(413):
        queue.send_message("a" * 65_537)
    queue.send_message("small")
    got = queue.receive_message()
    assert got is not None
    with rejected(413):
        queue.update_message(got, content="a" * 65_537, visibility_timeout=0)


def test_a_receipt_of_another_queue(queue_account: Account, queue: QueueClient) -> None:
    with queue_client(queue_account, new_name()) as other:
        other.create_queue()
        queue.send_message("a")
        got = queue.receive_message()
        assert got is not None
        with rejected(ResourceNotFoundError):
            other.delete_message(got)
        other.delete_queue()
    queue.delete_message(got)
