"""Set and Get Blob Tags. Source: reference §43."""

from dataclasses import replace

from lazulite.blob.call import Call
from lazulite.blob.headers.request import conditions_of, lease_id, require_met
from lazulite.blob.leasing import check_lease, lease_for_write
from lazulite.blob.model.draft import Draft
from lazulite.blob.model.rows import CURRENT, SNAPSHOT
from lazulite.blob.payload.tags import read_tags, write_tags
from lazulite.blob.presence import present
from lazulite.blob.storage.tag_index import NOT_INDEXED, index_tags
from lazulite.protocol.message import Response
from lazulite.service.responses import NO_CACHE, XML_TYPE

_CONDITIONS = "x-ms-blob-"
"""The prefix of the conditional headers of both."""


async def get_tags(call: Call) -> Response:
    """Return the tags of a blob, snapshot or version."""
    headers = call.request.headers
    given, conditions = lease_id(headers), conditions_of(headers, _CONDITIONS, writes=False)
    blob = await call.find(await call.container())
    require_met(conditions.read(blob.validators))
    check_lease(blob.lease, call.context.present(), given)
    return Response(200, [XML_TYPE, NO_CACHE], write_tags(dict(blob.tags)))


async def set_tags(call: Call) -> Response:
    """Replace the tags of a blob or version. Its ETag and Last-Modified stay."""
    headers, row = call.request.headers, call.row
    tags = read_tags(call.request.body)
    given, conditions = lease_id(headers), conditions_of(headers, _CONDITIONS, writes=True)
    container = await call.container()
    partition = container.space, call.resource.blob
    indexed, rows = NOT_INDEXED, [] if row == CURRENT else [row]

    def decide(draft: Draft) -> None:
        addressed = draft.row_of(row)
        blob = present(draft, addressed)
        lease = lease_for_write(blob.lease, draft.present, given)
        require_met(conditions.write(blob.validators))
        indexed.check(draft.now)
        draft.put(addressed, replace(blob, lease=lease, tags=tuple(tags.items())).to_bytes())

    if tags and not row.startswith(SNAPSHOT):
        await call.decide_early(container, decide, *rows)
        indexed = await index_tags(call.context.engine, partition, tags, call.context.clock())
    await call.commit(container, decide, *rows)
    return Response(204)
