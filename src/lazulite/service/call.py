"""One request on its way through a service, once it is authenticated: the part that all services share.

Invariant: a `ServiceCall` exists only for a request with valid credentials; the kernel checks the permission that its
route requires before the operation runs.
"""

import math
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Generic, Protocol, TypeVar

from lazulite.auth.delegation.store import DelegationStore
from lazulite.auth.grant import Grant, Requirement, authorize
from lazulite.engine.contract import Clock, Engine
from lazulite.engine.remote.messages import CacheInvalidation, Procedure
from lazulite.protocol.addressing import Address
from lazulite.protocol.content_md5 import checked_chunks
from lazulite.protocol.message import Request, RequestRecord
from lazulite.records.catalog import NamedResource, ResourceCatalog, StoredAccessPolicy
from lazulite.records.spaces import DELEGATIONS, SERVICE_PROPERTIES
from lazulite.service.properties import PropertiesStore
from lazulite.service.signed_identifiers import format_time


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Bounds of one page of a query."""

    page_rows: int = 1000
    page_bytes: int = 16 * 1024 * 1024
    """Entities are not added to a page that has grown past this."""
    page_seconds: float = 5.0
    slice_seconds: float = 0.001
    """How long a page, a batch or the reading of a body may hold the event loop before others continue."""
    lookahead_rows: int = 1000
    """Rows looked at after a full page, to tell whether any other matches; past that a continuation is given."""


class ServiceResource(Protocol):
    """The resource that a request addresses; each service has its own kinds."""

    @property
    def kind(self) -> object:
        """Return the kind, as the service's routes name it."""
        ...

    @property
    def name(self) -> str:
        """Return the name that a service SAS is compared with; "" for the service itself."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys that `ServiceDefinition.keyed_path` finds in the path of a usual spelling; or none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    """Everything that the operations of any service work with, handed in once."""

    engine: Engine
    properties: PropertiesStore
    delegations: DelegationStore
    clock: Clock
    monotonic: Callable[[], float]
    """Seconds, never stepping back."""
    random: Random
    limits: QueryLimits

    def time(self) -> str:
        """Return the time now as errors carry it."""
        return format_time(self.clock())

    def invalidations(self) -> Mapping[int, CacheInvalidation]:
        """Return the caches of rows by space; each is invalidated when another process changes a row."""
        return {SERVICE_PROPERTIES: self.properties.invalidation, DELEGATIONS: self.delegations.invalidation}

    async def policies(self, account: str, resource: str) -> "tuple[StoredAccessPolicy, ...]":  # noqa: ARG002 - for services that have some
        """Return the stored access policies of a resource; a service without policies has none."""
        return ()

    def procedures(self) -> Mapping[str, Procedure]:
        """Return the procedures that the service's workers call at the primary; see `ServiceDependencies.primary`."""
        return {}

    async def start(self) -> None:
        """Finish what a crash interrupted."""

    async def maintain(self) -> None:
        """Do the work that is due without a request; see `ServiceDefinition.maintain_seconds`."""


ContextT_co = TypeVar("ContextT_co", bound=ServiceContext, covariant=True)
ResourceT_co = TypeVar("ResourceT_co", bound=ServiceResource, covariant=True)


@dataclass(slots=True)
class ServiceCall(Generic[ContextT_co, ResourceT_co]):
    """An authenticated request and its target."""

    context: ContextT_co
    request: Request
    address: Address
    parameters: Mapping[str, str]
    version: str
    grant: Grant
    resource: ResourceT_co
    method: str
    """The effective method, tunnelling undone."""
    deadline: float = math.inf
    """When a page must be answered, on the monotonic clock; infinite for a route without pages."""
    body_bytes_max: int = 0
    """The most bytes of the body, by the route."""

    @property
    def account(self) -> str:
        """The account's name."""
        return self.address.account

    @property
    def record(self) -> RequestRecord:
        """The facts of the request for logs."""
        return self.request.record

    def body_chunks(self) -> AsyncIterator[bytes]:
        """Accept the body of a route that streams, and yield it in chunks.

        Raises:
            ServiceError: it is too long, too slow, or not the one of its Content-MD5.
            ClientDisconnectedError: it never became whole. In any case, what was yielded is to be discarded.
        """
        return checked_chunks(self.request, self.body_bytes_max)

    def admit(self, requirement: Requirement | None) -> None:
        """Reject a request by what its route requires, and by what its own headers require beside that.

        Raises:
            ServiceError: as `authorize`.
        """
        self.authorize(requirement)

    def authorize(self, requirement: Requirement | None) -> None:
        """Reject an operation that the credentials do not permit; None requires nothing.

        Raises:
            ServiceError: 403 (404 for old SAS versions).
        """
        if requirement is not None:
            authorize(self.grant, requirement, self.resource.name)


NamedResourceT = TypeVar("NamedResourceT", bound=NamedResource)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogContext(ServiceContext, Generic[NamedResourceT]):
    """What the operations of such a service work with; a service adds its own."""

    catalog: ResourceCatalog[NamedResourceT]

    def invalidations(self) -> Mapping[int, CacheInvalidation]:
        """See `ServiceContext`."""
        return {**ServiceContext.invalidations(self), self.catalog.space: self.catalog.invalidation}

    async def policies(self, account: str, resource: str) -> tuple[StoredAccessPolicy, ...]:
        """Return the stored access policies of a resource; none if it does not exist."""
        return await self.catalog.policies(account, resource)

    async def start(self) -> None:
        """Empty the spaces of resources whose deletion a crash interrupted."""
        await self.catalog.finish_drops()
