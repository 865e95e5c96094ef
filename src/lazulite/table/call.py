"""One request on its way through the Table service, once it is authenticated."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from lazulite.service.call import ServiceCall, ServiceContext
from lazulite.service.time_slice import Turn
from lazulite.table.catalog import Catalog
from lazulite.table.model.edm import format_datetime7
from lazulite.table.payload.formats import Format, Reader
from lazulite.table.payload.interfaces import EntityWriter, TableWriter
from lazulite.table.payload.negotiation import negotiate, reader_of
from lazulite.table.resource import Resource
from lazulite.table.sas import TableScope


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Bounds of one page of a query."""

    page_rows: int = 1000
    page_bytes: int = 16 * 1024 * 1024
    """Entities are not added to a page that has grown past this."""
    page_seconds: float = 5.0
    turn_seconds: float = 0.001
    """How long a page, a batch or the reading of a body may hold the event loop before others get a turn."""
    lookahead_rows: int = 1000
    """Rows looked at after a full page, to tell whether any other matches; past that a continuation is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(ServiceContext):
    """Everything that the operations of the Table service work with."""

    catalog: Catalog
    random: Random
    limits: QueryLimits

    def time(self) -> str:
        """Return the time now as errors carry it."""
        return format_datetime7(self.clock())


@dataclass(slots=True)
class Call(ServiceCall[Context, Resource]):
    """An authenticated request of the Table service."""

    in_batch: bool = False

    def require_key(self, partition_key: str, row_key: str) -> None:
        """Refuse an entity outside the key range of a SAS.

        Raises:
            ServiceError: `AuthorizationFailure`.
        """
        scope = self.grant.scope
        if isinstance(scope, TableScope) and not scope.allows_key(partition_key, row_key):
            raise self.grant.refusal("AuthorizationFailure")

    def format(self) -> Format:
        """Return the format of the answer.

        Raises:
            ServiceError: 415.
        """
        return negotiate(self.version, self.request.headers, self.parameters.get("$format", ""))

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
        return reader_of(self.version, self.request.headers)

    def turn(self) -> Turn:
        """Begin a turn of the event loop."""
        return Turn(self.context.limits.turn_seconds, self.context.monotonic)

    async def read_table_name(self) -> str:
        """Return the table's name in the request's body.

        Raises:
            ServiceError: 415, or what is wrong with it.
        """
        return await self.turn().through(self.reader().table_name(self.request.body))
