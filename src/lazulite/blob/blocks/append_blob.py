"""Append Block and Append Blob Seal. Source: reference §36.3."""

from lazulite.blob.blobs.properties import change_blob
from lazulite.blob.blobs.put_blob import check_length
from lazulite.blob.content.digests import APPEND_BLOCK
from lazulite.blob.content.receiving import ReceivedContent, commit_received, make_checksum_headers, receive_allowed
from lazulite.blob.limits import APPEND_BLOCK_BYTES_BY_VERSION, BLOCKS_MAX, limit_of
from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.model.block import Block, write_blocks
from lazulite.blob.model.rows import list_row
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import read_number, version_of, written
from lazulite.engine.content.contract import Owner
from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.protocol.message import Response

_POSITION, _MOST = "x-ms-blob-condition-appendpos", "x-ms-blob-condition-maxsize"
_SEALED = ("x-ms-blob-sealed", "true")


async def append_block(call: Call) -> Response:
    """Append a block to an append blob."""
    check_length(call, limit_of(APPEND_BLOCK_BYTES_BY_VERSION, call.version))
    appending = Appending(call)
    container = await call.container()
    owner = Owner(container.space, call.resource.blob)
    received = await receive_allowed(call, owner, APPEND_BLOCK, lambda: call.decide_early(container, appending.check))
    if not received.length:
        raise invalid_header("Content-Length", "0")
    stored = await call.context.partitions.get(container.space, call.resource.blob)
    likely = [] if stored is None else [list_row(stored.list, stored.length + received.length)]
    blob = await commit_received(
        call.context.contents,
        received,
        lambda: call.commit(container, lambda transaction: appending.append(transaction, received), *likely),
    )
    offset = ("x-ms-blob-append-offset", str(blob.length - received.length))
    counted = offset, ("x-ms-blob-committed-block-count", str(blob.blocks))
    return Response(201, written(blob, *make_checksum_headers(call, received.digests), *counted))


async def seal_blob(call: Call) -> Response:
    """Seal an append blob: it takes no more blocks."""
    position = read_number(call.request.headers, _POSITION)

    def seal(blob: Blob, _: Transaction) -> Blob:
        _require_append(blob)
        _require_position(blob, position)
        return blob._replace(sealed=True)

    return Response(200, [*version_of(await change_blob(call, seal)), _SEALED])


class Appending:
    """One block on its way to the end of an append blob.

    Args:
        call: for its preconditions.

    Raises:
        ServiceError: 400.
    """

    def __init__(self, call: Call) -> None:
        headers = call.request.headers
        self._preconditions = call.preconditions
        self._position, self._most = read_number(headers, _POSITION), read_number(headers, _MOST)

    def check(self, transaction: Transaction) -> Blob:
        """Return the blob as it is to be changed. Raises `ServiceError` if what is stored does not allow it."""
        found = transaction.require_blob()
        _require_append(found)
        lease = self._preconditions.allow_write(found, transaction.present)
        if found.sealed:
            raise ServiceError("BlobIsSealed")
        _require_position(found, self._position)
        if found.blocks >= BLOCKS_MAX:
            raise ServiceError("BlockCountExceedsLimit")
        return found._replace(lease=lease, modified=transaction.modified)

    def append(self, transaction: Transaction, received: ReceivedContent) -> Blob:
        """Append a block that was received, and return the blob. Raises as `check`."""
        blob = self.check(transaction)
        length = blob.length + received.length
        if self._most is not None and length > self._most:
            raise ServiceError("MaxBlobSizeConditionNotMet")
        block = Block("", received.length, received.number, received.inline)
        transaction.put(list_row(blob.list, length), write_blocks(blob.length, [block]))
        appended = blob._replace(length=length, blocks=blob.blocks + 1, copy=None)
        transaction.put_blob(appended)
        return appended


def _require_append(blob: Blob) -> None:
    if blob.type is not BlobType.APPEND:
        raise ServiceError("InvalidBlobType")


def _require_position(blob: Blob, position: int | None) -> None:
    if position is not None and position != blob.length:
        raise ServiceError("AppendPositionConditionNotMet")
