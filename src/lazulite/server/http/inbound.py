"""The reading half of a connection: what has come, and the requests in it.

Invariants: what is kept is bounded: one read of the transport that is not parsed yet, the requests that `Limits` lets
wait, two slices of a body that the service has not accepted, and a window of one that it reads in chunks; nothing is
kept after `close`.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import cast

from lazulite.protocol.message import Request
from lazulite.server.admission.costs import BULK_BYTES, CostAccount
from lazulite.server.http.parser import RequestParser
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.http.whole_reader import WholeReader
from lazulite.server.limits import Limits

_SLICE_BYTES = 16 * 1024
"""Input is parsed in slices of this size, so that one read of many small requests cannot overrun the queue by much."""

_NOTHING = b""


class InboundBuffer:
    """Of one connection.

    Args:
        limits: the bounds.
        new_request: as `RequestParser` has it.
        account: the connection's cost; charged for bulk, and for bodies in small fragments.

    Attributes:
        queue: the requests that have begun to come and are not served yet, oldest first.
        parser: says what is being read.
        unread: what has come and is not parsed yet.
    """

    __slots__ = ("_account", "_limits", "_whole", "parser", "queue", "unread")

    def __init__(
        self, limits: Limits, new_request: Callable[[str, Mapping[str, str]], Request], account: CostAccount
    ) -> None:
        self._limits = limits
        self._account = account
        self.unread: bytes | memoryview = _NOTHING
        self.queue: deque[PendingRequest] = deque()
        self.parser = RequestParser(limits, self.queue, new_request)
        self._whole = WholeReader(limits, new_request)

    def receive(self, data: bytes) -> None:
        """Keep what has come."""
        if len(data) >= BULK_BYTES:
            self._account.read(len(data))
        self.unread = bytes(self.unread) + data if self.unread else data

    def read_on(self) -> bool:
        """Parse a slice of what has come; False if there is none, no room for it, or it is not accepted yet."""
        part, parser = self.unread, self.parser
        if not part or parser.stopped or (len(self.queue) > 1 and self._is_crowded()):
            return False
        if not self.queue and parser.is_between and isinstance(part, bytes):
            whole = self._whole.read(part)
            if whole is not None:
                self.unread = _NOTHING
                parser.message_count += 1
                self.queue.append(whole)
                return True
        coming = parser.incoming
        if coming is not None and (coming.is_held_back(_SLICE_BYTES) or coming.is_full):
            return False
        if len(part) > _SLICE_BYTES:
            part = memoryview(part)
            part, self.unread = part[:_SLICE_BYTES], part[_SLICE_BYTES:]
        else:
            self.unread = _NOTHING
        parser.feed(part)
        if parser.fragment_count:
            self._account.charge_fragments(parser.fragment_count)
            parser.fragment_count = 0
        return True

    @property
    def has_room(self) -> bool:
        """Whether more may come."""
        return not self.unread and (len(self.queue) < 2 or not self._is_crowded())

    @property
    def unaccepted_bytes(self) -> int:
        """What is held of bodies that the service has not accepted, but for those of requests that were taken out."""
        coming = self.parser.incoming
        unread_bytes = 0 if coming is None or coming.is_welcome or coming.discards else self._unread_bytes
        return unread_bytes + sum(incoming.unaccepted_bytes for incoming in self.queue)

    @property
    def held_bytes(self) -> int:
        """Memory that all takes that has come, roughly; likewise."""
        heads_bytes = sum(incoming.head_bytes for incoming in self.queue) + self.parser.head_bytes
        return heads_bytes + max(self.unaccepted_bytes, self._unread_bytes)

    @property
    def _unread_bytes(self) -> int:
        """Memory of what is unread: a slice keeps all that it is cut from."""
        unread = self.unread
        return len(cast(bytes, unread.obj)) if isinstance(unread, memoryview) else len(unread)

    def end(self) -> None:
        """Nothing more comes: half a request gets no response."""
        self.parser.close()
        queue = self.queue
        while queue and not (queue[-1].complete or queue[-1].error):
            queue.pop()

    def close(self) -> None:
        """Drop all that has come."""
        self.queue.clear()
        self.unread = _NOTHING
        self._whole.close()
        self.parser.close()

    def _is_crowded(self) -> bool:
        """Say whether several requests are too many; one may always come."""
        queue, limits = self.queue, self._limits
        return len(queue) >= limits.pipelined_requests or sum(i.received_bytes for i in queue) > limits.body_bytes
