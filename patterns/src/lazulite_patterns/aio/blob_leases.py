"""Leases of a blob, with an asynchronous client."""

from dataclasses import replace
from types import UnionType
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from azure.data.tables.aio import TableClient

from lazulite_patterns.aio.driver import Driver
from lazulite_patterns.aio.leases import Lease
from lazulite_patterns.effects.ambient import Ambient
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.leases.blob_protocol import BlobLeaseProtocol
from lazulite_patterns.outcomes.retries import Policy

if TYPE_CHECKING:
    from azure.storage.blob.aio import ContainerClient

E = TypeVar("E")


class BlobLease(Lease[E], Generic[E]):
    """A blob that one process at a time has the lease of, and a row that fences the transactions of its partition.

    The Blob service alone decides when the lease is free. Programs that know only the blob can take part, and an
    operator can break the lease. The row has no time: its holder's transactions fail once another process took it.

    Attributes:
        container: the SDK's client of the container.
        blob: the name of the blob. It is created if it is absent.
    """

    @overload
    def __init__(
        self: "BlobLease[Bag]",
        client: TableClient,
        key: EntityKey,
        *,
        container: "ContainerClient",
        blob: str,
        seconds: int = ...,
        holder: str = ...,
        policy: Policy = ...,
        ambient: Ambient | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        client: TableClient,
        key: EntityKey,
        kinds: type[E] | UnionType,
        *,
        container: "ContainerClient",
        blob: str,
        seconds: int = ...,
        holder: str = ...,
        policy: Policy = ...,
        ambient: Ambient | None = ...,
    ) -> None: ...
    def __init__(  # noqa: PLR0913 - those of a lease by a row, and the blob
        self,
        client: TableClient,
        key: EntityKey,
        kinds: type[E] | UnionType | None = None,
        *,
        container: "ContainerClient",
        blob: str,
        seconds: int = 30,
        holder: str = "",
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        ambient: Ambient | None = None,
    ) -> None:
        """Take the SDK's clients.

        Args:
            client: of the table. Its own retries are not used.
            key: of the row, in the partition of the entities that the lease is about.
            kinds: the classes of entities in guarded transactions; None for property bags.
            container: the client of the container. Its own retries are not used.
            blob: the name of the blob.
            seconds: for which the lease lasts after it was renewed: 15 to 60, by the service's limits.
            holder: a name for persons, such as that of the host.
            policy: deadlines and marks. No deadline is later than the lease lasts.
            ambient: clock, randomness and failpoints, for tests.
        """
        if not 15 <= seconds <= 60:
            raise ValueError("the lease of a blob lasts for 15 to 60 seconds")
        super().__init__(client, key, kinds, seconds=seconds, holder=holder, policy=policy, ambient=ambient)  # type: ignore[arg-type]
        self.container = container
        self.blob = blob
        bounded = replace(policy, deadline_seconds=min(policy.deadline_seconds, seconds))
        name = container.container_name
        self._driver = Driver({client.table_name: client}, ambient, containers={name: container})
        self._protocol = BlobLeaseProtocol(client.table_name, key, seconds, holder, bounded, name, blob)
