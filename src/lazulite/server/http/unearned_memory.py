"""Memory that a connection holds for a client without good credentials, and for bodies that were not accepted.

Invariant: a connection whose client has shown good credentials once counts only for bodies that its later requests have
not earned yet.
"""

from lazulite.server.http.inbound import InboundBuffer
from lazulite.server.http.outbound import OutboundStream
from lazulite.server.http.pending_request import PendingRequest

_TLS_BYTES = 28 * 1024
"""What a TLS connection holds at rest, as measured; each read grows its buffers to twice its own size."""

_TLS_WAITING_BYTES = 64 * 1024
"""What may wait encrypted, where it cannot be seen, while some waits in clear."""


class UnearnedMemory:
    """Of one connection.

    Args:
        inbound: what has come.
        is_tls: whether buffers of TLS count too.

    Attributes:
        is_authenticated: a request of the connection has had good credentials.
        is_charged: a budget counts something.
    """

    __slots__ = ("_inbound", "_tls_bytes", "is_authenticated", "is_charged")

    def __init__(self, inbound: InboundBuffer, *, is_tls: bool) -> None:
        self._inbound = inbound
        self._tls_bytes = _TLS_BYTES if is_tls else 0
        self.is_authenticated = False
        self.is_charged = is_tls

    def note_read(self, count: int) -> None:
        """Account for the buffers of a read."""
        if self._tls_bytes:
            self._tls_bytes = max(self._tls_bytes, _TLS_BYTES + 2 * count)

    def held_bytes(
        self, running: PendingRequest | None, outbound: OutboundStream | None, *, ending: bool
    ) -> tuple[int, int]:
        """Return what is held for a client without good credentials; and of bodies that were not accepted."""
        inbound = self._inbound
        unaccepted_bytes = inbound.unaccepted_bytes
        if running is not None:
            unaccepted_bytes += running.unaccepted_bytes
            self.is_authenticated = self.is_authenticated or running.request.authenticated
        if self.is_authenticated:
            return 0, unaccepted_bytes
        held_bytes = 0 if running is None else running.head_bytes + running.unaccepted_bytes
        if outbound is not None:
            waiting_bytes = outbound.waiting_bytes
            held_bytes += inbound.held_bytes + waiting_bytes
            if self._tls_bytes and waiting_bytes:
                held_bytes += _TLS_WAITING_BYTES
            if not ending:
                held_bytes += self._tls_bytes
        return held_bytes, unaccepted_bytes
