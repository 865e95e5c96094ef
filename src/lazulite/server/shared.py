"""What the connections of one server have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lazulite.protocol.message import Service
from lazulite.server.exchange_log import ExchangeLog
from lazulite.server.limits import Limits

if TYPE_CHECKING:
    from lazulite.server.http1 import Connection


@dataclass(slots=True)
class Shared:
    """Handed to every connection of a server.

    `new_request_id`: never the same twice. `clock`: monotonic seconds. `logs`: told of every exchange. `connections`:
    those open and those whose request still runs. `draining`: no connection is kept alive. `on_last`: called when the
    last connection has gone.
    """

    service: Service
    limits: Limits
    new_request_id: Callable[[], str]
    clock: Callable[[], float]
    logs: Sequence[ExchangeLog] = ()
    connections: set["Connection"] = field(default_factory=set)
    draining: bool = False
    on_last: Callable[[], None] = lambda: None

    def forget(self, connection: "Connection") -> None:
        """Take a connection off the list."""
        self.connections.discard(connection)
        if not self.connections:
            self.on_last()
