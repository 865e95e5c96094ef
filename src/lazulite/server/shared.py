"""What the connections of one server have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lazulite.protocol.message import Service
from lazulite.server.debt import Estate
from lazulite.server.exchange_log import ExchangeLog
from lazulite.server.incoming import Incoming
from lazulite.server.lane import Lane
from lazulite.server.limits import Limits
from lazulite.server.outbox import Outbox

if TYPE_CHECKING:
    from lazulite.server.http1 import Connection


@dataclass(slots=True)
class Shared:
    """Handed to every connection of a server.

    `new_request_id`: never the same twice. `clock`: monotonic seconds. `logs`: told of every exchange. `connections`:
    those open and those whose request still runs. `leaving`: no connection is kept alive after an answer. `draining`:
    nor one without a request. `on_last`: called when the last connection has gone. `buffered_bytes`: of request bodies,
    held now. `lane`: what is slow goes by it. `estate`: what connections that have ended owe to it.
    """

    service: Service
    limits: Limits
    new_request_id: Callable[[], str]
    clock: Callable[[], float]
    logs: Sequence[ExchangeLog] = ()
    connections: set["Connection"] = field(default_factory=set)
    leaving: bool = False
    draining: bool = False
    buffered_bytes: int = 0
    lane: Lane = field(default_factory=Lane)
    estate: Estate = field(init=False)
    outbox: Outbox = field(init=False)

    def __post_init__(self) -> None:
        self.outbox = Outbox(self.clock)
        self.estate = Estate(self.clock)

    on_last: Callable[[], None] = lambda: None

    def reserve(self, count: int) -> bool:
        """Account for bytes of a body about to be held; False if there is no room for them."""
        if self.buffered_bytes + count > self.limits.buffered_bytes:
            return False
        self.buffered_bytes += count
        return True

    def release(self, incoming: Incoming) -> None:
        """Give back what was reserved for a request's body, which nobody will look at any more."""
        self.buffered_bytes -= incoming.reserved_bytes
        incoming.reserved_bytes = 0

    def forget(self, connection: "Connection") -> None:
        """Take a connection off the list."""
        self.connections.discard(connection)
        if not self.connections:
            self.on_last()
