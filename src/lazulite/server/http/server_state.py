"""What the connections of one server have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lazulite.protocol.message import Service
from lazulite.server.admission.body_budget import BodyBudget
from lazulite.server.admission.costs import Estate
from lazulite.server.admission.evicting_budget import EvictingBudget
from lazulite.server.admission.scheduler import Lane
from lazulite.server.http.pending_request import Incoming
from lazulite.server.http.write_batch import Outbox
from lazulite.server.limits import Limits
from lazulite.server.observability.exchange import ExchangeLog

if TYPE_CHECKING:
    from lazulite.server.http.connection import Connection


@dataclass(slots=True)
class Shared:
    """Handed to every connection of a server.

    `new_request_id`: never the same twice. `clock`: monotonic seconds. `logs`: told of every exchange. `connections`:
    those open and those whose request still runs. `leaving`: no connection is kept alive after an answer. `draining`:
    nor one without a request. `on_last`: called when the last connection has gone. `bodies`: memory for bodies of
    requests whose credentials were found good. `unaccepted`: memory for those of others. `unauthenticated`: memory for
    all buffers of connections that have shown no good credentials yet. `lane`: what is slow goes by it. `estate`: what
    connections that have ended owe to it.
    """

    service: Service
    limits: Limits
    new_request_id: Callable[[], str]
    clock: Callable[[], float]
    logs: Sequence[ExchangeLog] = ()
    connections: set["Connection"] = field(default_factory=set)
    leaving: bool = False
    draining: bool = False
    lane: Lane = field(default_factory=Lane)
    bodies: BodyBudget = field(init=False)
    unaccepted: EvictingBudget = field(init=False)
    unauthenticated: EvictingBudget = field(init=False)
    estate: Estate = field(init=False)
    outbox: Outbox = field(init=False)

    def __post_init__(self) -> None:
        self.bodies = BodyBudget(self.limits.buffered_bytes)
        self.unaccepted = EvictingBudget(self.limits.unaccepted_body_bytes)
        self.unauthenticated = EvictingBudget(self.limits.unauthenticated_bytes)
        self.outbox = Outbox(self.clock)
        self.estate = Estate(self.clock)

    on_last: Callable[[], None] = lambda: None

    @property
    def buffered_bytes(self) -> int:
        """Of request bodies: held, or reserved."""
        return self.bodies.held_bytes + self.unaccepted.held_bytes

    def release(self, incoming: Incoming) -> None:
        """Give back what was reserved for a request's body, which is not looked at any more."""
        if incoming.reserved_bytes:
            self.bodies.release(incoming.reserved_bytes)
            incoming.reserved_bytes = 0

    def forget(self, connection: "Connection") -> None:
        """Take a connection off the list."""
        self.connections.discard(connection)
        if not self.connections:
            self.on_last()
