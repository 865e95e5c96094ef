"""The answers of a batch's operations, as they stand in its own.

Inserts that want no echo are answered alike where their heads are the same, but for the row key in an address: such an
answer is spelled once, with `_ROW_KEY` for the row key, which no header can hold.
"""

from lazulite.protocol.multipart.encoder import encode_part
from lazulite.protocol.multipart.parser import Head
from lazulite.table.call import Call
from lazulite.table.model.row import etag_of
from lazulite.table.operations.entity_writes import answer
from lazulite.table.operations.write_decisions import EntityWrite
from lazulite.table.payload.links import linked_key, row_link
from lazulite.table.payload.negotiation import Preference
from lazulite.table.responses import created_without_content

_ROW_KEY = "\0"


class AnswerParts:
    """Answers the operations of one change set, all of one partition, that were applied at `stamp`."""

    def __init__(self, stamp: int) -> None:
        self._stamp = stamp
        self._alike: dict[Head, bytes] = {}

    def part(self, call: Call, write: EntityWrite, head: Head) -> bytes:
        """Return the answer of an operation, given the call and the head that it came with."""
        if write.preference is not Preference.NO_CONTENT:
            return encode_part(answer(call, write, self._stamp), head.content_id)
        alike = self._alike.get(head)
        if alike is None:
            location = call.address.base + row_link(call.resource.table, write.partition_key, _ROW_KEY)
            response = created_without_content(call, location, ("ETag", etag_of(self._stamp)))
            alike = self._alike[head] = encode_part(response, head.content_id)
        return alike.replace(_ROW_KEY.encode(), linked_key(write.row_key).encode("ascii"))
