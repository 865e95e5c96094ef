"""An account copied from one server to another: all of it, again after an interruption, and compared."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

import lazulite.testing
from lazulite.account_copy.comparing import Comparison
from lazulite.account_copy.copying import AccountCopy, MessageSource
from lazulite.account_copy.journal import CopyError, Journal
from lazulite.account_copy.messages import KeptMessages, MessagesByGet
from lazulite.account_copy.sender_pairs import SenderPairs
from lazulite.app.commands import QUEUE_MESSAGES, QueueArguments
from lazulite.cli.http_sender import HttpSender
from lazulite.resources.queues import find_queue

ROWS = [
    {"PartitionKey": f"p{number % 3}", "RowKey": f"{number:04}", "Number": {"int64": number}, "Half": number / 2}
    for number in range(1100)
]
SEED: dict[str, Any] = {
    "tables": {"Orders": {"rows": ROWS, "policies": {"reader": {"permission": "r"}}}, "Empty": {}},
    "queues": {"jobs": {"metadata": {"team": "x"}, "messages": ["a", {"text": "b", "lives_seconds": -1}]}},
    "containers": {
        "files": {
            "public": "blob",
            "metadata": {"team": "x"},
            "policies": {"up": {"permission": "rw"}},
            "blobs": [
                {"name": "a/ü.txt", "text": "hello", "tags": {"k": "v w"}, "metadata": {"m": "1"}, "tier": "Cool"},
                {"name": "log", "type": "append", "text": "line\n"},
                {"name": "disk", "type": "page", "base64": "A" * 1366 + "==", "cache_control": "no-store"},
            ],
        }
    },
}
LARGE = bytes(range(256)) * (36 << 10)
"""9 MiB: more than one block."""


@pytest.fixture(scope="module")
def source() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server(seed=SEED) as running:
        with BlobServiceClient.from_connection_string(running.connection_string) as service:
            service.get_blob_client("files", "large").upload_blob(LARGE)
            service.get_blob_client("files", "log").create_snapshot()
        with QueueServiceClient.from_connection_string(running.connection_string) as queues:
            queues.get_queue_client("jobs").send_message("hidden", visibility_timeout=600)
        yield running


@pytest.fixture(scope="module")
def target() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server() as running:
        yield running


def sides(source: lazulite.testing.Storage, account: lazulite.testing.Account) -> SenderPairs:
    return SenderPairs(partial(HttpSender, source.connection_string), partial(HttpSender, account.connection_string), 3)


def kept(source: lazulite.testing.Storage) -> KeptMessages:
    def items(queue: str) -> Iterator[Any]:
        return source.control.stream(QUEUE_MESSAGES, QueueArguments(source.development.name, queue))

    return KeptMessages(items)


def differences(opened: SenderPairs) -> list[str]:
    return list(Comparison(opened, lambda _: None, counts_messages=True).differences())


def test_all_is_copied_and_compared_and_a_second_copy_reads_no_blob(
    source: lazulite.testing.Storage, target: lazulite.testing.Storage
) -> None:
    account = target.account(public_access=True)
    with sides(source, account) as opened:
        copied = AccountCopy(opened, Journal(None, ""), kept(source), lambda _: None).run()
        assert copied.counts == {"entities": 1100, "messages": 3, "blobs": 4, "bytes": len(LARGE) + 5 + 5 + 1024}
        assert copied.left_out == []
        assert differences(opened) == []
        again = AccountCopy(opened, Journal(None, ""), None, lambda _: None).run()
        assert again.bytes == 5 + 1024  # The service knows no MD5 of append blobs and page blobs.
    with QueueServiceClient.from_connection_string(account.connection_string) as queues:
        queue = queues.get_queue_client("jobs")
        assert sorted(each.content for each in queue.peek_messages(5)) == ["a", "b"]
        assert queue.get_queue_properties().approximate_message_count == 3
        assert queue.get_queue_properties().metadata == {"team": "x"}
    with BlobServiceClient.from_connection_string(account.connection_string) as blobs:
        container = blobs.get_container_client("files")
        assert container.download_blob("large").readall() == LARGE
        assert container.get_blob_client("a/ü.txt").get_blob_tags() == {"k": "v w"}
        assert container.get_blob_client("a/ü.txt").get_blob_properties().blob_tier == "Cool"
        kinds = {each.name: each.blob_type for each in container.list_blobs()}
        assert kinds == {"a/ü.txt": "BlockBlob", "disk": "PageBlob", "large": "BlockBlob", "log": "AppendBlob"}
        access = container.get_container_access_policy()
        assert (access["public_access"], [each.id for each in access["signed_identifiers"]]) == ("blob", ["up"])
    with TableServiceClient.from_connection_string(account.connection_string) as tables:
        assert tables.get_table_client("Orders").get_entity("p1", "0001")["Number"].value == 1
        assert list(tables.get_table_client("Orders").get_table_access_policy()) == ["reader"]


def test_each_kind_of_difference_is_found(source: lazulite.testing.Storage, target: lazulite.testing.Storage) -> None:
    account = target.account(public_access=True)
    with sides(source, account) as opened:
        AccountCopy(opened, Journal(None, ""), kept(source), lambda _: None).run()
        with (
            TableServiceClient.from_connection_string(account.connection_string) as tables,
            QueueServiceClient.from_connection_string(account.connection_string) as queues,
            BlobServiceClient.from_connection_string(account.connection_string) as blobs,
        ):
            tables.get_table_client("Orders").upsert_entity({"PartitionKey": "p1", "RowKey": "0001", "Number": 1})
            tables.get_table_client("Empty").create_entity({"PartitionKey": "p", "RowKey": "r"})
            queues.get_queue_client("jobs").clear_messages()
            tables.get_table_client("Orders").set_table_access_policy({})
            container = blobs.get_container_client("files")
            container.get_blob_client("a/ü.txt").set_blob_metadata({"m": "2"})
            container.delete_blob("log")
            container.set_container_access_policy({})
            container.get_blob_client("disk").upload_page(b"x" * 512, 0, 512)
        found = differences(opened)
    assert found == [
        "table Empty: 0 entities in the source, 1 in the target",
        "table Orders: other access policies",
        "table Orders: 1,100 entities on both sides, but not the same ones",
        "queue jobs: 3 messages in the source, 0 in the target",
        "container files: other access policies",
        "blob files/a/ü.txt: other properties or metadata",
        "blob files/disk: another content",
        "blob files/log: it is missing",
    ]


class Killed(BaseException):
    """Ends a copy as a signal does."""


@pytest.mark.parametrize("after", [2, 14, 18])
def test_a_copy_that_was_killed_goes_on_where_it_was(
    source: lazulite.testing.Storage, target: lazulite.testing.Storage, tmp_path: Path, after: int
) -> None:
    """It is killed among the rows, the messages, or the blobs."""
    account, path, calls = target.account(public_access=True), tmp_path / "journal.json", 0

    def show(_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == after:
            raise Killed

    with sides(source, account) as opened:
        with pytest.raises(Killed):
            AccountCopy(opened, Journal.open(path, "a to b"), kept(source), show).run()
        resumed = Journal.open(path, "a to b")
        assert resumed.resumed
        AccountCopy(opened, resumed, kept(source), lambda _: None).run()
        assert differences(opened) == []
        with HttpSender(account.connection_string) as sender:
            state = find_queue(sender, "jobs")
        assert state is not None
        assert state.messages == 3


def test_messages_got_from_the_source_are_the_visible_ones(target: lazulite.testing.Storage) -> None:
    first, second = target.account(), target.account()
    with QueueServiceClient.from_connection_string(first.connection_string) as service:
        queue = service.create_queue("jobs")
        for number in range(40):
            queue.send_message(str(number))
        queue.send_message("hidden", visibility_timeout=600)
    with SenderPairs(
        partial(HttpSender, first.connection_string), partial(HttpSender, second.connection_string), 1
    ) as opened:
        source: MessageSource = MessagesByGet(opened.pair().source)
        assert AccountCopy(opened, Journal(None, ""), source, lambda _: None).run().messages == 40
        again = AccountCopy(opened, Journal(None, ""), source, lambda _: None).run()
    assert again.left_out == ["messages of queue jobs: the target has 40 already"]


def test_public_access_that_the_target_does_not_permit_is_left_out(
    source: lazulite.testing.Storage, target: lazulite.testing.Storage
) -> None:
    with sides(source, target.account()) as opened:
        copied = AccountCopy(opened, Journal(None, ""), None, lambda _: None).run()
    assert copied.left_out == ["public access of container files: the target's account does not permit it"]


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2}'])
def test_a_file_that_is_no_journal_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "journal.json"
    path.write_text(text)
    with pytest.raises(CopyError, match="no journal"):
        Journal.open(path, "a to b")


def test_the_journal_of_another_copy_is_refused_and_none_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    journal = Journal.open(path, "a to b")
    journal.begin("table/Orders")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CopyError, match="of the copy a to b"):
        Journal.open(path, "a to c")
    journal.remove()
    assert not any(tmp_path.iterdir())
