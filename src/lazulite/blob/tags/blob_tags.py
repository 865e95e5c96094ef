"""Set and Get Blob Tags. Source: reference §43."""

from lazulite.blob.content.digests import SET_BLOB_TAGS, take_in
from lazulite.blob.content.receiving import create_digests
from lazulite.blob.model.rows import CURRENT, SNAPSHOT
from lazulite.blob.model.tags import read_tags, write_tags
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call
from lazulite.blob.storage.tag_index import NOT_INDEXED, index_tags
from lazulite.protocol.message import Response
from lazulite.service.responses import XML_TYPE


async def get_tags(call: Call) -> Response:
    """Return the tags of a blob, snapshot or version."""
    blob = (await call.locate()).blob
    call.preconditions.allow_read(blob, call.context.present())
    return Response(200, [XML_TYPE], write_tags(dict(blob.tags)))


async def set_tags(call: Call) -> Response:
    """Replace the tags of a blob or version. Its ETag and Last-Modified stay."""
    row = call.row
    digests = create_digests(call, SET_BLOB_TAGS)
    await call.in_slices(take_in(digests, call.request.body))
    tags = read_tags(call.request.body)
    container = await call.container()
    partition = container.space, call.resource.blob
    indexed, rows = NOT_INDEXED, [] if row == CURRENT else [row]

    def decide(transaction: Transaction) -> None:
        addressed = transaction.row_of(row)
        blob = transaction.require_blob(addressed)
        lease = call.preconditions.allow_write(blob, transaction.present)
        indexed.check(transaction.now)
        transaction.put(addressed, blob._replace(lease=lease, tags=tuple(tags.items())).to_bytes())

    if tags and not row.startswith(SNAPSHOT):
        await call.decide_early(container, decide, *rows)
        indexed = await index_tags(call.context.engine, partition, tags, call.context.clock())
    await call.commit(container, decide, *rows)
    return Response(204)
