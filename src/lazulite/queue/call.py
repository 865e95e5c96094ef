"""One request on its way through the Queue service, once it is authenticated."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from lazulite.engine.contract import SpaceDroppedError
from lazulite.engine.remote.messages import Procedure
from lazulite.partitions.live import Charge
from lazulite.protocol.clock import steady, until_9999
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps
from lazulite.queue.catalog import Catalog, Queue
from lazulite.queue.lookahead import everywhere
from lazulite.queue.messages import MESSAGES, Messages
from lazulite.queue.payload import read_text
from lazulite.queue.processes import Processes
from lazulite.queue.resource import Resource
from lazulite.service.definition import ServiceDependencies
from lazulite.service.routing import CatalogContext, ServiceCall
from lazulite.service.time_slice import TimeSlice

SHARDS_OF_DATABASE = 16
"""The shards of a queue that several processes may serve."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(CatalogContext[Queue]):
    """Everything that the operations of the Queue service work with."""

    catalog: Catalog
    messages: Messages
    processes: Processes | None = None
    """The processes of a database; None with a location, which one process has."""
    alone: bool = False
    """Whether no other process changes messages, so that `messages` has methods that do not wait."""

    def procedures(self) -> Mapping[str, Procedure]:
        """See `ServiceContext`."""
        return MESSAGES.procedures(self.messages)

    async def start(self) -> None:
        """Finish what a crash interrupted, and get to know the other processes."""
        await CatalogContext.start(self)
        if self.processes is not None:
            await self.processes.announce()

    async def maintain(self) -> None:
        """Keep to know the other processes; remove expired messages."""
        if self.processes is not None:
            await self.processes.announce()
        await self.messages.remove_expired()


def make_context(dependencies: ServiceDependencies) -> Context:
    """Return the context of the Queue service."""
    engine, random, ttl = dependencies.engine, dependencies.random, dependencies.ttl
    shared = dependencies.shared("queue")
    present = until_9999(dependencies.present or steady(dependencies.clock))
    processes = None if ttl is None else Processes(engine, present, random)
    homes = everywhere if processes is None else processes.homes
    return Context(
        **shared,
        catalog=Catalog(engine, 1 if processes is None else SHARDS_OF_DATABASE, ttl),
        messages=dependencies.at_store(
            MESSAGES, lambda: Messages(engine, present, random, alone=processes is None, homes=homes)
        ),
        processes=processes,
        alone=processes is None and dependencies.primary is None,
    )


@dataclass(slots=True)
class Call(ServiceCall[Context, Resource]):
    """An authenticated request of the Queue service."""

    def charge(self) -> Charge:
        """See `ServiceCall`: the queue, which is a partition, by messages."""
        queue = self.resource.queue
        return Charge(self.account, "queue", queue, "" if queue else None, counts_rows=bool(queue))

    async def read_text(self, body: bytes) -> bytes:
        """Return the text of the message in a request's body. Raises as `payload.read_text`."""
        return await self._in_slices(read_text(body, self.version))

    async def write(self, parts: Steps[list[bytes]]) -> bytes:
        """Return a body whose parts are made in steps."""
        return b"".join(await self._in_slices(parts))

    async def _in_slices(self, steps: Steps[T]) -> T:
        return await TimeSlice(self.context.limits.slice_seconds, self.context.monotonic).run(steps)

    async def with_queue(self, run: Callable[[Queue], Awaitable[T]]) -> T:
        """Run an operation on the addressed queue, and again each time that the queue was cleared meanwhile.

        Raises:
            ServiceError: `QueueNotFound`, or an error of the operation.
        """
        catalog, account, name = self.context.catalog, self.address.account, self.resource.queue
        queue = catalog.cached(account, name) or await catalog.require(account, name)
        while True:
            try:
                return await run(queue)
            except SpaceDroppedError:
                cleared = await catalog.read(account, name)
            if cleared is None or cleared.space == queue.space:
                raise ServiceError("QueueNotFound")
            queue = cleared
