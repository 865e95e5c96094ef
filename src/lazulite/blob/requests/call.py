"""One request on its way through the Blob service, once it is authenticated, and the service that serves it.

Some requests make others: the source of a copy, the parts of a batch (`InnerService`).
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from lazulite.auth.accounts.account import AccountDirectory
from lazulite.auth.accounts.switches import DEFAULTS, Switches
from lazulite.auth.grant import Grant, Requirement, permits
from lazulite.blob.auth.requirements import READ_TAGS
from lazulite.blob.model.blob import Blob
from lazulite.blob.model.retention import Retention
from lazulite.blob.model.rows import CURRENT, LEDGER, snapshot_row, version_row
from lazulite.blob.model.transaction import Decide, MissingRowError, Transaction
from lazulite.blob.requests.headers import IF_TAGS, reject_unsupported
from lazulite.blob.requests.preconditions import NO_PRECONDITIONS, Preconditions
from lazulite.blob.resource import LOGS, Kind, Resource
from lazulite.blob.storage.catalog import Catalog, Container
from lazulite.blob.storage.expiry import remove_expired
from lazulite.blob.storage.garbage import Changes, Garbage, referenced_contents
from lazulite.blob.storage.partitions import Partitions
from lazulite.blob.storage.uploads import Uploads, day_of
from lazulite.blob.times import read_time
from lazulite.engine.content.contract import ContentStore
from lazulite.engine.contract import UNKNOWN, Clock, Unknown, Waiter
from lazulite.partitions.live import Charge
from lazulite.protocol.addressing import Address, Addressing
from lazulite.protocol.clock import until_9999
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.protocol.steps import Steps
from lazulite.protocol.version import RequestVersion
from lazulite.service.definition import ServiceDependencies
from lazulite.service.fetching import FetchSource
from lazulite.service.routing import CatalogContext, Keys, ServiceCall, component_of
from lazulite.service.time_slice import TimeSlice

CallT_co = TypeVar("CallT_co", covariant=True)
_OF_LOGS = frozenset(
    {
        *("ListBlobs", "FindBlobsByTagsInContainer", "GetContainerProperties", "GetContainerMetadata"),
        *("GetContainerACL", "GetBlob", "GetBlobProperties", "GetBlobMetadata", "GetBlobTags", "GetBlockList"),
        *("GetAccountInformation", "DeleteBlob"),
    }
)
"""The operations that the container `$logs` and its blobs have (reference §18.1)."""


class Kernel(Protocol[CallT_co]):
    """What a service does with a request."""

    def respond_to_part(self, request: Request, version: RequestVersion) -> Awaitable[Response]:
        """Respond to a request that a version governs."""
        ...

    def reject(self, request: Request, error: ServiceError) -> Response:
        """Return the response to a request that does not run."""
        ...

    def admit(self, request: Request, grant: Grant | None = None) -> Awaitable[CallT_co]:
        """Return a request as a call that does not run. Raises `ServiceError`."""
        ...


class InnerService(Generic[CallT_co]):
    """The kernel of the service, for its own operations; it is given once the service is made."""

    def __init__(self) -> None:
        self._kernel: Kernel[CallT_co] | None = None

    def begin(self, kernel: Kernel[CallT_co]) -> None:
        """Take the kernel."""
        self._kernel = kernel

    @property
    def kernel(self) -> Kernel[CallT_co]:
        """The kernel. Raises `ValueError` before it is given."""
        if self._kernel is None:
            raise ValueError("the service is not made yet")
        return self._kernel


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(CatalogContext[Container]):
    """Everything that the operations of the Blob service work with."""

    catalog: Catalog
    present: Clock
    """The time by which leases end: that of the database, if several processes share one."""
    partitions: Partitions
    contents: ContentStore
    garbage: Garbage
    changes: Changes
    uploads: Uploads
    accounts: AccountDirectory
    addressing: Addressing
    inner: "InnerService[Call]"
    fetch_source: FetchSource | None
    """Reads the sources of copies on other servers; None: there are none."""
    owns_store: bool
    """Whether this process has the store, and not a primary."""

    async def start(self) -> None:
        """Finish what a crash interrupted."""
        await CatalogContext.start(self)
        if self.owns_store:
            await self.contents.sweep(lambda owner: referenced_contents(self.engine, owner))
            self.garbage.begin_search()

    async def maintain(self) -> None:
        """Remove what was kept long enough; give up uploads and lists that were not finished in time."""
        await self.catalog.remove_expired()
        await remove_expired(self.partitions, self.uploads, self.changes, day_of(self.clock()))


def make_context(dependencies: ServiceDependencies) -> Context:
    """Return the context of the Blob service.

    Raises:
        ValueError: the process has no store for contents.
    """
    engine, contents = dependencies.engine, dependencies.contents
    if contents is None:
        raise ValueError("the Blob service needs a store for contents")
    shared = dependencies.shared("blob")
    present = None if dependencies.present is None else until_9999(dependencies.present)
    partitions = Partitions(engine, shared["clock"], present=present)
    garbage = Garbage(engine, contents, partitions, shared["clock"])
    return Context(
        **shared,
        catalog=Catalog(engine, shared["clock"], contents, dependencies.ttl),
        present=present or shared["clock"],
        partitions=partitions,
        contents=contents,
        garbage=garbage,
        changes=Changes(partitions, garbage),
        uploads=Uploads(engine),
        accounts=dependencies.accounts,
        addressing=dependencies.addressing,
        inner=InnerService(),
        fetch_source=dependencies.fetch_source,
        owns_store=dependencies.primary is None,
    )


class FoundBlob(NamedTuple):
    """What a request addresses."""

    container: Container
    row: str
    """The row that has the blob, see `Partitions.locate`."""
    blob: Blob
    """The blob, snapshot or version."""


@dataclass(slots=True)
class Call(ServiceCall[Context, Resource]):
    """An authenticated request of the Blob service."""

    preconditions: Preconditions = NO_PRECONDITIONS
    """Its conditional headers and lease id, as far as its route knows them."""

    def charge(self) -> Charge:
        """See `ServiceCall`: a blob, which is a partition; its snapshots and versions are of it."""
        kind, container, blob = self.resource
        return Charge(self.account, "blob", container, blob if kind is Kind.BLOB else None)

    def renewed(self, request: Request, keys: Keys, parameter: str) -> "Call":
        """Return the call of another request with the same cache key (`service.plans`), without its preconditions.

        Args:
            request: the request.
            keys: the blob, if the path of this call has its name as a key; and the value of the parameter.
            parameter: the query parameter that varies; "": none does.
        """
        resource, parameters = self.resource, self.parameters
        if resource.keys:
            resource = Resource(resource.kind, resource.container, keys[0])
        if parameter:
            parameters = {**parameters, parameter: keys[-1]}
        return Call(
            self.context,
            request,
            self.address,
            parameters,
            self.version,
            self.grant,
            resource,
            self.method,
            self.deadline,
            self.body_bytes_max,
        )

    def admit(self, requirement: Requirement | None) -> None:
        """See `ServiceCall.admit`. A condition on tags tells of them, so it needs the permission to read them.

        Of the logs, only what Storage Analytics allows is admitted.
        """
        if self.resource.container == LOGS and self.record.operation not in _OF_LOGS:
            raise ServiceError("InsufficientAccountPermissions")
        ServiceCall.admit(self, requirement)
        if IF_TAGS in self.request.headers and self.resource.kind is Kind.BLOB:
            self.authorize(READ_TAGS)

    def hide_tags(self, blob: Blob) -> Blob:
        """Return a blob as the request may see it: without tags, if it may not read them."""
        if not blob.tags or permits(self.grant, READ_TAGS, self.resource.name):
            return blob
        return blob._replace(tags=())

    def container_now(self) -> Container | None:
        """Return the addressed container from the cache; None if it is not there."""
        return self.context.catalog.cached(self.account, self.resource.container)

    async def container(self) -> Container:
        """Return the addressed container, perhaps from the cache. Raises `ContainerNotFound`."""
        return self.container_now() or await self.context.catalog.require(self.account, self.resource.container)

    @property
    def row(self) -> str:
        """The row that the request addresses: the current blob, a snapshot or a version.

        The id of a version may be that of the current one: `locate` and `Transaction.row_of` tell.

        Raises:
            ServiceError: `InvalidQueryParameterValue`.
        """
        snapshot, version = self.parameters.get("snapshot"), self.parameters.get("versionid")
        if snapshot and version:
            raise ServiceError("InvalidQueryParameterValue", details=[("QueryParameterName", "versionid")])
        if snapshot:
            return snapshot_row(read_time("snapshot", snapshot))
        return version_row(read_time("versionid", version)) if version else CURRENT

    async def commit(self, container: Container, decide: Decide[T], *rows: str) -> T:
        """Change the addressed blob; return the result of `decide`. See `Changes.commit`."""
        return await self.context.changes.commit((container.space, self.resource.blob), decide, *rows)

    def commit_now(self, container: Container, decide: Decide[T], waiter: Waiter, *rows: str) -> T | Unknown:
        """Change the addressed blob in this step; return the result of `decide`, or `UNKNOWN`: `Engine.commit_now`."""
        return self.context.changes.commit_now((container.space, self.resource.blob), decide, waiter, *rows)

    async def decide_early(self, container: Container, decide: Callable[[Transaction], object], *rows: str) -> None:
        """Reject a request by what is stored, before its body comes or anything is written. The commit decides again.

        Args:
            container: that the request addresses.
            decide: rejects the request.
            rows: that `decide` needs, beside the ledger and the current blob. If it needs others, nothing is rejected.

        Raises:
            ServiceError: an error of `decide`.
        """
        rows = (LEDGER, CURRENT, *rows)
        stored = [await self.context.engine.get(container.space, self.resource.blob, row) for row in rows]
        with suppress(MissingRowError):
            decide(Transaction(rows, stored, self.context.clock(), self.context.present()))

    @property
    def switches(self) -> Switches:
        """What the account lets its blobs do."""
        account = self.context.accounts.get(self.account)
        return DEFAULTS if account is None else account.switches

    def retention_now(self) -> Retention | None:
        """Return what `retention` returns; None if it has to wait. Nothing of the logs is kept (a choice)."""
        if self.resource.container == LOGS:
            return Retention()
        properties = self.context.properties.cached(self.account)
        if properties is None:
            return None
        policy = properties.blob.delete_retention
        return None if policy.enabled and policy.days else Retention(self.switches.versioning)

    async def retention(self) -> Retention:
        """Return what the account keeps of overwritten and deleted blobs, before such a blob is kept.

        Raises:
            ServiceError: `ContainerNotFound`.
        """
        retention = self.retention_now()
        if retention is not None:
            return retention
        policy = (await self.context.properties.get(self.account)).blob.delete_retention
        if not (policy.enabled and policy.days):
            return Retention(self.switches.versioning)
        retention = Retention(self.switches.versioning, policy.days, policy.allow_permanent_delete)
        container = await self.container()
        day = day_of(retention.expiry(self.context.clock())) + 1
        await self.context.uploads.schedule(day, (container.space, self.resource.blob))
        return retention

    def locate_now(self) -> FoundBlob | None:
        """Return what `locate` returns; None if it has to wait, or if there is no such blob."""
        container = self.container_now()
        if container is None:
            return None
        row = self.row
        blob = self.context.partitions.get_now(container.space, self.resource.blob, row)
        return None if blob is UNKNOWN or blob is None or blob.deleted else FoundBlob(container, row, blob)

    async def locate(self) -> FoundBlob:
        """Return what the request addresses: a blob, a snapshot or a version; see `Partitions.locate`.

        Raises:
            ServiceError: `ContainerNotFound`, `BlobNotFound`, or as `row`.
        """
        container = await self.container()
        row, blob = await self.context.partitions.locate(container.space, self.resource.blob, self.row)
        if blob is None:
            raise ServiceError("BlobNotFound")
        return FoundBlob(container, row, blob)

    async def in_slices(self, steps: Steps[T]) -> T:
        """Run work in steps, others having the loop in between."""
        return await TimeSlice(self.context.limits.slice_seconds, self.context.monotonic).run(steps)


def make_call(
    context: Context,
    request: Request,
    address: Address,
    parameters: Mapping[str, str],
    version: str,
    grant: Grant,
    resource: Resource,
    method: str,
) -> Call:
    """Return a call.

    Raises:
        ServiceError: `UnsupportedHeader`, or as `Resource.check`.
    """
    reject_unsupported(request.headers, component_of(parameters))
    resource.check(method, parameters)
    return Call(context, request, address, parameters, version, grant, resource, method)
