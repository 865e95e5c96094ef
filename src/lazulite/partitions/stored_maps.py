"""The maps of a store: one for each table, for all processes that serve it, across restarts and copies.

    partition {account}    row {space in hex}    the map of the table that has the space: see `map_codec`

Invariants:
- a map is replaced by compare-and-swap on its version. A process that balanced by an older map changes nothing, and
  takes the newer one. So two processes may balance, or one may stop in between;
- a map is deleted with the space of its table. A table that was deleted meanwhile gets none;
- there are `TABLES_MAX` maps at most, whatever the number of processes and of rows;
- a damaged row counts as no map. Its table has one range until the next round, which replaces the row;
- a copy and a backup of a store have its maps as they were.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import aclosing
from typing import NamedTuple, TypeAlias

from lazulite.engine.commit import Commit, Decision, Values, put_rows
from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.partitions import map_codec
from lazulite.partitions.load import RangeLoad, loads_of
from lazulite.partitions.load_codec import Loads
from lazulite.partitions.map_codec import MapError
from lazulite.partitions.map_store import TABLES_MAX, Balance, Maps, TableLoads
from lazulite.partitions.ranges import RangeMap, TableKey
from lazulite.partitions.rounds import Rounds, Total
from lazulite.records.spaces import PARTITION_MAPS, Space

_ROWS_MAX = 100
"""The rows of one commit."""


class _Change(NamedTuple):
    """The change of one map."""

    version: int | None
    """The version of the map that is replaced; None: there is no map."""
    value: bytes | None
    """The new stored map; None: it is deleted."""


Exists: TypeAlias = Callable[[TableKey], Awaitable[bool]]
"""Returns whether a table is there."""


class StoredMaps:
    """A `MapStore` in an engine.

    Args:
        engine: holds the rows.
        exists: asks the catalog of tables.
        rounds: of the processes; None: this is the only one.
        report: takes a line for people about a damaged row.
    """

    def __init__(self, engine: Engine, exists: Exists, rounds: Rounds | None, report: Callable[[str], None]) -> None:
        self._engine = engine
        self._exists = exists
        self._rounds = rounds
        self._report = report
        self._seen: Collection[TableKey] = ()
        """The tables that had maps when this process looked last."""
        self._damaged: set[Key] = set()

    @property
    def is_shared(self) -> bool:
        """See `MapStore`."""
        return self._rounds is not None

    async def follow(self, maps: Maps) -> dict[TableKey, RangeMap]:
        """See `MapStore`."""
        seen = self._seen
        stored = await self._read()
        return {table: found for table, found in maps.items() if table not in seen} | stored

    async def take_turn(self, maps: Maps, loads: TableLoads, now: float, seconds: float, balance: Balance) -> Maps:
        """See `MapStore`."""
        total: Total | None = Total(loads, seconds)
        if self._rounds is not None:
            total = await self._rounds.submit(loads, now, seconds)
        before = await self.follow(maps)
        after = dict(before)
        if total is not None:
            after = dict(balance(before, _by_ranges(before, total.loads), total.seconds))
        return await self._keep(before, after)

    async def _read(self) -> dict[TableKey, RangeMap]:
        """Return the maps of the store."""
        maps: dict[TableKey, RangeMap] = {}
        async with aclosing(self._engine.scan(PARTITION_MAPS, [KeyRange(("", ""), None)])) as slices:
            async for part in slices:
                for index, value in enumerate(part.values):
                    key = part.key(index)
                    found = self._decoded(key, value)
                    if found is not None and len(maps) < TABLES_MAX:
                        maps[found[0]] = found[1]
        self._seen = maps.keys()
        return maps

    async def _keep(self, before: Maps, after: dict[TableKey, RangeMap]) -> Maps:
        """Replace the maps of the store; return what it has then."""
        kept = {table: before[table] for table in self._seen}
        for table in [table for table in after if table not in kept][TABLES_MAX - len(kept) :]:
            del after[table]
        changes: dict[TableKey, _Change] = {}
        for table in before.keys() | after:
            found, old = after.get(table), kept.get(table)
            if found is not old:
                try:
                    value = None if found is None else map_codec.encode(table.table, found)
                except MapError:  # It would be too large, so it stays as it is.
                    after[table] = before[table]
                else:
                    changes[table] = _Change(None if old is None else old.version, value)
        lost = await self._swap(changes)
        if lost:
            newer = await self._read()
            after = {table: found for table, found in after.items() if table not in lost}
            after |= {table: newer[table] for table in lost if table in newer}
        self._seen = after.keys()
        return after

    async def _swap(self, changes: Mapping[TableKey, _Change]) -> set[TableKey]:
        """Make changes of maps; return the tables that have another map than was expected, or are not there."""
        accounts: dict[str, dict[str, TableKey]] = defaultdict(dict)
        for table in changes:
            accounts[table.account][row_of(table.space)] = table
        lost: set[TableKey] = set()
        for account, rows in accounts.items():
            names = list(rows)
            for first in range(0, len(names), _ROWS_MAX):
                part = {rows[row]: changes[rows[row]] for row in names[first : first + _ROWS_MAX]}
                lost_here = await self._engine.commit(PARTITION_MAPS, account, self._swapping(part))
                lost |= lost_here
        for table in [table for table, change in changes.items() if change.version is None and table not in lost]:
            if not await self._exists(table):  # It was deleted, perhaps after its last request.
                await delete_map(self._engine, table.account, table.space)
                lost.add(table)
        return lost

    def _swapping(self, changes: Mapping[TableKey, _Change]) -> Commit[set[TableKey]]:
        """Return a commit of changes of one account's maps; its result is as that of `_swap`."""
        rows = [row_of(table.space) for table in changes]

        def decide(values: Values, _: int) -> Decision[set[TableKey]]:
            written: dict[str, bytes | None] = {}
            lost = set[TableKey]()
            for (table, change), row, value in zip(changes.items(), rows, values, strict=True):
                found = None if value is None else self._decoded((table.account, row), value)
                if (None if found is None else found[1].version) == change.version:
                    written[row] = change.value
                else:
                    lost.add(table)
            return Decision(written, lost)

        return Commit(rows, decide)

    def _decoded(self, key: Key, value: bytes) -> tuple[TableKey, RangeMap] | None:
        """Return the map of a row; None if it is damaged, which is reported once."""
        try:
            return _read(key, value)
        except ValueError as error:
            if key not in self._damaged and len(self._damaged) < _ROWS_MAX:
                self._damaged.add(key)
                self._report(f"the partition map of space {key[1]} of account {key[0]} is replaced: {error}")
            return None


