"""The reading half of a connection: what has come, and the requests in it.

Invariants: what is kept is bounded: one read of the transport that is not parsed yet, the requests that `Limits` lets
wait, and two slices of a body that the service has not accepted; nothing is kept after `close`.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import cast

from lazulite.protocol.message import Request
from lazulite.server.admission.costs import BULK_BYTES, Debt
from lazulite.server.http.parser import RequestParser
from lazulite.server.http.pending_request import Incoming
from lazulite.server.http.server_state import Shared

_SLICE_BYTES = 16 * 1024
"""Input is parsed in slices of this size, so that one read of many small requests cannot overrun the queue by much."""

_NOTHING = b""


class Inlet:
    """Of one connection.

    Args:
        shared: of the server's connections.
        new_request: as `RequestParser` has it.
        debt: what the connection owes; told of bodies in crumbs.

    Attributes:
        queue: the requests that have begun to come and are not served yet, oldest first.
        parser: says what is being read.
        unread: what has come and is not parsed yet.
    """

    __slots__ = ("_debt", "_shared", "parser", "queue", "unread")

    def __init__(self, shared: Shared, new_request: Callable[[str, Mapping[str, str]], Request], debt: Debt) -> None:
        self._shared = shared
        self._debt = debt
        self.unread: bytes | memoryview = _NOTHING
        self.queue: deque[Incoming] = deque()
        self.parser = RequestParser(shared.limits, self.queue, new_request)

    def receive(self, data: bytes) -> None:
        """Keep what has come."""
        if len(data) >= BULK_BYTES:
            self._debt.read(len(data))
        self.unread = bytes(self.unread) + data if self.unread else data

    def read_on(self) -> bool:
        """Parse a slice of what has come; False if there is none, no room for it, or it is not accepted yet."""
        part, parser = self.unread, self.parser
        if not part or parser.stopped or (len(self.queue) > 1 and self._is_crowded()):
            return False
        if parser.incoming is not None and parser.incoming.unaccepted_bytes >= _SLICE_BYTES:
            return False
        if len(part) > _SLICE_BYTES:
            part = memoryview(part)
            part, self.unread = part[:_SLICE_BYTES], part[_SLICE_BYTES:]
        else:
            self.unread = _NOTHING
        parser.feed(part)
        if parser.crumb_count:
            self._debt.crumbs(parser.crumb_count)
            parser.crumb_count = 0
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
        """Nothing more comes: who has sent half a request gets no answer to it."""
        self.parser.close()
        queue = self.queue
        while queue and not (queue[-1].complete or queue[-1].error):
            queue.pop()

    def close(self) -> None:
        """Forget all that has come."""
        self.queue.clear()
        self.unread = _NOTHING
        self.parser.close()

    def _is_crowded(self) -> bool:
        """Say whether several requests are too many; one may always come."""
        queue, limits = self.queue, self._shared.limits
        return len(queue) >= limits.pipelined_requests or sum(i.received_bytes for i in queue) > limits.body_bytes
