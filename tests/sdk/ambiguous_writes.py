"""Each call of the SDKs for Python that changes something: what it does when the write is made and its answer is lost.

    python -m tests.sdk.ambiguous_writes        write the table of docs/ambiguous-writes.md again

A case prepares what its call needs, makes the call, and counts the changes where there could be two. Clients are as
the SDKs make them, but wait for nothing between attempts.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError
from azure.data.tables import TableClient, TableServiceClient, UpdateMode
from azure.storage.blob import (
    BlobBlock,
    BlobClient,
    BlobLeaseClient,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    LinearRetry,
    generate_blob_sas,
)
from azure.storage.queue import LinearRetry as QueueRetry
from azure.storage.queue import QueueClient, QueueServiceClient
from lazulite_patterns import Column, PatternsError, Policy, Table, column, entity, partition, row
from tests.docs_support import ROOT

import lazulite.testing

PAGE = ROOT / "docs" / "ambiguous-writes.md"
LOSSES: Mapping[str, Mapping[str, Any]] = {
    "answer lost": {"reset": "answer"},
    "500 after the write": {"error": "OperationTimedOut", "when": "after"},
}
"""Column of the table -> what happens to the first request that changes something, once the change is made."""
SUCCEEDS, TWICE, UNKNOWN = "succeeds", "**twice**", "unknown"

ENTITY = {"PartitionKey": "p", "RowKey": "r", "Count": 1}
OTHER = {"PartitionKey": "p", "RowKey": "s", "Count": 1}
PAGE_BYTES = bytes(512)
IF_NOT_MODIFIED = MatchConditions.IfNotModified
KEPT = "00000000-0000-0000-0000-000000000001"
"""The id of a lease."""


class Clients(NamedTuple):
    """The clients of one account."""

    account: lazulite.testing.Account
    tables: TableServiceClient
    queues: QueueServiceClient
    blobs: BlobServiceClient

    @classmethod
    def of(cls, account: lazulite.testing.Account) -> "Clients":
        """Return the clients of an account."""
        connection = account.connection_string
        blob_retry, queue_retry = LinearRetry(0, random_jitter_range=0), QueueRetry(0, random_jitter_range=0)
        return cls(
            account,
            TableServiceClient.from_connection_string(connection, retry_backoff_factor=0),
            QueueServiceClient.from_connection_string(connection, retry_policy=queue_retry),
            BlobServiceClient.from_connection_string(
                connection, retry_policy=blob_retry, max_block_size=4, max_single_put_size=4
            ),
        )

    def close(self) -> None:
        """Close all connections."""
        for client in (self.tables, self.queues, self.blobs):
            client.close()


class Case(NamedTuple):
    """One call."""

    name: str
    """Of the class and the method, and in parentheses what tells it from others of the method."""
    given: Callable[[Clients], Any]
    """Prepares what the call needs, and returns it."""
    call: Callable[[Any], object]
    changes: Callable[[Any], int] | None = None
    """Counts the changes; None: a second one would change nothing."""


# Tables.


def _tables(clients: Clients) -> TableServiceClient:
    return clients.tables


def _table(*entities: Mapping[str, Any]) -> Callable[[Clients], TableClient]:
    def given(clients: Clients) -> TableClient:
        table = clients.tables.create_table("Orders")
        for each in entities:
            table.create_entity(each)
        return table

    return given


def _read(clients: Clients) -> tuple[TableClient, Any]:
    table = _table(ENTITY)(clients)
    return table, table.get_entity("p", "r")


def _update_unmodified(mode: UpdateMode) -> Callable[[Any], object]:
    def call(given: tuple[TableClient, Any]) -> object:
        table, found = given
        etag = found.metadata["etag"]
        return table.update_entity({**found, "Count": 2}, mode=mode, etag=etag, match_condition=IF_NOT_MODIFIED)

    return call


def _delete_unmodified(given: tuple[TableClient, Any]) -> None:
    table, found = given
    table.delete_entity(found, etag=found.metadata["etag"], match_condition=IF_NOT_MODIFIED)


_TABLE_CASES = (
    Case("TableServiceClient.create_table", _tables, lambda tables: tables.create_table("Orders")),
    Case(
        "TableServiceClient.create_table_if_not_exists",
        _tables,
        lambda tables: tables.create_table_if_not_exists("Orders"),
    ),
    Case(
        "TableServiceClient.delete_table",
        lambda clients: (_table()(clients), clients.tables)[1],
        lambda tables: tables.delete_table("Orders"),
    ),
    Case("TableServiceClient.set_service_properties", _tables, lambda tables: tables.set_service_properties(cors=[])),
    Case(
        "TableClient.create_table",
        lambda clients: clients.tables.get_table_client("Orders"),
        lambda table: table.create_table(),
    ),
    Case("TableClient.delete_table", _table(), lambda table: table.delete_table()),
    Case("TableClient.set_table_access_policy", _table(), lambda table: table.set_table_access_policy({})),
    Case("TableClient.create_entity", _table(), lambda table: table.create_entity(ENTITY)),
    Case("TableClient.upsert_entity (merge)", _table(), lambda table: table.upsert_entity(ENTITY)),
    Case(
        "TableClient.upsert_entity (replace)",
        _table(),
        lambda table: table.upsert_entity(ENTITY, mode=UpdateMode.REPLACE),
    ),
    Case("TableClient.update_entity (merge)", _table(ENTITY), lambda table: table.update_entity(ENTITY)),
    Case(
        "TableClient.update_entity (replace)",
        _table(ENTITY),
        lambda table: table.update_entity(ENTITY, mode=UpdateMode.REPLACE),
    ),
    Case("TableClient.update_entity (merge, if not modified)", _read, _update_unmodified(UpdateMode.MERGE)),
    Case("TableClient.update_entity (replace, if not modified)", _read, _update_unmodified(UpdateMode.REPLACE)),
    Case("TableClient.delete_entity", _table(ENTITY), lambda table: table.delete_entity("p", "r")),
    Case("TableClient.delete_entity (if not modified)", _read, _delete_unmodified),
    Case(
        "TableClient.submit_transaction (create)",
        _table(),
        lambda table: table.submit_transaction([("create", ENTITY), ("create", OTHER)]),
    ),
    Case(
        "TableClient.submit_transaction (upsert)",
        _table(),
        lambda table: table.submit_transaction([("upsert", ENTITY), ("upsert", OTHER)]),
    ),
    Case(
        "TableClient.submit_transaction (delete)",
        _table(ENTITY, OTHER),
        lambda table: table.submit_transaction([("delete", ENTITY), ("delete", OTHER)]),
    ),
)


# Queues.


def _queues(clients: Clients) -> QueueServiceClient:
    return clients.queues


def _queue(*texts: str) -> Callable[[Clients], QueueClient]:
    def given(clients: Clients) -> QueueClient:
        queue = clients.queues.create_queue("orders")
        for text in texts:
            queue.send_message(text)
        return queue

    return given


def _received(clients: Clients) -> tuple[QueueClient, Any]:
    queue = _queue("m")(clients)
    return queue, queue.receive_message()


def _visible(queue: QueueClient) -> int:
    return len(queue.peek_messages(32))


_QUEUE_CASES = (
    Case("QueueServiceClient.create_queue", _queues, lambda queues: queues.create_queue("orders")),
    Case(
        "QueueServiceClient.delete_queue",
        lambda clients: (_queue()(clients), clients.queues)[1],
        lambda queues: queues.delete_queue("orders"),
    ),
    Case("QueueServiceClient.set_service_properties", _queues, lambda queues: queues.set_service_properties(cors=[])),
    Case(
        "QueueClient.create_queue",
        lambda clients: clients.queues.get_queue_client("orders"),
        lambda queue: queue.create_queue(),
    ),
    Case("QueueClient.delete_queue", _queue(), lambda queue: queue.delete_queue()),
    Case("QueueClient.set_queue_metadata", _queue(), lambda queue: queue.set_queue_metadata({"a": "b"})),
    Case("QueueClient.set_queue_access_policy", _queue(), lambda queue: queue.set_queue_access_policy({})),
    Case("QueueClient.send_message", _queue(), lambda queue: queue.send_message("m"), _visible),
    Case(
        "QueueClient.receive_message",
        _queue("one", "two"),
        lambda queue: queue.receive_message(),
        lambda queue: 2 - _visible(queue),
    ),
    Case(
        "QueueClient.receive_messages",
        _queue("one", "two"),
        lambda queue: next(iter(queue.receive_messages(messages_per_page=1))),
        lambda queue: 2 - _visible(queue),
    ),
    Case(
        "QueueClient.update_message",
        _received,
        lambda given: given[0].update_message(given[1], visibility_timeout=60, content="n"),
    ),
    Case("QueueClient.delete_message", _received, lambda given: given[0].delete_message(given[1])),
    Case("QueueClient.clear_messages", _queue("m"), lambda queue: queue.clear_messages()),
)


# Blobs.


def _blobs(clients: Clients) -> BlobServiceClient:
    return clients.blobs


def _container(clients: Clients) -> ContainerClient:
    return clients.blobs.create_container("docs")


def _no_blob(clients: Clients) -> BlobClient:
    return _container(clients).get_blob_client("a")


def _blob(clients: Clients) -> BlobClient:
    blob = _no_blob(clients)
    blob.upload_blob(b"abc")
    return blob


def _container_of_blob(clients: Clients) -> ContainerClient:
    _blob(clients)
    return clients.blobs.get_container_client("docs")


def _blob_and_etag(clients: Clients) -> tuple[BlobClient, str]:
    blob = _blob(clients)
    return blob, blob.get_blob_properties().etag


def _staged(clients: Clients) -> BlobClient:
    blob = _no_blob(clients)
    blob.stage_block("YQ==", b"abc")
    return blob


def _pages(clients: Clients) -> BlobClient:
    blob = _no_blob(clients)
    blob.create_page_blob(512)
    return blob


def _appended(clients: Clients) -> BlobClient:
    blob = _no_blob(clients)
    blob.create_append_blob()
    return blob


def _size(unit: int) -> Callable[[BlobClient], int]:
    return lambda blob: blob.get_blob_properties().size // unit


def _snapshots(blob: BlobClient) -> int:
    with blob._get_container_client() as container:
        return len(list(container.list_blobs(include=["snapshots"]))) - 1


def _lease(clients: Clients) -> BlobLeaseClient:
    return _blob(clients).acquire_lease(15)


def _with_source(prepare: Callable[[Clients], BlobClient], data: bytes = b"abc") -> Callable[[Clients], Any]:
    """Return what also makes a blob to copy from; the call gets its URL, signed."""

    def given(clients: Clients) -> tuple[BlobClient, str]:
        target, account = prepare(clients), clients.account
        source = clients.blobs.get_blob_client("docs", "source")
        source.upload_blob(data)
        token = generate_blob_sas(
            account.name,
            "docs",
            "source",
            account_key=account.key,
            permission=BlobSasPermissions(read=True),
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        return target, f"{source.url}?{token}"

    return given


_BLOB_CASES = (
    Case("BlobServiceClient.create_container", _blobs, lambda blobs: blobs.create_container("docs")),
    Case(
        "BlobServiceClient.delete_container",
        lambda clients: (_container(clients), clients.blobs)[1],
        lambda blobs: blobs.delete_container("docs"),
    ),
    Case("BlobServiceClient.set_service_properties", _blobs, lambda blobs: blobs.set_service_properties(cors=[])),
    Case(
        "ContainerClient.create_container",
        lambda clients: clients.blobs.get_container_client("docs"),
        lambda container: container.create_container(),
    ),
    Case("ContainerClient.delete_container", _container, lambda container: container.delete_container()),
    Case("ContainerClient.acquire_lease", _container, lambda container: container.acquire_lease()),
    Case(
        "ContainerClient.set_container_metadata",
        _container,
        lambda container: container.set_container_metadata({"a": "b"}),
    ),
    Case(
        "ContainerClient.set_container_access_policy",
        _container,
        lambda container: container.set_container_access_policy({}),
    ),
    Case("ContainerClient.upload_blob", _container, lambda container: container.upload_blob("a", b"abc")),
    Case("ContainerClient.delete_blob", _container_of_blob, lambda container: container.delete_blob("a")),
    Case("ContainerClient.delete_blobs", _container_of_blob, lambda container: list(container.delete_blobs("a"))),
    Case(
        "ContainerClient.set_standard_blob_tier_blobs",
        _container_of_blob,
        lambda container: list(container.set_standard_blob_tier_blobs("Cool", "a")),
    ),
    Case("BlobClient.upload_blob", _no_blob, lambda blob: blob.upload_blob(b"abc")),
    Case("BlobClient.upload_blob (in blocks)", _no_blob, lambda blob: blob.upload_blob(b"abcdefgh")),
    Case("BlobClient.upload_blob (overwrite)", _blob, lambda blob: blob.upload_blob(b"abd", overwrite=True)),
    Case(
        "BlobClient.upload_blob (overwrite, if not modified)",
        _blob_and_etag,
        lambda given: given[0].upload_blob(b"abd", overwrite=True, etag=given[1], match_condition=IF_NOT_MODIFIED),
    ),
    Case("BlobClient.upload_blob (page)", _no_blob, lambda blob: blob.upload_blob(PAGE_BYTES, blob_type="PageBlob")),
    Case(
        "BlobClient.upload_blob (append)",
        _no_blob,
        lambda blob: blob.upload_blob(b"abc", blob_type="AppendBlob"),
        _size(3),
    ),
    Case(
        "BlobClient.upload_blob_from_url",
        _with_source(_no_blob),
        lambda given: given[0].upload_blob_from_url(given[1]),
    ),
    Case("BlobClient.delete_blob", _blob, lambda blob: blob.delete_blob()),
    Case("BlobClient.undelete_blob", _blob, lambda blob: blob.undelete_blob()),
    Case("BlobClient.set_http_headers", _blob, lambda blob: blob.set_http_headers()),
    Case("BlobClient.set_blob_metadata", _blob, lambda blob: blob.set_blob_metadata({"a": "b"})),
    Case("BlobClient.set_blob_tags", _blob, lambda blob: blob.set_blob_tags({"a": "b"})),
    Case("BlobClient.set_standard_blob_tier", _blob, lambda blob: blob.set_standard_blob_tier("Cool")),
    Case("BlobClient.create_snapshot", _blob, lambda blob: blob.create_snapshot(), _snapshots),
    Case("BlobClient.acquire_lease", _blob, lambda blob: blob.acquire_lease()),
    Case(
        "BlobClient.start_copy_from_url",
        _with_source(_no_blob),
        lambda given: given[0].start_copy_from_url(given[1]),
    ),
    Case("BlobClient.stage_block", _no_blob, lambda blob: blob.stage_block("YQ==", b"abc")),
    Case(
        "BlobClient.stage_block_from_url",
        _with_source(_no_blob),
        lambda given: given[0].stage_block_from_url("YQ==", given[1]),
    ),
    Case("BlobClient.commit_block_list", _staged, lambda blob: blob.commit_block_list([BlobBlock("YQ==")])),
    Case("BlobClient.create_page_blob", _no_blob, lambda blob: blob.create_page_blob(512)),
    Case("BlobClient.upload_page", _pages, lambda blob: blob.upload_page(PAGE_BYTES, 0, 512)),
    Case(
        "BlobClient.upload_pages_from_url",
        _with_source(_pages, PAGE_BYTES),
        lambda given: given[0].upload_pages_from_url(given[1], 0, 512, 0),
    ),
    Case("BlobClient.clear_page", _pages, lambda blob: blob.clear_page(0, 512)),
    Case("BlobClient.resize_blob", _pages, lambda blob: blob.resize_blob(1024)),
    Case("BlobClient.set_sequence_number (update)", _pages, lambda blob: blob.set_sequence_number("update", "7")),
    Case(
        "BlobClient.set_sequence_number (increment)",
        _pages,
        lambda blob: blob.set_sequence_number("increment"),
        lambda blob: blob.get_blob_properties().page_blob_sequence_number,
    ),
    Case("BlobClient.create_append_blob", _no_blob, lambda blob: blob.create_append_blob()),
    Case("BlobClient.append_block", _appended, lambda blob: blob.append_block(b"abc"), _size(3)),
    Case(
        "BlobClient.append_block (at a position)",
        _appended,
        lambda blob: blob.append_block(b"abc", appendpos_condition=0),
    ),
    Case(
        "BlobClient.append_block_from_url",
        _with_source(_appended),
        lambda given: given[0].append_block_from_url(given[1]),
        lambda given: _size(3)(given[0]),
    ),
    Case("BlobClient.seal_append_blob", _appended, lambda blob: blob.seal_append_blob()),
    Case("BlobLeaseClient.acquire", lambda clients: BlobLeaseClient(_blob(clients)), lambda lease: lease.acquire(15)),
    Case("BlobLeaseClient.renew", _lease, lambda lease: lease.renew()),
    Case("BlobLeaseClient.change", _lease, lambda lease: lease.change(KEPT)),
    Case("BlobLeaseClient.release", _lease, lambda lease: lease.release()),
    Case("BlobLeaseClient.break_lease", _lease, lambda lease: lease.break_lease(0)),
)


# The pattern library.


@entity
class Order:
    """An entity of the pattern library."""

    customer: Column[str] = partition()
    id: Column[str] = row()
    count: Column[int] = column(default=0)


ORDER = Order("p", "r", 1)
_POLICY = Policy(first_wait_seconds=0.001)


def _orders(*orders: Order) -> Callable[[Clients], Table[Order]]:
    def given(clients: Clients) -> Table[Order]:
        table = Table.open(clients.account.connection_string, Order, table="Orders", policy=_POLICY)
        for each in orders:
            table.insert(each)
        return table

    return given


def _stored_order(clients: Clients) -> tuple[Table[Order], Order]:
    table = _orders(ORDER)(clients)
    found = table.get(ORDER)
    assert found is not None
    return table, found


def _in_transaction(table: Table[Order]) -> None:
    with table.transaction("p") as transaction:
        transaction.insert(ORDER)
        transaction.insert(Order("p", "s", 1))


def _increment(table: Table[Order]) -> object:
    return table.update(ORDER, lambda each: replace(each, count=each.count + 1))


def _added(table: Table[Order]) -> int:
    found = table.get(ORDER)
    assert found is not None
    return found.count - 1


_PATTERN_CASES = (
    Case("Table.insert", _orders(), lambda table: table.insert(ORDER)),
    Case("Table.upsert", _orders(), lambda table: table.upsert(ORDER)),
    Case("Table.insert_or_merge", _orders(), lambda table: table.insert_or_merge(ORDER)),
    Case("Table.update", _orders(ORDER), _increment, _added),
    Case("Table.replace", _stored_order, lambda given: given[0].replace(replace(given[1], count=2))),
    Case("Table.merge", _orders(ORDER), lambda table: table.merge(ORDER, count=2)),
    Case("Table.delete", _stored_order, lambda given: given[0].delete(given[1])),
    Case("Table.transaction", _orders(), _in_transaction),
)

PACKAGES: Mapping[str, Sequence[Case]] = {
    "azure-data-tables": _TABLE_CASES,
    "azure-storage-queue": _QUEUE_CASES,
    "azure-storage-blob": _BLOB_CASES,
    "lazulite-patterns": _PATTERN_CASES,
}
"""The cases of each package."""


def outcome(storage: lazulite.testing.Storage, case: Case, loss: Mapping[str, Any]) -> str:
    """Return what a call does when the first change that it asks for is made, and the answer is lost."""
    clients = Clients.of(storage.account())
    try:
        given = case.given(clients)
        with storage.faults.rule(account=clients.account.name, changes=True, first=1, **loss):
            ended = _ended(lambda: case.call(given))
            assert storage.faults.hits() == {"rule": 1}, case.name
        if ended == SUCCEEDS and case.changes is not None:
            count = case.changes(given)
            assert count in (1, 2), case.name
            return TWICE if count == 2 else SUCCEEDS
        return ended
    finally:
        clients.close()


def _ended(call: Callable[[], object]) -> str:
    try:
        call()
    except HttpResponseError as error:
        code = getattr(error, "error_code", None)
        return f"`{getattr(code, 'value', code) or type(error).__name__}`"
    except AzureError:
        return UNKNOWN
    except PatternsError as error:
        return f"`{type(error).__name__}`"
    return SUCCEEDS


def rows(storage: lazulite.testing.Storage) -> Iterator[str]:
    """Yield the lines of the tables of the page."""
    for package, cases in PACKAGES.items():
        yield f"| {package} | {' | '.join(LOSSES)} |"
        yield "|---" * (1 + len(LOSSES)) + "|"
        for each in cases:
            name, _, rest = each.name.partition(" ")
            found = [outcome(storage, each, loss) for loss in LOSSES.values()]
            yield f"| `{name}`{rest and ' '}{rest} | {' | '.join(found)} |"
        yield ""


def page_with(lines: Sequence[str]) -> str:
    """Return the page with these tables in place of its own."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition("## The calls\n\n")
    after = rest[re.search(r"^## ", rest, re.MULTILINE).start() :]  # type: ignore[union-attr]  # there is another one
    return f"{before}## The calls\n\n" + "\n".join(lines) + f"\n{after}"


def main() -> None:
    """Write the tables of the page."""
    logging.disable(logging.CRITICAL)
    with lazulite.testing.server() as storage:
        PAGE.write_text(page_with(list(rows(storage))), encoding="utf-8")


if __name__ == "__main__":
    main()