def row_of(space: int) -> str:
    """Return the row of the map of a table."""
    return f"{space:016x}"


async def delete_map(engine: Engine, account: str, space: int) -> None:
    """Delete the map of a deleted table, if there is one.

    Raises:
        EngineError: the store cannot be read or written.
    """
    row = row_of(space)
    if await engine.get(PARTITION_MAPS, account, row) is not None:
        await engine.commit(PARTITION_MAPS, account, put_rows({row: None}))


def _by_ranges(maps: Maps, loads: Loads) -> dict[TableKey, Mapping[str, RangeLoad]]:
    """Return loads by the ranges of maps. Some were counted by ranges that have been split or merged since."""
    return {
        table: ranges if ranges.keys() <= {each.start for each in maps[table].ranges} else loads_of(maps[table], ranges)
        for table, ranges in loads.items()
        if table in maps
    }


def _read(key: Key, value: bytes) -> tuple[TableKey, RangeMap]:
    """Return the table and the map of a row.

    Raises:
        ValueError: it has none.
    """
    account, row = key
    space = int(row, 16)
    if row_of(space) != row:
        raise MapError("the row has no space")
    table, found = map_codec.decode(value)
    return TableKey(account, table, space), found


def _verify(key: Key, value: bytes) -> None:
    _read(key, value)


MAPS_SPACE = Space(number=PARTITION_MAPS, owner="table", title="the ranges of tables", copied=True, verify=_verify)
