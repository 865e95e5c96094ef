"""Entities of more properties than one row has: several rows of one partition, written in one transaction.

Each row has the id of the write in `_Ver`. The first one, the head, has the number of rows in `_Rows`; it is replaced
If-Match, so a writer that was slower than another one begins again. A reader compares the ids: a query is no snapshot,
so the rows may be of two writes. Then it reads again. If the head is still the same, no writer is at work, and another
program changed a row.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.effects.tables import EntityKey, Found, Kind, Operation, Page, Properties, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.entities.values import value_size
from lazulite_patterns.filters import in_partition, in_range
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.outcomes.errors import Absent, Unavailable
from lazulite_patterns.outcomes.retries import Attempts, Policy, begin, read
from lazulite_patterns.outcomes.ring import RING, WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write
from lazulite_patterns.shapes.errors import Inconsistent
from lazulite_patterns.shapes.protocols.groups import OPERATIONS_MAX, again

VERSION, ROWS = "_Ver", "_Rows"
_OWN = frozenset({VERSION, ROWS, RING, *limits.SYSTEM})
_OWN_BYTES = sum(8 + 2 * len(each) for each in (VERSION, ROWS, RING)) + 4 + 2 * 16 + 4


class Sizes(NamedTuple):
    """Where entities are divided; other sizes are for tests.

    Attributes:
        properties: the most of one row, of the user and our own.
        row_bytes: the most of one row, by the service's formula.
        page_rows: rows of one request; None for as many as the service gives.
    """

    properties: int = limits.PROPERTIES_MAX
    row_bytes: int = limits.ENTITY_BYTES_MAX
    page_rows: int | None = None


@dataclass(frozen=True)
class WideProtocol:
    """Makes the protocols of `Wide`."""

    table: str
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen
    sizes: Sizes = Sizes()  # noqa: RUF009 - it is a tuple

    def get(self, key: EntityKey) -> Protocol[Bag | None]:
        """Read an entity; None if it is absent."""
        rows = yield from self._read(key)
        return joined(key, rows) if rows else None

    def insert(self, key: EntityKey, properties: Properties) -> Protocol[None]:
        """Write an entity that must be absent."""
        self._check(key)
        yield from self._commit(key, [], properties)

    def upsert(self, key: EntityKey, properties: Properties, attempts: int = 8) -> Protocol[None]:
        """Write an entity, whatever is there."""

        def once() -> Protocol[bool]:
            yield from self._commit(key, (yield from self._keys(key)), properties)
            return True

        yield from again(once, attempts)

    def update(self, key: EntityKey, change: Callable[[Bag], Properties], attempts: int = 8) -> Protocol[None]:
        """Read an entity, change it, and write it if no other writer was faster."""

        def update() -> Protocol[bool]:
            rows = yield from self._read(key)
            if rows:
                yield from self._commit(key, rows, change(joined(key, rows)))
            return bool(rows)

        if not (yield from again(update, attempts)):
            raise Absent(f"{key} is absent")

    def delete(self, key: EntityKey, attempts: int = 8) -> Protocol[bool]:
        """Delete an entity; False if it is absent."""

        def delete() -> Protocol[bool]:
            rows = yield from self._keys(key)
            if rows:
                yield from self._commit(key, rows, None)
            return bool(rows)

        return (yield from again(delete, attempts))

    def _check(self, key: EntityKey) -> None:
        limits.check_key("Wide", EntityKey(key.partition_key, f"{key.row_key}!00"))

    def _keys(self, key: EntityKey) -> Protocol[list[Stored]]:
        """Read of all rows what a write needs."""
        self._check(key)
        select = ("PartitionKey", "RowKey", VERSION, ROWS, RING)
        return (yield from self._rows(key, (yield from begin(self.policy)), select))

    def _read(self, key: EntityKey) -> Protocol[list[Stored]]:
        """Read rows that are of one write; none if the entity is absent."""
        self._check(key)
        attempts = yield from begin(self.policy)
        etag: str | None = None
        while True:
            rows = yield from self._rows(key, attempts)
            if not rows or fitting(rows):
                return rows
            if rows[0].etag == etag:
                raise Inconsistent(f"{key}: the rows are not of one write")
            if (yield from attempts.expired()):
                raise Unavailable(f"{key}: other writers were faster, each time")
            etag = rows[0].etag

    def _rows(self, key: EntityKey, attempts: Attempts, select: tuple[str, ...] = ()) -> Protocol[list[Stored]]:
        """Read the rows as they are; none if there is no head."""
        between = KeyRange.of(f"{key.row_key}!00", f"{key.row_key}!99")
        place = in_partition(key.partition_key) & in_range("RowKey", between)
        rows: list[Stored] = []
        page: Found | None = None
        while page is None or page.continuation is not None:
            effect = Page(self.table, place, select, self.sizes.page_rows, page and page.continuation)
            page = yield from read(effect, attempts)
            rows += [each for each in page.entities if _number(key, each.key) is not None]
        return rows if rows and _number(key, rows[0].key) == 0 else []

    def _commit(self, key: EntityKey, base: Sequence[Stored], properties: Properties | None) -> Protocol[None]:
        """Write or delete all rows of an entity in one transaction."""
        version = yield from perform(NewId())
        parts = [] if properties is None else self._divided(key, properties)
        if parts:
            parts[0][ROWS] = len(parts)
        rows = [self._row(key, number, {**each, VERSION: version}, base) for number, each in enumerate(parts)]
        left = [each for each in base if (_number(key, each.key) or 0) >= len(parts)]
        planned = [*rows, *(_removed(each, head=each is base[0]) for each in left)]
        if len(planned) > OPERATIONS_MAX:
            raise EntityValueError(
                f"{key.row_key}: {len(planned)} rows to write and delete, {OPERATIONS_MAX} are possible"
            )
        yield from write(self.table, planned, self.policy)

    def _row(self, key: EntityKey, number: int, properties: Properties, base: Sequence[Stored]) -> Planned:
        place = EntityKey(key.partition_key, f"{key.row_key}!{number:02d}")
        if number:
            return Planned(Operation(Kind.PUT, place, properties))
        if not base:
            return Planned(Operation(Kind.INSERT, place, properties))
        return Planned(Operation(Kind.REPLACE, place, properties, base[0].etag), WriteIds.of(base[0].properties))

    def _divided(self, key: EntityKey, properties: Properties) -> list[dict[str, object]]:
        """Return the properties of each row, in the order in which they are given.

        Raises:
            EntityValueError: the service would reject a property, or there are too many.
        """
        owner = f"{key.partition_key}/{key.row_key}"
        keys = {"PartitionKey": key.partition_key, "RowKey": f"{key.row_key}!00"}
        room = self.sizes.row_bytes - limits.entity_size(keys) - _OWN_BYTES - 4 - 2 * (17 * self.policy.marks + 1)
        most = self.sizes.properties - 2 - bool(self.policy.marks)
        parts: list[dict[str, object]] = [{}]
        size = 0
        for name, value in properties.items():
            if value is None or name in limits.SYSTEM or name == RING:
                continue
            if name in _OWN:
                raise EntityValueError(f"{owner}.{name}: the property is the library's")
            limits.check(owner, {**keys, name: value})
            own = 8 + 2 * len(name) + value_size(value)
            if parts[-1] and (size + own > room or len(parts[-1]) == most):
                parts.append({})
                size = 0
            parts[-1][name] = value
            size += own
        return parts


def fitting(rows: Sequence[Stored]) -> bool:
    """Tell whether rows are all that one write made."""
    head = rows[0].properties
    numbers = [each.key.row_key[-2:] for each in rows]
    return (
        head.get(ROWS) == len(rows)
        and numbers == [f"{number:02d}" for number in range(len(rows))]
        and all(each.properties.get(VERSION) == head.get(VERSION) for each in rows)
    )


def joined(key: EntityKey, rows: Iterable[Stored]) -> Bag:
    """Return an entity of its rows."""
    found = {name: value for each in rows for name, value in each.properties.items() if name not in _OWN}
    return Bag({"PartitionKey": key.partition_key, "RowKey": key.row_key, **found})


def _number(key: EntityKey, row: EntityKey) -> int | None:
    """Return the number of a row; None if it is none of the entity."""
    end = row.row_key.removeprefix(f"{key.row_key}!")
    return int(end) if len(end) == 2 and end.isdecimal() and row.row_key != end else None


def _removed(row: Stored, *, head: bool) -> Planned:
    return Planned(Operation(Kind.DELETE, row.key, etag=row.etag if head else None), WriteIds.of(row.properties))
