"""Memory that a connection holds, and for bodies that were not accepted.

Invariants: every byte of input and output counts, whether or not the client has shown good credentials. Only accepted
bodies (`BodyBudget`), windows of content on their way out (`content_sender`) and the buffers of TLS at rest, which have
the bound of connections, are counted elsewhere.
"""

from lazulite.protocol.body import WINDOW_BYTES
from lazulite.server.admission.body_budget import BodyBudget
from lazulite.server.http.inbound import InboundBuffer
from lazulite.server.http.outbound import OutboundStream
from lazulite.server.http.pending_request import PendingRequest

_TLS_BYTES = 28 * 1024
"""What a TLS connection holds at rest, as measured; each read grows its buffers to twice its own size."""

_TLS_WAITING_BYTES = 64 * 1024
"""What may wait encrypted, where it cannot be seen, while some waits in clear."""


class ConnectionMemory:
    """Of one connection.

    Args:
        inbound: what has come.
        is_tls: whether buffers of TLS count too.

    Attributes:
        is_authenticated: a request of the connection has had good credentials.
        is_charged: a budget counts something.
        made_bytes: of a long response that is made, while it is sent.
        window_bytes: what a window takes: over TLS, one is encrypted while the one before waits.
        window_budget: has a reservation for a window, which is what waits for the client; None: there is none.
    """

    __slots__ = (
        "_inbound",
        "_tls_bytes",
        "is_authenticated",
        "is_charged",
        "made_bytes",
        "window_budget",
        "window_bytes",
    )

    def __init__(self, inbound: InboundBuffer, *, is_tls: bool) -> None:
        self._inbound = inbound
        self._tls_bytes = _TLS_BYTES if is_tls else 0
        self.is_authenticated = False
        self.is_charged = is_tls
        self.made_bytes = 0
        self.window_budget: BodyBudget | None = None
        self.window_bytes = 2 * WINDOW_BYTES if is_tls else WINDOW_BYTES

    def note_read(self, count: int) -> None:
        """Account for the buffers of a read."""
        if self._tls_bytes:
            self._tls_bytes = max(self._tls_bytes, _TLS_BYTES + 2 * count)

    def release_window(self) -> None:
        """Give back the reservation for a window, if there is one."""
        if self.window_budget is not None:
            self.window_budget.release(self.window_bytes)
            self.window_budget = None

    def held_bytes(
        self, running: PendingRequest | None, outbound: OutboundStream | None, *, ending: bool
    ) -> tuple[int, int]:
        """Return what is held; and of bodies whose credentials have not been found good."""
        inbound = self._inbound
        unaccepted_bytes = inbound.unaccepted_bytes
        if running is not None:
            unaccepted_bytes += running.unaccepted_bytes
            self.is_authenticated = self.is_authenticated or running.request.authenticated
        held_bytes = 0 if running is None else running.head_bytes + running.unaccepted_bytes
        if outbound is not None:
            waiting_bytes = 0 if self.window_budget is not None else outbound.waiting_bytes + self.made_bytes
            held_bytes += inbound.held_bytes + waiting_bytes
            if self._tls_bytes and waiting_bytes:
                held_bytes += _TLS_WAITING_BYTES
            if not ending and not self.is_authenticated:
                held_bytes += self._tls_bytes
        return held_bytes, unaccepted_bytes
