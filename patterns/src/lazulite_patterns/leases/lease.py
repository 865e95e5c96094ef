# Generated from lazulite_patterns/aio/leases.py. Do not edit this module: edit that one, and run `make twins`.
"""Leases, with a synchronous client."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import UnionType
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from azure.data.tables import TableClient

from lazulite_patterns.effects.calls import Call, WithHeartbeat
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.leases.blob_protocol import BlobLeaseProtocol
from lazulite_patterns.leases.protocol import Grant, LeaseLost, LeaseProtocol
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.table.session import Session, kinds_of
from lazulite_patterns.table.transaction import Transaction

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient

E = TypeVar("E")


class Lease(Generic[E]):
    """A row that one process at a time holds. Transactions of its partition can be bound to it.

    With a blob, the lease of the blob elects the holder, and the row fences the transactions of the one before. Then
    the Blob service alone decides when the lease is free: programs that know only the blob can take part, and an
    operator can break the lease. The row has no time.

    Attributes:
        client: the SDK's client, for everything else.
        key: of the row.
        seconds: for which the lease lasts after it was renewed.
        grant: what this process holds, or held last; None before.
    """

    @overload
    def __init__(
        self: "Lease[Bag]",
        client: TableClient,
        key: EntityKey,
        *,
        blob: "tuple[ContainerClient, str] | None" = ...,
        seconds: float = ...,
        holder: str = ...,
        policy: Policy = ...,
        runtime: Runtime | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        client: TableClient,
        key: EntityKey,
        kinds: type[E] | UnionType,
        *,
        blob: "tuple[ContainerClient, str] | None" = ...,
        seconds: float = ...,
        holder: str = ...,
        policy: Policy = ...,
        runtime: Runtime | None = ...,
    ) -> None: ...
    def __init__(
        self,
        client: TableClient,
        key: EntityKey,
        kinds: type[E] | UnionType | None = None,
        *,
        blob: "tuple[ContainerClient, str] | None" = None,
        seconds: float = 30,
        holder: str = "",
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        runtime: Runtime | None = None,
    ) -> None:
        """Take the SDK's client.

        Args:
            client: of the table. Its own retries are not used.
            key: of the row, in the partition of the entities that the lease is about.
            kinds: the classes of entities in guarded transactions; None for property bags.
            blob: the client of a container, and the name of a blob in it, which is created if it is absent. The
                client's own retries are not used. None for a lease by the row alone.
            seconds: for which the lease lasts after it was renewed: 3 at least, as the service's time has no fractions.
                With a blob a whole number from 15 to 60, by the service's limits.
            holder: a name for persons, such as that of the host.
            policy: deadlines and marks. No deadline is later than the lease lasts.
            runtime: clock, randomness and failpoints, for tests.
        """
        self.client = client
        self.key = key
        self.seconds = seconds
        self.grant: Grant | None = None
        bounded = replace(policy, deadline_seconds=min(policy.deadline_seconds, seconds))
        row = (client.table_name, key, seconds, holder, bounded)
        if blob is None:
            self._protocol, containers = LeaseProtocol(*row), {}
        else:
            container, name = blob
            self._protocol = BlobLeaseProtocol(*row, container.container_name, name)
            containers = {container.container_name: container}
        self._driver = Driver({client.table_name: client}, runtime, containers=containers)
        self._session: Session[E] = Session(client.table_name, kinds_of(kinds), bounded)

    @property
    def held(self) -> bool:
        """Whether no other process can have the lease now, by the clock of this process."""
        grant = self.grant
        return grant is not None and not grant.lost and self._driver.runtime.clock() < grant.until_seconds

    def acquire(self) -> Grant:
        """Take the lease, if it is free, and return what was granted.

        Raises:
            LeaseTaken: another process has it.
            OutcomeUnknown: it is not known whether it was taken. If it was, it is free after its seconds.
        """
        self.grant = self._driver.run(self._protocol.acquire())
        return self.grant

    def renew(self) -> None:
        """Make the lease last from now.

        Raises:
            LeaseLost: another process has it.
            OutcomeUnknown: the service does not answer. The lease lasts as before, and may be renewed again.
            Unavailable: the same.
        """
        self._driver.run(self._protocol.renew(self._granted()))

    def release(self) -> None:
        """Free the lease, if this process has it."""
        if self.grant is not None and not self.grant.lost:
            self._driver.run(self._protocol.release(self.grant))

    @contextmanager
    def guard(self) -> Iterator[Transaction[E]]:
        """Collect writes, and do them in one transaction at the end of the block, if the lease holds at that instant.

        Raises:
            LeaseLost: another process has the lease. Nothing was written.
            Conflict: an entity is not as expected. Nothing was written.
            OutcomeUnknown: it is not known whether it was done.
        """
        transaction = Transaction(self._session, self.key.partition_key)
        yield transaction
        self._driver.run(self._protocol.guard(self._granted(), transaction.planned))

    def run(self, work: "Callable[[Lease[E]], object]") -> None:
        """Take the lease, call a function with it, and free it. Meanwhile it is renewed, at a third of its seconds.

        Args:
            work: should end when `held` is not true any more, and write by `guard`.

        Raises:
            LeaseTaken: another process has the lease. The function was not called.
        """
        self.acquire()
        calling = perform(Call(work, (self,)))
        try:
            self._driver.run(perform(WithHeartbeat(calling, self._renewal, self.seconds / 3)))
        finally:
            self.release()

    def _renewal(self) -> Protocol[None]:
        return self._protocol.renew(self._granted())

    def _granted(self) -> Grant:
        if self.grant is None:
            raise LeaseLost(f"{self.key} was not acquired")
        return self.grant
