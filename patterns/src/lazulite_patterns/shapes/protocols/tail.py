"""A log tail: entities whose RowKeys count down with time, so that the newest ones are the first of their partition.

The RowKey is the reverse ticks of the event's time, those of the time at which it was appended, and a suffix: a number
that counts down in one process, and random digits. So entries of equal times are newest first, too, by the writers'
clocks; and two entries never have one key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import NewId, UtcNow
from lazulite_patterns.effects.tables import Continuation, EntityKey, Kind, Operation, Page, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.bags import Bag, Bags
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.filters import Compare, in_partition, in_range
from lazulite_patterns.keys import Key, Ticks, exact_ticks, integer, text
from lazulite_patterns.keys.characters import KeyFormatError, KeyValueError
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.outcomes.ring import RING, WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write
from lazulite_patterns.shapes.protocols.groups import OPERATIONS_MAX, remove

NUMBER_DIGITS = 10
_TOP_MAX = 1000


class TailKey(Key):
    """The RowKey of an entry."""

    time: Ticks = exact_ticks(reverse=True)
    appended: Ticks = exact_ticks(reverse=True)
    number: int = integer(NUMBER_DIGITS, reverse=True)
    id: str = text()


class Entry(NamedTuple):
    """An entry of a log.

    Attributes:
        key: of its row.
        time: of the event.
        properties: of the entry, with its keys.
    """

    key: EntityKey
    time: datetime
    properties: Bag


class Entries(NamedTuple):
    """A page of a log, newest first, and the entry after which the next one begins; None after the last one."""

    entries: list[Entry]
    last: EntityKey | None


@dataclass(frozen=True)
class TailProtocol:
    """Makes the protocols of `Tail`."""

    table: str
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen

    def append(
        self, partition_key: str, properties: Mapping[str, object], time: datetime | None, number: int
    ) -> Protocol[EntityKey]:
        """Insert an entry, and return its keys."""
        now = yield from perform(UtcNow())
        new_id = yield from perform(NewId())
        try:
            row_key = TailKey(Ticks.of(time or now), Ticks.of(now), number % 10**NUMBER_DIGITS, new_id).encode()
        except (KeyValueError, ValueError) as error:
            raise EntityValueError(f"time: {error}") from error
        key = EntityKey(partition_key, row_key)
        limits.check_key("Tail", key)
        stored = Bags().encode({**properties, "PartitionKey": partition_key, "RowKey": row_key})
        ring = {RING: WriteIds.born(new_id).text} if self.policy.marks else {}
        limits.check(f"Tail {partition_key}", {**stored, **ring})
        yield from write(self.table, [Planned(Operation(Kind.INSERT, key, stored))], self.policy)
        return key

    def page(self, partition_key: str, keys: KeyRange, count: int, after: EntityKey | None) -> Protocol[Entries]:
        """Read so many entries, fewer only at the end of a range."""
        limits.check_key("Tail", EntityKey(partition_key, ""))
        place = in_partition(partition_key) & in_range("RowKey", keys)
        if after is not None:
            place = place & Compare("RowKey", "gt", after.row_key)
        found: list[Stored] = []
        continuation: Continuation | None = None
        attempts = yield from begin(self.policy)
        while len(found) < count:
            effect = Page(self.table, place, top=min(count - len(found), _TOP_MAX), continuation=continuation)
            page = yield from read(effect, attempts)
            found += page.entities
            if (continuation := page.continuation) is None:
                break
        entries = [each for each in map(_entry, found) if each is not None]
        return Entries(entries, found[-1].key if found and continuation is not None else None)

    def trim(self, partition_key: str, before: datetime) -> Protocol[int]:
        """Delete the entries of events before a time, and return their number."""
        limits.check_key("Tail", EntityKey(partition_key, ""))
        place = in_partition(partition_key) & in_range("RowKey", older_than(before))
        count = 0
        continuation: Continuation | None = None
        while True:
            effect = Page(self.table, place, ("PartitionKey", "RowKey"), OPERATIONS_MAX, continuation)
            page = yield from read(effect, (yield from begin(self.policy)))
            yield from remove(self.table, [each.key for each in page.entities], self.policy)
            count += len(page.entities)
            if (continuation := page.continuation) is None:
                return count


def every_time() -> KeyRange:
    """Return the keys of all entries."""
    return KeyRange("0", ":")


def older_than(time: datetime) -> KeyRange:
    """Return the keys of entries of events before a time."""
    return KeyRange(str(TailKey.prefix(time=Ticks.of(time)).upper), ":")


def from_to(first: datetime, last: datetime) -> KeyRange:
    """Return the keys of entries of events from one time to another, both included."""
    return KeyRange(TailKey.prefix(time=Ticks.of(last)).lower, TailKey.prefix(time=Ticks.of(first)).upper)


def _entry(stored: Stored) -> Entry | None:
    """Return the entry of a row; None if it is none by its key."""
    try:
        key = TailKey.decode(stored.key.row_key)
    except KeyFormatError:
        return None
    return Entry(stored.key, key.time.datetime, Bags().decode(stored))
