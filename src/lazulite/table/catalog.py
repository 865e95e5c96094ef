"""Which tables there are: their names, their spaces, their stored access policies.

A table is a row of the space `TABLES`: partition = account, row = the table's name in lower case, value = JSON of a
`Table`. A dropped table whose space the engine has not yet emptied is a row `!{space}` of that partition, written in
the commit that removes the table, so that a restart finishes what a crash interrupted.

Invariants: a table's name is unique in its account whatever its case; its space is its own, and is never used again
after the table is gone, so a table of the same name created at once is empty. A change depends on what the engine
holds, never on what is remembered, which other processes may have made untrue.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from lazulite.auth.stored_policy import StoredAccessPolicy
from lazulite.engine.compare_and_swap import rewrite
from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.engine.remote.messages import Watcher
from lazulite.protocol.errors import ServiceError
from lazulite.records.row_cache import Lifetime, RowCache
from lazulite.records.spaces import TABLES, SpaceAllocator

DROPPED = "!"
"""What the row of a dropped table begins with."""
_FIRST_NAME = "0"
"""No table's name sorts before it; `!` and the `$` of system tables, which no list shows, do."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table."""

    name: str
    """As its creator spelled it."""
    space: int
    policies: tuple[StoredAccessPolicy, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        policies = [asdict(policy) for policy in self.policies]
        return json.dumps({"name": self.name, "space": self.space, "policies": policies}).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> "Table":
        """Read the stored form."""
        fields = json.loads(value)
        policies = tuple(StoredAccessPolicy(**policy) for policy in fields["policies"])
        return cls(fields["name"], fields["space"], policies)


class Catalog:
    """The tables of all accounts, kept in an engine.

    Args:
        engine: where they are.
        lifetime: how long they are remembered where others change them unannounced.
    """

    def __init__(self, engine: Engine, lifetime: Lifetime | None = None) -> None:
        self._engine = engine
        self._spaces = SpaceAllocator(engine)
        self._cache: RowCache[Key, Table] = RowCache(lifetime=lifetime)

    @property
    def watcher(self) -> Watcher:
        """What is to be told when others change the rows of `TABLES`."""
        return self._cache

    def known(self, account: str, name: str) -> Table | None:
        """Return a table if it is at hand, whatever the case of `name`."""
        return self._cache.get((account, name.lower()))

    async def get(self, account: str, name: str) -> Table | None:
        """Return a table, whatever the case of `name`."""
        return self.known(account, name) or await self._read(account, name.lower())

    async def _read(self, account: str, row: str) -> Table | None:
        if row.startswith(DROPPED):
            return None
        key = (account, row)
        before = self._cache.before_read()
        value = await self._engine.get(TABLES, *key)
        if value is None:
            self._cache.forget(key)
            return None
        table = Table.from_bytes(value)
        self._cache.fill(key, table, before)
        return table

    async def require(self, account: str, name: str) -> Table:
        """Return a table.

        Raises:
            ServiceError: `TableNotFound`.
        """
        table = await self.get(account, name)
        if table is None:
            raise ServiceError("TableNotFound")
        return table

    async def create(self, account: str, name: str) -> Table:
        """Create a table.

        Raises:
            ServiceError: `TableAlreadyExists`.
        """
        row = name.lower()
        if await self._read(account, row) is not None:
            raise ServiceError("TableAlreadyExists")
        table = Table(name, await self._spaces.allocate())

        def add(current: bytes | None) -> Mapping[str, bytes | None]:
            if current is not None:
                raise ServiceError("TableAlreadyExists")
            return {row: table.to_bytes()}

        await self._change(account, row, add)
        return table

    async def delete(self, account: str, name: str) -> None:
        """Delete a table: gone at once, its rows reclaimed in the background.

        Raises:
            ServiceError: `ResourceNotFound`.
        """
        row = name.lower()
        table = await self._read(account, row)
        if table is None:
            raise ServiceError("ResourceNotFound")
        dropped = f"{DROPPED}{table.space}"

        def remove(current: bytes | None) -> Mapping[str, bytes | None]:
            if current is None or Table.from_bytes(current).space != table.space:
                raise ServiceError("ResourceNotFound")
            return {row: None, dropped: b""}

        await self._change(account, row, remove)
        await self._reclaim(account, dropped)

    async def set_policies(self, account: str, name: str, policies: Sequence[StoredAccessPolicy]) -> None:
        """Replace the stored access policies of a table.

        Raises:
            ServiceError: `ResourceNotFound`.
        """
        row = name.lower()

        def put(current: bytes | None) -> Mapping[str, bytes | None]:
            if current is None:
                raise ServiceError("ResourceNotFound")
            return {row: replace(Table.from_bytes(current), policies=tuple(policies)).to_bytes()}

        await self._change(account, row, put)

    async def policies(self, account: str, name: str) -> Sequence[StoredAccessPolicy]:
        """Return the stored access policies of a table; none if there is no such table."""
        table = await self.get(account, name)
        return () if table is None else table.policies

    async def list(self, account: str, start: str) -> AsyncIterator[Table]:
        """Yield the tables of an account whose lower-case names are not below `start`, in the order of those."""
        everything = KeyRange((account, max(start, _FIRST_NAME)), (account + "\0", ""))
        async for part in self._engine.scan(TABLES, [everything]):
            for value in part.values:
                yield Table.from_bytes(value)

    async def finish_drops(self) -> None:
        """Empty the spaces of tables whose deletion a crash interrupted."""
        pending: list[tuple[str, str]] = []
        async for part in self._engine.scan(TABLES, [KeyRange(("", ""), None)]):
            keys = [part.key(index) for index in range(len(part.values))]
            pending += [key for key in keys if key[1].startswith(DROPPED)]
        for account, row in pending:
            await self._reclaim(account, row)

    async def _reclaim(self, account: str, dropped: str) -> None:
        await self._engine.drop(int(dropped.removeprefix(DROPPED)))
        await rewrite(self._engine, TABLES, account, dropped, lambda _: {dropped: None})

    async def _change(
        self, account: str, row: str, change: Callable[[bytes | None], Mapping[str, bytes | None]]
    ) -> None:
        with self._cache.changing((account, row)):
            await rewrite(self._engine, TABLES, account, row, change)
