"""One request on its way through the Table service, once it is authenticated."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lazulite.auth.grant import Requirement
from lazulite.partitions.live import Charge
from lazulite.protocol.errors import AuthorityError
from lazulite.service.definition import ServiceDependencies
from lazulite.service.routing import CatalogContext, ServiceCall
from lazulite.service.time_slice import TimeSlice
from lazulite.table.catalog import SYSTEM, Catalog, Table
from lazulite.table.credentials import TableScope
from lazulite.table.expiry.sweep import ExpirySweep
from lazulite.table.payload.formats import Format, Reader, negotiate, reader_of
from lazulite.table.payload.interfaces import EntityWriter, TableWriter
from lazulite.table.payload.json_pattern import PatternCache
from lazulite.table.resource import Kind, Resource
from lazulite.table.versions import odata_version
from lazulite.traffic.meter import Resource as MeteredResource


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(CatalogContext[Table]):
    """Everything that the operations of the Table service work with."""

    catalog: Catalog
    patterns: PatternCache = field(default_factory=PatternCache)

    async def maintain(self) -> None:
        """Remove the entities that have expired."""
        await ExpirySweep(self.engine, self.clock, self.monotonic).run()


def make_context(dependencies: ServiceDependencies) -> Context:
    """Return the context of the Table service."""
    return Context(**dependencies.shared("table"), catalog=Catalog(dependencies.engine, dependencies.ttl))


def metered_table(call: "Call") -> MeteredResource:
    """Return the addressed table, as the meter names it: its name has the same letters for all requests."""
    return MeteredResource(call.account, "table", call.resource.table.lower())


@dataclass(slots=True)
class Call(ServiceCall[Context, Resource]):
    """An authenticated request of the Table service."""

    in_batch: bool = False
    _odata: int = field(default=0, init=False, repr=False)

    def charge_at(self, table: Table, partition: str | None, start: str = "") -> Charge:
        """Return what the gate charges the request for: a partition of the table, or several from `start` on."""
        return Charge(self.account, "table", self.resource.table.lower(), partition, start, table.space)

    @property
    def odata(self) -> int:
        """The OData version of the request, resolved once."""
        if not self._odata:
            self._odata = odata_version(self.version, self.request.headers)
        return self._odata

    def authorize(self, requirement: Requirement | None) -> None:
        """Reject what the credentials do not permit, and what changes a table of metrics: clients read and trim those.

        Raises:
            ServiceError: 403 (404 for old SAS versions). *Unverified*: the code for a table of metrics.
        """
        ServiceCall.authorize(self, requirement)
        if self.resource.table.startswith(SYSTEM) and not self._is_of_metrics:
            raise AuthorityError("InsufficientAccountPermissions")

    @property
    def _is_of_metrics(self) -> bool:
        """Whether a table of metrics has the operation."""
        return self.method in ("GET", "HEAD") or (self.method == "DELETE" and self.resource.kind is Kind.ENTITY)

    def require_key(self, partition_key: str, row_key: str) -> None:
        """Reject an entity outside the key range of a SAS.

        Raises:
            ServiceError: `AuthorizationFailure`.
        """
        scope = self.grant.scope
        if isinstance(scope, TableScope) and not scope.allows_key(partition_key, row_key):
            raise self.grant.rejection("AuthorizationFailure")

    @property
    def has_key_range(self) -> bool:
        """Whether the credentials reach some of the table's entities only."""
        scope = self.grant.scope
        return isinstance(scope, TableScope) and scope.key_range is not None

    def format(self) -> Format:
        """Return the format of the answer.

        Raises:
            ServiceError: 415.
        """
        return negotiate(self.version, self.request.headers, self.parameters.get("$format", ""), self.odata)

    def entity_writer(self, wanted: Format, select: Sequence[str] | None = None, text: str = "") -> EntityWriter:
        """Return what spells the entities of the addressed table; `select` and its raw `text` as `$select` has them."""
        address = self.address
        return wanted.entity_writer(
            address.base, address.account, self.resource.table, self.context.clock, select, text
        )

    def table_writer(self, wanted: Format) -> TableWriter:
        """Return what spells the account's tables."""
        return wanted.table_writer(self.address.base, self.account, self.context.clock)

    def reader(self) -> Reader:
        """Return what reads the request's body.

        Raises:
            ServiceError: 415.
        """
        return reader_of(self.version, self.request.headers, self.odata)

    def time_slice(self) -> TimeSlice:
        """Begin a time slice."""
        return TimeSlice(self.context.limits.slice_seconds, self.context.monotonic)

    async def read_table_name(self) -> str:
        """Return the table's name in the request's body.

        Raises:
            ServiceError: 415, or what is wrong with it.
        """
        return await self.time_slice().run(self.reader().table_name(self.request.body))
