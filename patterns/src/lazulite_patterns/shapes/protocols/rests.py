"""What crashes and other programs leave of fat entities: rows that no head names, and heads whose rows are absent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lazulite_patterns.auditing.finding import Finding, deletion
from lazulite_patterns.auditing.walk import Walk
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import Continuation, EntityKey, Page, Read, Stored
from lazulite_patterns.entities.errors import EntityFormatError
from lazulite_patterns.entities.schema import TYPE
from lazulite_patterns.filters import Compare, in_partition
from lazulite_patterns.outcomes.grace import GRACE_SECONDS, age_seconds
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.shapes.protocols.chunks import FAT, Content, owner_of

UNNAMED = "rows of a fat entity that no head names"
INCOMPLETE = "fat entity whose rows are absent"
UNREADABLE = "fat entity that cannot be read"
_KEYS = ("PartitionKey", "RowKey")


@dataclass(frozen=True)
class FatCheck:
    """Each row of chunks is of a generation that its head names, and each head has its rows."""

    table: str
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen

    @property
    def tables(self) -> Sequence[str]:
        """The table."""
        return [self.table]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return a finding for a row of chunks without its head, or for a head without its rows."""
        try:
            if row.properties.get(TYPE) == FAT:
                return (yield from self._chunks(table, row, now))
            return (yield from self._head(table, row, now))
        except EntityFormatError as error:
            return [Finding(UNREADABLE, table, row.key, age_seconds(row, now), detail=str(error))]

    def _chunks(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        owner = owner_of(row.key)
        if owner is None:
            return []
        head, generation = owner
        effect = Read(table, head, (*_KEYS, FAT))
        found = yield from read(effect, (yield from begin(self.policy)))
        content = None if found is None else Content.of(found.properties)
        if content is not None and content.generation == generation:
            return []
        return [deletion(UNNAMED, table, row, now)]

    def _head(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        content = Content.of(row.properties)
        absent: list[EntityKey] = []
        for key in [] if content is None else content.keys(row.key):
            found = yield from read(Read(table, key, _KEYS), (yield from begin(self.policy)))
            absent += [key] if found is None else []
        if not absent:
            return []
        detail = ", ".join(each.row_key for each in absent[:3])
        return [Finding(INCOMPLETE, table, row.key, age_seconds(row, now), detail=detail)]


def collect(table: str, partition_key: str, policy: Policy, grace_seconds: float = GRACE_SECONDS) -> Protocol[int]:
    """Remove the rows of a partition that no head names, and return their number; none younger than the grace."""
    walk = Walk([FatCheck(table, policy)], True, grace_seconds, policy)
    place = in_partition(partition_key) & Compare(TYPE, "eq", FAT)
    continuation: Continuation | None = None
    count = 0
    while True:
        effect = Page(table, place, (*_KEYS, "Timestamp", TYPE), continuation=continuation)
        page = yield from read(effect, (yield from begin(policy)))
        for row in page.entities:
            findings = yield from walk.look(walk.checks[0], table, row)
            count += sum(each.repaired for each in findings)
        if (continuation := page.continuation) is None:
            return count
