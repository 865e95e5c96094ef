"""The responses of a batch's operations, as parts of its own response.

The responses of inserts without an echo differ only in the row key of an address where their heads are the same. Such a
part is encoded once, with `_ROW_KEY` for the row key, which no header can hold.
"""

from lazulite.protocol.message import Response
from lazulite.protocol.multipart.encoder import encode_part
from lazulite.protocol.multipart.parser import Head
from lazulite.protocol.steps import Steps
from lazulite.table.model.row import etag_of
from lazulite.table.operations.entity_writes import ValidatedWrite, respond
from lazulite.table.operations.write_decisions import EntityWrite
from lazulite.table.payload.links import linked_key, row_link
from lazulite.table.responses import location_lines

_ROW_KEY = "\0"


class ResponseParts:
    """The responses of the operations of one change set, all of one partition, that were applied at `timestamp`."""

    def __init__(self, timestamp: int) -> None:
        self._timestamp = timestamp
        self._by_head: dict[Head, bytes] = {}

    def with_content(self, validated: ValidatedWrite, write: EntityWrite, head: Head) -> Steps[bytes]:
        """Return the encoded response of an operation in steps, given its head, validated and as sent."""
        return encode_part((yield from respond(validated, write, self._timestamp)), head.content_id)

    def without_content(self, validated: ValidatedWrite, write: EntityWrite, head: Head) -> bytes:
        """Return the encoded response of an insert that asked for none of its entity; arguments as above."""
        part = self._by_head.get(head)
        if part is None:
            call = validated.call
            location = call.address.base + row_link(call.resource.table, write.partition_key, _ROW_KEY)
            lines = (
                f"{validated.insert_response().opening}{location_lines(location)}ETag: {etag_of(self._timestamp)}\r\n"
            )
            part = self._by_head[head] = encode_part(Response(204, opening=lines), head.content_id)
        return part.replace(_ROW_KEY.encode(), linked_key(write.row_key).encode("ascii"))
