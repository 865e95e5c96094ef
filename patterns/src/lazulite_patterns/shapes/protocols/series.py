"""A series of numbers in one entity, each in a property. `add` reads, adds and writes If-Match, again if it lost.

With shards, a series is several rows. Each `add` is to one of them, at random, so that writers meet less often. A read
is one query, and adds the rows up.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from azure.data.tables import EntityProperty

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.runtime import RandomNumber
from lazulite_patterns.effects.tables import EntityKey, Found, Kind, Operation, Page, Properties, Read, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.edm import property_type
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError, SchemaError
from lazulite_patterns.filters import in_partition, in_range
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.outcomes.errors import Conflict
from lazulite_patterns.outcomes.retries import Attempts, Policy, begin, read
from lazulite_patterns.outcomes.ring import WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write

N = TypeVar("N", int, float)
SHARDS_MAX = 100


@dataclass(frozen=True)
class SeriesProtocol(Generic[N]):
    """Makes the protocols of `Series`."""

    table: str
    slots: int
    kind: type[N]
    name: str = "S"
    shards: int = 1
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen

    def __post_init__(self) -> None:
        """Check what is declared.

        Raises:
            SchemaError: an entity has not so many properties, or none of that name; or there are too many shards.
        """
        most = limits.PROPERTIES_MAX - bool(self.policy.marks)
        if not 1 <= self.slots <= most:
            raise SchemaError(f"a series of {self.slots} slots: 1 to {most} fit an entity")
        if not 1 <= self.shards <= SHARDS_MAX:
            raise SchemaError(f"a series of {self.shards} shards: 1 to {SHARDS_MAX} are allowed")
        if not limits.is_name(self.property(0)) or len(self.property(0)) > limits.NAME_MAX:
            raise SchemaError(f"{self.property(0)}: the service takes no property of this name")

    def property(self, slot: int) -> str:
        """Return the name of a slot's property."""
        return f"{self.name}{slot:0{len(str(self.slots - 1))}d}"

    def add(self, key: EntityKey, amounts: Mapping[int, N]) -> Protocol[None]:
        """Add to slots, all of them in one write."""
        self._checked(key, amounts)
        place = yield from self._place(key)
        attempts = yield from begin(self.policy)
        while True:
            base = yield from read(Read(self.table, place), attempts)
            try:
                yield from write(self.table, [self._sum(place, base, amounts)], self.policy)
            except Conflict as conflict:
                if not (yield from attempts.wait(ResultUnknown(str(conflict)))):
                    raise
            else:
                return

    def put(self, key: EntityKey, values: Mapping[int, N]) -> Protocol[None]:
        """Set slots to values, whatever they were."""
        if self.shards > 1:
            raise ValueError("a value that is spread over shards cannot be set")
        properties = self._checked(key, values)
        yield from write(self.table, [Planned(Operation(Kind.PUT_MERGE, key, properties))], self.policy)

    def get(self, key: EntityKey) -> Protocol[list[N] | None]:
        """Read all slots; None if there is no such series."""
        limits.check_key("Series", key)
        attempts = yield from begin(self.policy)
        rows = yield from self._rows(key, attempts)
        if not rows:
            return None
        zero: N = self.kind(0)
        return [sum((self._value(each, slot) for each in rows), zero) for slot in range(self.slots)]

    def absorb(self, row: Stored) -> Protocol[None]:
        """Add the numbers of a row that is no shard to the first shard, and delete it, in one transaction.

        Raises:
            Conflict: another writer was faster.
        """
        numbers = {slot: self._value(row, slot) for slot in range(self.slots) if self.property(slot) in row.properties}
        place = self._shard(row.key, 0)
        base = yield from read(Read(self.table, place), (yield from begin(self.policy)))
        delete = Planned(Operation(Kind.DELETE, row.key, etag=row.etag), WriteIds.of(row.properties))
        yield from write(self.table, [self._sum(place, base, numbers), delete], self.policy)

    def slot(self, name: str) -> int | None:
        """Return the number of the slot that a property is, even one beyond the last; None if it is none."""
        digits = name.removeprefix(self.name)
        width = len(self.property(0)) - len(self.name)
        is_slot = name.startswith(self.name) and len(digits) == width and digits.isascii() and digits.isdecimal()
        return int(digits) if is_slot else None

    def _checked(self, key: EntityKey, values: Mapping[int, N]) -> dict[str, object]:
        limits.check_key("Series", self._shard(key, self.shards - 1))
        return {self._slot(slot): self._stored(slot, value) for slot, value in values.items()}

    def _slot(self, slot: int) -> str:
        if slot not in range(self.slots):
            raise EntityValueError(f"{self.name}{slot}: the series has the slots 0 to {self.slots - 1}")
        return self.property(slot)

    def _stored(self, slot: int, value: N) -> object:
        found = property_type(self.kind)
        assert found is not None, "int and float are types of properties"
        try:
            return found.write(value)
        except (TypeError, ValueError) as error:
            raise EntityValueError(f"{self.property(slot)}: {error}") from error

    def _value(self, row: Stored, slot: int) -> N:
        value = row.properties.get(self.property(slot), 0)
        if isinstance(value, EntityProperty):
            value = value.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise EntityFormatError(f"{row.key.row_key}.{self.property(slot)}: {value!r} is no number")
        if self.kind is int and isinstance(value, float) and not value.is_integer():
            raise EntityFormatError(f"{row.key.row_key}.{self.property(slot)}: {value!r} is no integer")
        return self.kind(value)

    def _sum(self, place: EntityKey, base: Stored | None, amounts: Mapping[int, N]) -> Planned:
        if base is None:
            sums: Properties = {self.property(slot): self._stored(slot, each) for slot, each in amounts.items()}
            return Planned(Operation(Kind.INSERT, place, sums))
        sums = {self.property(slot): self._stored(slot, self._value(base, slot) + amounts[slot]) for slot in amounts}
        return Planned(Operation(Kind.MERGE, place, sums, base.etag), WriteIds.of(base.properties))

    def _shard(self, key: EntityKey, number: int) -> EntityKey:
        return key if self.shards == 1 else EntityKey(key.partition_key, f"{key.row_key}!{number:02d}")

    def _place(self, key: EntityKey) -> Protocol[EntityKey]:
        number = 0 if self.shards == 1 else int((yield from perform(RandomNumber())) * self.shards)
        return self._shard(key, number)

    def _rows(self, key: EntityKey, attempts: Attempts) -> Protocol[list[Stored]]:
        if self.shards == 1:
            row = yield from read(Read(self.table, key), attempts)
            return [] if row is None else [row]
        between = KeyRange.of(f"{key.row_key}!00", f"{key.row_key}!99")
        place = in_partition(key.partition_key) & in_range("RowKey", between)
        rows: list[Stored] = []
        page: Found | None = None
        while page is None or page.continuation is not None:
            page = yield from read(Page(self.table, place, continuation=page and page.continuation), attempts)
            rows += page.entities
        shard = re.compile(re.escape(key.row_key) + "![0-9]{2}")
        return [each for each in rows if shard.fullmatch(each.key.row_key)]
