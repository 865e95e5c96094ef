"""Put Block and Get Block List. Source: reference §36.2."""

from contextlib import aclosing

from lazulite.auth.grant import permits
from lazulite.blob.auth.requirements import READ_UNCOMMITTED, may_overwrite
from lazulite.blob.blobs.put_blob import check_length
from lazulite.blob.blocks import block_list_xml
from lazulite.blob.content.digests import PUT_BLOCK
from lazulite.blob.content.receiving import (
    EMPTY,
    ReceivedContent,
    commit_received,
    make_checksum_headers,
    receive_allowed,
    receive_now,
)
from lazulite.blob.limits import PUT_BLOCK_BYTES_BY_VERSION, UNCOMMITTED_BLOCKS_MAX, limit_of
from lazulite.blob.model.blob import Blob, BlobType, require_not_archived
from lazulite.blob.model.block import Block, read_blocks, read_heads, write_blocks
from lazulite.blob.model.block_id import check_same_length, require_block_id
from lazulite.blob.model.ledger import UPLOAD_DAYS, Ledger, new_number, read_ledger
from lazulite.blob.model.rows import CURRENT, LEDGER, list_rows, upload_rows
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import ENCRYPTED, version_of
from lazulite.blob.storage.readers import Partition
from lazulite.blob.storage.uploads import day_of
from lazulite.engine.content.contract import Owner
from lazulite.engine.contract import UNKNOWN, Waiter
from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.protocol.message import Response
from lazulite.service.responses import XML_TYPE

_TYPE = "blocklisttype"
_TYPES = {"committed": (True, False), "uncommitted": (False, True), "all": (True, True)}
"""For each value: whether the response has the committed blocks, and the uncommitted ones."""
_TOO_MANY = f"The uncommitted block count cannot exceed the maximum limit of {UNCOMMITTED_BLOCKS_MAX:,} blocks."


async def put_block(call: Call) -> Response:
    """Put a block into the upload of a blob, in place of the one that has its id there."""
    id_ = require_block_id(call.parameters)
    check_length(call, limit_of(PUT_BLOCK_BYTES_BY_VERSION, call.version))
    container = await call.container()
    partition = container.space, call.resource.blob
    upload = _BlockUpload(call, id_)

    async def allow() -> None:
        await call.decide_early(container, lambda transaction: upload.put(transaction, EMPTY))

    received = await receive_allowed(call, Owner(*partition), PUT_BLOCK, allow)
    if not received.length:
        raise invalid_header("Content-Length", "0")
    ledger = read_ledger(await call.context.engine.get(*partition, LEDGER))
    if ledger.uncommitted.day != upload.day:
        await call.context.uploads.schedule(upload.day + UPLOAD_DAYS + 1, partition)
    await commit_received(
        call.context.contents,
        received,
        lambda: call.commit(container, lambda transaction: upload.put(transaction, received), upload.row(ledger)),
    )
    return _response(call, received)


def put_block_now(call: Call, waiter: Waiter) -> Response | None:
    """Put a small block in this step, see `operation.Begin`. Raises as `put_block`."""
    id_ = require_block_id(call.parameters)
    check_length(call, limit_of(PUT_BLOCK_BYTES_BY_VERSION, call.version))
    container, received = call.container_now(), receive_now(call, PUT_BLOCK)
    if container is None or received is None or not received.length:
        return None
    stored = call.context.engine.get_now(container.space, call.resource.blob, LEDGER)
    upload = _BlockUpload(call, id_)
    if stored is UNKNOWN or (ledger := read_ledger(stored)).uncommitted.day != upload.day:
        return None
    content = received
    done = call.commit_now(container, lambda transaction: upload.put(transaction, content), waiter, upload.row(ledger))
    return None if done is UNKNOWN else _response(call, received)


def _response(call: Call, received: ReceivedContent) -> Response:
    return Response(201, [*make_checksum_headers(call, received.digests), ENCRYPTED])


