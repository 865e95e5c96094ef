"""Jobs over all rows that a search finds: count, delete, set or remove a property, copy.

Invariants: rows are changed under the ETags with which they were found, so that a change by another client is reported
and stays. Batches have one partition and at most 100 rows. Nothing is held but one page of the service.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from lazulite.ui.backend import BackendError, ServiceClient
from lazulite.ui.jobs import Job, Work
from lazulite.ui.tables.reader import Search, all_rows
from lazulite.ui.tables.values import Entity, Value, document_of, path_of

BATCH_ROWS = 100
BATCH_BYTES = 3 * 1024 * 1024
"""Below the 4 MiB of a batch with its heads."""
_KEYS_ONLY = "PartitionKey,RowKey"


class Change(NamedTuple):
    """What a batch does to one row."""

    method: str
    """`DELETE`, `MERGE` or `PUT`."""
    partition: str
    row: str
    body: bytes = b""
    etag: str = ""
    """"" for no precondition."""


Changes = Callable[[Entity], Change | None]
"""What is done to a row; None: nothing."""


def deletion(entity: Entity) -> Change:
    """Return the deletion of a row that has not changed."""
    return Change("DELETE", entity.partition, entity.row, b"", entity.etag)


def setting(name: str, value: Value) -> Changes:
    """Return what sets a property of rows that have another value or none."""

    def change(entity: Entity) -> Change | None:
        if entity.values.get(name) == value:
            return None
        body = document_of(entity.partition, entity.row, {name: value})
        return Change("MERGE", entity.partition, entity.row, body, entity.etag)

    return change


def removal(name: str) -> Changes:
    """Return what removes a property of rows that have it."""

    def change(entity: Entity) -> Change | None:
        if name not in entity.values:
            return None
        values = {other: value for other, value in entity.values.items() if other != name}
        body = document_of(entity.partition, entity.row, values)
        return Change("PUT", entity.partition, entity.row, body, entity.etag)

    return change


def copy_of(entity: Entity) -> Change:
    """Return what writes a row as it is, whatever is there."""
    return Change("PUT", entity.partition, entity.row, document_of(entity.partition, entity.row, entity.values))


def count_rows(client: ServiceClient, search: Search) -> Work:
    """Return a job that counts rows and partitions."""

    async def work(job: Job) -> None:
        partitions, last = 0, None
        async for rows in all_rows(client, search, "" if search.local.is_set else _KEYS_ONLY):
            for row in rows:
                partitions += row.partition != last
                last = row.partition
            await job.step(len(rows))
        counts = ((job.done, "row"), (partitions, "partition"))
        job.say(" in ".join(f"{count:,} {noun}{'' if count == 1 else 's'}" for count, noun in counts))

    return work


def change_rows(source: ServiceClient, search: Search, change: Changes, target: ServiceClient, table: str) -> Work:
    """Return a job that changes all rows of a search.

    Args:
        source: the client of the account whose rows are read.
        search: finds the rows.
        change: of each row.
        target: the client of the account whose table is changed.
        table: that is changed.
    """

    async def work(job: Job) -> None:
        unchanged = 0
        async for rows in all_rows(source, search):
            for _, group in groupby(rows, lambda row: row.partition):
                changes = [change(row) for row in group]
                unchanged += changes.count(None)
                for batch in _batches([each for each in changes if each is not None]):
                    await _apply(job, target, table, batch)
        if unchanged:
            job.say(f"{unchanged:,} rows needed no change")
        if job.failed:
            job.say(f"{job.failed:,} rows were left as they are; the lines above say why")

    return work


def _batches(changes: Sequence[Change]) -> Sequence[Sequence[Change]]:
    """Return the changes of a partition in batches."""
    batches: list[list[Change]] = []
    size = 0
    for change in changes:
        if not batches or len(batches[-1]) == BATCH_ROWS or size + len(change.body) > BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(change)
        size += len(change.body)
    return batches


async def _apply(job: Job, client: ServiceClient, table: str, batch: Sequence[Change]) -> None:
    """Send a batch. If it is rejected, send its rows one by one, so that each that can be changed is."""
    if len(batch) > 1:
        try:
            await send_batch(client, table, batch)
        except BackendError as error:
            if error.status >= 500:
                raise
        else:
            return await job.step(len(batch))
    for each in batch:
        try:
            await send_change(client, table, each)
        except BackendError as error:
            if error.status >= 500:
                raise
            job.failed += 1
            job.say(f"{each.partition} / {each.row}: {error.code or error.status}: {error}"[:400])
        await job.step()
    return None


async def send_change(client: ServiceClient, table: str, change: Change) -> None:
    """Send one change. Raises `BackendError`."""
    await client.send(change.method, path_of(table, change.partition, change.row), {}, _headers(change), change.body)


async def send_batch(client: ServiceClient, table: str, batch: Sequence[Change]) -> None:
    """Send the changes of one partition as one transaction.

    Raises:
        BackendError: none of them was made.
    """
    outer, inner = f"batch_{secrets.token_hex(8)}", f"changeset_{secrets.token_hex(8)}"
    lines = [f"--{outer}", f"Content-Type: multipart/mixed; boundary={inner}", ""]
    parts = [*map(str.encode, lines)]
    for number, change in enumerate(batch):
        path = path_of(table, change.partition, change.row)
        head = (f"--{inner}", "Content-Type: application/http", "Content-Transfer-Encoding: binary", "")
        fields = [f"{name}: {value}" for name, value in _headers(change).items()]
        request = (f"{change.method} {client.url}/{path} HTTP/1.1", f"Content-ID: {number}", *fields, "")
        parts += [*map(str.encode, (*head, *request)), change.body]
    parts += [f"--{inner}--".encode(), f"--{outer}--".encode(), b""]
    headers = {"Content-Type": f"multipart/mixed; boundary={outer}", "Accept": "application/json;odata=nometadata"}
    answer = await client.send("POST", "$batch", {}, headers, b"\r\n".join(parts))
    failed = [
        line for line in answer.body.split(b"\r\n") if line.startswith(b"HTTP/1.1 4") or b"HTTP/1.1 5" in line[:10]
    ]
    if failed:
        status = int(failed[0].split(b" ")[1])
        raise BackendError(status, "", f"the batch was rejected with {status}", answer.request_id)


def _headers(change: Change) -> dict[str, str]:
    headers = {"Accept": "application/json;odata=nometadata"}
    if change.body:
        headers["Content-Type"] = "application/json"
    if change.method == "DELETE" or change.etag:
        headers["If-Match"] = change.etag or "*"
    return headers


async def empty_table(client: ServiceClient, table: str, create: Callable[[], Awaitable[None]]) -> None:
    """Remove all rows at once: drop the table, and create it with its policies. Raises `BackendError`.

    Args:
        client: of the table service.
        table: that is emptied.
        create: creates the table.
    """
    policies = await client.send("GET", table, {"comp": "acl"})
    await client.send("DELETE", f"Tables('{table}')")
    await create()
    if b"<SignedIdentifier>" in policies.body:
        await client.send("PUT", table, {"comp": "acl"}, {"Content-Type": "application/xml"}, policies.body)
