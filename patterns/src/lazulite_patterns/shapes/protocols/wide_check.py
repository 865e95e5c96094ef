"""What other programs leave of wide entities. A crash leaves nothing, as all rows are one transaction."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lazulite_patterns.auditing.finding import Finding, deletion
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Read, Stored
from lazulite_patterns.outcomes.grace import age_seconds
from lazulite_patterns.outcomes.retries import begin, read
from lazulite_patterns.shapes.protocols.wide import ROWS, VERSION, WideProtocol

APART = "rows of a wide entity that are not of one write"
HEADLESS = "row of a wide entity without its head"
_ROW = re.compile(r"(.*)!([0-9]{2})", re.DOTALL)
_SELECT = ("PartitionKey", "RowKey", VERSION, ROWS)


@dataclass(frozen=True)
class WideCheck:
    """Each head has its rows, of its version, and each other row has its head."""

    protocol: WideProtocol

    @property
    def tables(self) -> Sequence[str]:
        """The table."""
        return [self.protocol.table]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return a finding for a head whose rows are not of its write, or for a row that no head counts."""
        key = _ROW.fullmatch(row.key.row_key)
        if key is None or VERSION not in row.properties:
            return []
        number = int(key[2])
        if number:
            head = yield from self._row(row, key[1], 0)
            if head is not None and number < _count(head):
                return []
            return [deletion(HEADLESS, table, row, now)]
        wrong = []
        for other in range(1, _count(row)):
            found = yield from self._row(row, key[1], other)
            wrong += [] if found is not None and found.properties.get(VERSION) == row.properties[VERSION] else [other]
        if not wrong:
            return []
        return [Finding(APART, table, row.key, age_seconds(row, now), detail=f"rows {wrong[:3]}")]

    def _row(self, row: Stored, name: str, number: int) -> Protocol[Stored | None]:
        effect = Read(self.protocol.table, EntityKey(row.key.partition_key, f"{name}!{number:02d}"), _SELECT)
        return (yield from read(effect, (yield from begin(self.protocol.policy))))


def _count(head: Stored) -> int:
    count = head.properties.get(ROWS)
    return count if isinstance(count, int) else 0
