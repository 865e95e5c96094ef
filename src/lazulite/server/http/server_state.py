"""What the connections of one server have in common."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lazulite.protocol.message import Service
from lazulite.server.admission.accounts import CarriedOverCost
from lazulite.server.admission.budgets import BodyBudget, Budgets, EvictingBudget
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.http.outbound import WriteBatcher
from lazulite.server.http.states import State
from lazulite.server.http.templates import TemplateCache
from lazulite.server.http.timeouts import TimedConnection
from lazulite.server.limits import Limits
from lazulite.server.observability.exchange import ExchangeLog


class OpenConnection(TimedConnection, Protocol):
    """What the server asks of a connection."""

    def begin_drain(self) -> None:
        """End after the requests that have begun to arrive."""
        ...

    def abandon(self) -> asyncio.Task[None] | None:
        """Disconnect, cancel what runs, and return it."""
        ...


@dataclass(slots=True)
class ServerState:
    """Handed to every connection of a server.

    `new_request_id`: never the same twice. `clock`: monotonic seconds. `logs`: get every exchange. `connections`:
    those open and those whose request still runs. `stopping`: no connection is kept alive after an answer.
    `draining`: nor one without a request. `on_last`: called when the last connection has gone. `scheduler`: what is
    slow goes by it. `sleep`: waits so many seconds, for slow bodies. `budgets`: of the process; those of memory and
    of cost are fields here, too. `seconds_in`: the bound of each state. `all_templates`: None if a log reads heads.
    `templates`: these, or None while rules of faults look at each request.
    """

    service: Service
    limits: Limits
    new_request_id: Callable[[], str]
    clock: Callable[[], float]
    logs: Sequence[ExchangeLog] = ()
    connections: set["OpenConnection"] = field(default_factory=set)
    stopping: bool = False
    draining: bool = False
    scheduler: FairScheduler = field(default_factory=FairScheduler)
    budgets: Budgets = field(kw_only=True)
    bodies: BodyBudget = field(init=False)
    unaccepted: EvictingBudget = field(init=False)
    unauthenticated: EvictingBudget = field(init=False)
    authenticated: EvictingBudget = field(init=False)
    carried_over: CarriedOverCost = field(init=False)
    write_batcher: WriteBatcher = field(init=False)
    seconds_in: Mapping[State, float] = field(init=False)
    all_templates: TemplateCache | None = field(init=False)
    templates: TemplateCache | None = field(init=False)

    def __post_init__(self) -> None:
        self.bodies = self.budgets.bodies
        self.unaccepted = self.budgets.unaccepted
        self.unauthenticated = self.budgets.unauthenticated
        self.authenticated = self.budgets.authenticated
        self.carried_over = self.budgets.carried_over
        self.write_batcher = WriteBatcher(self.clock)
        self.seconds_in = {state: getattr(self.limits, state.limit) for state in State}
        self.all_templates = None if any(log.reads_heads for log in self.logs) else TemplateCache()
        self.templates = self.all_templates

    on_last: Callable[[], None] = lambda: None
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def allow_templates(self, *, allowed: bool) -> None:
        """Answer requests by templates, or not, while something looks at each request."""
        self.templates = self.all_templates if allowed else None

    def add(self, connection: "OpenConnection") -> int:
        """Put a connection on the list; return by how many the process has too many now."""
        self.connections.add(connection)
        self.budgets.connection_count += 1
        return self.budgets.connection_count - self.limits.connections

    def remove(self, connection: "OpenConnection") -> None:
        """Take a connection off the list."""
        if connection in self.connections:
            self.connections.remove(connection)
            self.budgets.connection_count -= 1
        if not self.connections:
            self.on_last()
