"""The tables of all accounts: their names, spaces and stored access policies.

A table is a row of the space `TABLES`: partition = account, row = the table's name in lower case, value = JSON of a
`Table`. So a table's name is unique in its account whatever its case. Names of tables of metrics begin with `$`,
before the first name of a list, so no list has them.
"""

import json
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from typing import Self

from lazulite.engine.contract import Engine, KeyRange
from lazulite.partitions.ranges import TableKey
from lazulite.partitions.stored_maps import delete_map
from lazulite.protocol.errors import ServiceError
from lazulite.records.catalog import NamedResource, ResourceCatalog, StoredAccessPolicy, TimeToLive, is_marker
from lazulite.records.spaces import TABLES
from lazulite.table.expiry.definition import Expiry
from lazulite.table.indexes.build_notes import forget_build
from lazulite.table.indexes.definition import (
    NO_INDEXES,
    Index,
    Indexes,
    Scope,
    State,
    check_declaration,
    require_declared,
)

SYSTEM = "$"
"""Begins the names of the tables of metrics, which clients read, and do not create."""
_OLD_NAMES = {
    f"$metricstransactions{each}": f"$metricshourprimarytransactions{each}" for each in ("blob", "queue", "table")
}
"""The names of tables of metrics before 2013-08-15 -> those of the same tables since then."""


def row_of(name: str) -> str:
    """Return the row of a table, which all spellings of its name have."""
    lower = name.lower()
    return _OLD_NAMES.get(lower, lower)


@dataclass(frozen=True, slots=True)
class Table(NamedResource):
    """One table."""

    indexes: Indexes = field(default=NO_INDEXES, kw_only=True)

    @property
    def spaces(self) -> Collection[int]:
        """See `NamedResource.spaces`."""
        return [self.space, *(index.space for index in self.indexes.declared)]

    def to_bytes(self) -> bytes:
        """Return the stored form: a table without indexes is stored as before there were any."""
        fields = asdict(replace(self, indexes=NO_INDEXES))
        del fields["indexes"]
        if self.indexes.version:
            fields["indexes"] = self.indexes.fields()
        return json.dumps(fields).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> Self:
        """Read the stored form."""
        fields = json.loads(value)
        indexes = Indexes.from_fields(fields.pop("indexes")) if "indexes" in fields else NO_INDEXES
        policies = tuple(StoredAccessPolicy(**policy) for policy in fields.pop("policies"))
        return cls(**fields, policies=policies, indexes=indexes)


class Catalog(ResourceCatalog[Table]):
    """The tables of all accounts; a table that does not exist is a `ResourceNotFound`.

    Args:
        engine: holds the rows.
        ttl: as of `ResourceCatalog`.
    """

    def __init__(self, engine: Engine, ttl: TimeToLive | None = None) -> None:
        super().__init__(engine, TABLES, Table, "ResourceNotFound", fold=row_of, ttl=ttl)

    async def require_table(self, account: str, name: str) -> Table:
        """Return the table of entities that a request addresses, perhaps from the cache.

        Raises:
            ServiceError: `TableNotFound`.
        """
        table = await self.get(account, name)
        if table is None:
            raise ServiceError("TableNotFound")
        return table

    async def has(self, table: TableKey) -> bool:
        """Return whether a table is there now, and not another one of its name."""
        found = await self.read(table.account, table.table)
        return found is not None and found.space == table.space

    async def _clean_up(self, account: str, space: int) -> None:
        """Remove the map of the table's ranges, or how far its index was built."""
        await delete_map(self._engine, account, space)
        await forget_build(self._engine, account, space)

    async def with_indexes(self) -> AsyncGenerator[tuple[str, Table], None]:
        """Yield each table that has had indexes, or an expiry, with its account."""
        async with aclosing(self._rows(KeyRange(("", ""), None))) as rows:
            async for (account, row), value in rows:
                if b'"indexes"' in value and not is_marker(row):
                    yield account, self._decode(value)

    async def create(self, account: str, name: str) -> Table:
        """Create a table.

        Raises:
            ServiceError: `TableAlreadyExists`.
        """
        table = await self.add(account, name, lambda space: Table(name, space), _reject)
        assert table is not None, "no other table is accepted"
        return table

    async def declare_index(self, account: str, name: str, index: str, on: Sequence[str], scope: Scope) -> Table:
        """Declare an index that no query uses yet, and return its table.

        Args:
            account: the account.
            name: of the table.
            index: its own name.
            on: its properties.
            scope: where its entries are.

        Raises:
            DeclarationError: see `check_declaration`.
            ServiceError: `ResourceNotFound`.
        """
        space = await self._spaces.allocate()

        def declare(table: Table) -> Table:
            check_declaration(index, on, table.indexes.current)
            return replace(table, indexes=table.indexes.with_index(Index(index, tuple(on), scope, space)))

        return await self.update(account, name, declare)

    async def declare_successor(self, account: str, name: str, index: Index) -> Table:
        """Declare an index that will replace another one of its name, and return its table.

        Raises:
            DeclarationError: that one was dropped.
            ServiceError: `ResourceNotFound`.
        """
        space = await self._spaces.allocate()

        def declare(table: Table) -> Table:
            require_declared(table.indexes, index)
            successor = replace(index, space=space, state=State.WRITE_ONLY)
            return replace(table, indexes=table.indexes.with_index(successor))

        return await self.update(account, name, declare)

    async def set_index_state(self, account: str, name: str, index: Index, state: State) -> Table:
        """Set the state of an index, and return its table. Raises as above."""

        def change(table: Table) -> Table:
            require_declared(table.indexes, index)
            return replace(table, indexes=table.indexes.with_index(replace(index, state=state)))

        return await self.update(account, name, change)

    async def use_index(self, account: str, name: str, index: Index) -> Table:
        """Have queries use an index, and none that it replaces; return its table. Raises as above."""

        def change(table: Table) -> Table:
            require_declared(table.indexes, index)
            return replace(table, indexes=table.indexes.with_ready(index))

        return await self.update(account, name, change)

    async def set_expiry(self, account: str, name: str, expiry: Expiry | None) -> Table:
        """Declare when the entities of a table expire (None: never), and return the table.

        Raises:
            ServiceError: `ResourceNotFound`.
        """
        return await self.update(account, name, lambda table: replace(table, indexes=table.indexes.with_expiry(expiry)))

    async def drop_indexes(self, account: str, name: str, indexes: Sequence[Index]) -> Table:
        """Drop indexes that no query uses any more, with their entries, and return their table.

        Raises:
            ServiceError: `ResourceNotFound`.
        """
        spaces = {index.space for index in indexes}

        def drop(table: Table) -> Table:
            return replace(table, indexes=table.indexes.without(spaces))

        following = await self._replace(account, name, drop)
        assert following is not None, "the table stays"
        return following


def _reject(_: Table) -> None:
    raise ServiceError("TableAlreadyExists")