class _BlockUpload:
    """One block on its way into an upload.

    Args:
        call: the request.
        id_: of the block.
    """

    def __init__(self, call: Call, id_: str) -> None:
        self._id = id_
        self._preconditions = call.preconditions
        self._overwrites = may_overwrite(call.grant, call.resource.name)
        self._new_upload = new_number(call.context.random)
        self.day = day_of(call.context.clock())

    def row(self, ledger: Ledger) -> str:
        """Return the row of the block."""
        return upload_rows(ledger.upload or self._new_upload) + self._id

    def put(self, transaction: Transaction, received: ReceivedContent) -> None:
        """Put the block. The blob, if there is one, stays as it is.

        Raises:
            ServiceError: `UnauthorizedBlobOverwrite`, `InvalidBlobType`, `InvalidBlobOrBlock`,
                `BlockCountExceedsLimit`, or 412.
        """
        self._allow(transaction)
        ledger = transaction.ledger
        check_same_length(self._id, ledger.uncommitted.id or None)
        row = self.row(ledger)
        stored = transaction.value(row)
        if stored is None and ledger.uncommitted.blocks >= UNCOMMITTED_BLOCKS_MAX:
            raise ServiceError("BlockCountExceedsLimit", _TOO_MANY)
        ledger = ledger.put_block(ledger.upload or self._new_upload, self._id, self.day, is_new=stored is None)
        for block in () if stored is None else read_blocks(stored).blocks:
            if block.content is not None:
                ledger = ledger.discard(f"c{block.content}")
        transaction.ledger = ledger
        transaction.put(row, write_blocks(0, [Block(self._id, received.length, received.number, received.inline)]))

    def _allow(self, transaction: Transaction) -> None:
        """Reject a block by the blob for which it is put. An expired lease is removed."""
        found = transaction.found
        if found is None or found.deleted:
            self._preconditions.allow_write(None, transaction.present)
            return
        if not self._overwrites:
            raise ServiceError("UnauthorizedBlobOverwrite")
        require_block_blob(found)
        require_not_archived(found)
        lease = self._preconditions.allow_write(found, transaction.present)
        if lease is not found.lease:
            transaction.put_blob(found._replace(lease=lease))


async def get_block_list(call: Call) -> Response:
    """Return the committed blocks of a blob or snapshot in their order, and the uncommitted ones by their ids."""
    kinds = _TYPES.get(call.parameters.get(_TYPE, "committed").lower())
    if kinds is None:
        raise ServiceError("InvalidQueryParameterValue", details=[("QueryParameterName", _TYPE)])
    container = await call.container()
    partition = container.space, call.resource.blob
    readers = call.context.garbage.readers
    readers.begin(partition)
    try:
        row, blob = await call.context.partitions.locate(*partition, call.row)
        ledger = read_ledger(await call.context.engine.get(*partition, LEDGER) if row == CURRENT else None)
        if blob is None and not (ledger.upload and permits(call.grant, READ_UNCOMMITTED, call.resource.name)):
            raise ServiceError("BlobNotFound")
        call.preconditions.allow_read(blob, call.context.present())
        headers = [XML_TYPE] if blob is None else _headers_of(blob)
        number = 0 if blob is None else blob.list
        committed = await _blocks(call, partition, list_rows(number) if number else "") if kinds[0] else None
        upload = upload_rows(ledger.upload) if ledger.upload else ""
        uncommitted = await _blocks(call, partition, upload) if kinds[1] else None
    finally:
        readers.end(partition)
    parts = await call.in_slices(block_list_xml.write_block_list(committed, uncommitted))
    return Response(200, headers, b"".join(parts))


def require_block_blob(blob: Blob) -> None:
    """Reject a blob without blocks that have ids. Raises `InvalidBlobType`."""
    if blob.type is not BlobType.BLOCK:
        raise ServiceError("InvalidBlobType")


def _headers_of(blob: Blob) -> list[tuple[str, str]]:
    """Return the headers that tell of a block blob."""
    require_block_blob(blob)
    return [XML_TYPE, *version_of(blob), ("x-ms-blob-content-length", str(blob.length))]


async def _blocks(call: Call, partition: Partition, prefix: str) -> list[block_list_xml.Block]:
    """Return the blocks of the rows whose keys begin with a prefix; "": there are none."""
    found: list[block_list_xml.Block] = []
    if prefix:
        async with aclosing(call.context.partitions.slices(*partition, prefix)) as parts:
            async for part in parts:
                for value in part.values:
                    found += [block_list_xml.Block(block.id, block.length) for block in read_heads(value)[1]]
    return found
